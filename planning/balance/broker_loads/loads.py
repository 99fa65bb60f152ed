"""Loads of brokers with the bands, limits and scores that follow from them, without a model of partitions."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np

from headroom.planning.balance.arrays import BoolArray, FloatArray
from headroom.planning.balance.broker_reading import BrokerReading
from headroom.planning.balance.goals.bands import LoadBounds, band_bounds, limit_bounds
from headroom.planning.balance.goals.catalogue import built_in_goals, configured_goals
from headroom.planning.balance.goals.goal import BalanceGoal
from headroom.planning.balance.goals.resource_goals import CapacityLimit, ResourceBand
from headroom.planning.balance.model import (
    BalanceBroker,
    BrokerCapacity,
    ClusterModel,
    PartitionArrays,
    Resource,
    cluster_model,
)
from headroom.planning.balance.slow_brokers.slow_brokers import NO_ADVICE, SlowAdvice
from headroom.schemas.config import BalanceSettings

BROKER_DOWN = "the broker is down"
NO_ANSWER = "the broker did not answer"
# Below these, requests per second and bytes of logs are too small to matter, as network rates below
# ``balance.detect_below`` are.
_TOO_SMALL = {Resource.REQUESTS: 100.0, Resource.DISK: 1024.0**3}
_NOT_READ = {
    Resource.NETWORK_IN: "its byte counters were not read, or it has restarted",
    Resource.NETWORK_OUT: "its byte counters were not read, or it has restarted",
    Resource.REQUESTS: "its request counters were not read, or it has restarted",
    Resource.DISK: "its log directories were not read",
    Resource.LEADERS: "leaders of some partitions were not read",
    Resource.REPLICAS: "its number of replicas was not read",
}


@dataclass(frozen=True)
class BrokerLoad:
    """Load of one broker in one resource, in the unit of the resource. None: unknown, or there is none.

    Attributes:
        broker: id.
        resource: resource.
        load: load.
        capacity: capacity of the broker.
        limit: share of the capacity that it may use.
        mean: load that it would have if all brokers carried their share.
        lower: lower edge of its band.
        upper: upper edge of its band.
        band_score: score in the band, 0 to 1.
        limit_score: score in the limit, 0 to 1.
        in_band: whether the load is in the band.
        unknown: why the load is unknown; None if it is known.
    """

    broker: int
    resource: Resource
    load: float | None = None
    capacity: float | None = None
    limit: float | None = None
    mean: float | None = None
    lower: float | None = None
    upper: float | None = None
    band_score: float | None = None
    limit_score: float | None = None
    in_band: bool | None = None
    unknown: str | None = None


def broker_loads(
    readings: Sequence[BrokerReading], settings: BalanceSettings, slow: SlowAdvice = NO_ADVICE
) -> list[BrokerLoad]:
    """Return the loads of all brokers, by resource and broker; each broker has one for every resource.

    The bands are those of ``headroom balance``: brokers that are down, or whose load is unknown, count in no mean.
    A slow broker is in no band of what it is to give away, because its own alert is about that.
    """
    every = sorted(readings, key=lambda reading: reading.broker)
    chosen = set(configured_goals(settings))
    goals = [g for g in built_in_goals(settings.detect_below) if g.hard or not chosen or g.name in chosen]
    loads: list[BrokerLoad] = []
    for resource in Resource:
        loads += _of_resource(resource, every, goals, settings, slow)
    return loads


def _of_resource(
    resource: Resource,
    readings: Sequence[BrokerReading],
    goals: Sequence[BalanceGoal],
    settings: BalanceSettings,
    slow: SlowAdvice,
) -> Iterator[BrokerLoad]:
    band = next((g for g in goals if isinstance(g, ResourceBand) and g.resource is resource), None)
    limit = next((g for g in goals if isinstance(g, CapacityLimit) and g.resource is resource), None)
    loads = np.array([reading.loads.get(resource, np.nan) if reading.alive else np.nan for reading in readings])
    known = np.isfinite(loads)
    model = _model(readings, known, settings, slow)
    zeroed = np.where(known, loads, 0.0)
    bands = None if band is None or not known.any() else _bands(band, model, zeroed)
    limits = None if limit is None else limit_bounds(model, resource)
    band_scores, limit_scores = (None if bounds is None else bounds.score(zeroed) for bounds in (bands, limits))
    met = None if bands is None else bands.is_reached(zeroed)
    for at, reading in enumerate(readings):
        own, sheds = bool(known[at]), resource in model.brokers[at].sheds
        yield BrokerLoad(
            reading.broker,
            resource,
            load=float(loads[at]) if own else None,
            capacity=model.brokers[at].capacity.of(resource),
            limit=None if limits is None else _finite(limits.upper[at]),
            mean=None if bands is None else _finite(bands.mean[at]),
            lower=None if bands is None else _finite(bands.reachable_lower[at]),
            upper=None if bands is None else _finite(bands.reachable_upper[at]),
            band_score=float(band_scores[at]) if own and band_scores is not None else None,
            limit_score=float(limit_scores[at]) if own and limit_scores is not None else None,
            in_band=bool(met[at]) if own and met is not None and not sheds else None,
            unknown=None if own else _why_unknown(reading, resource),
        )


def _bands(band: ResourceBand, model: ClusterModel, loads: FloatArray) -> LoadBounds:
    bounds = band_bounds(model, band.resource, loads, band.detect_below)
    return replace(bounds, detect_below=_TOO_SMALL.get(band.resource, bounds.detect_below))


def _why_unknown(reading: BrokerReading, resource: Resource) -> str:
    if not reading.alive:
        return BROKER_DOWN
    # Leaders come from the metadata, which needs no answer of the broker.
    if not reading.answered and resource is not Resource.LEADERS:
        return NO_ANSWER
    return _NOT_READ[resource]


def _model(
    readings: Sequence[BrokerReading], known: BoolArray, settings: BalanceSettings, slow: SlowAdvice
) -> ClusterModel:
    """Return a model of the brokers alone, of which those count whose load is known."""
    capacity = BrokerCapacity(
        settings.network_in_capacity, settings.network_out_capacity, replicas=settings.replica_capacity
    )
    brokers = [
        BalanceBroker(
            reading.broker,
            capacity=replace(capacity, disk_bytes=reading.disk_bytes),
            alive=reading.alive,
            known=bool(own),
            sheds=slow.sheds(reading.broker),
        )
        for reading, own in zip(readings, known, strict=True)
    ]
    none, no_rates = np.zeros(0, dtype=np.int64), np.zeros((1, 0))
    arrays = PartitionArrays([], none, np.zeros((0, 1), dtype=np.int64), none, no_rates, no_rates, no_rates, none)
    return cluster_model(brokers, arrays, settings.percentile)


def _finite(value: float) -> float | None:
    return float(value) if math.isfinite(value) else None

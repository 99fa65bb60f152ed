"""Loads of brokers for tests of rules."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from headroom.alerts.inputs.broker_load import BrokerLoadState, MinuteLoads
from headroom.planning.balance.broker_loads.loads import broker_loads
from headroom.planning.balance.broker_reading import BrokerReading
from headroom.planning.balance.model import Resource
from headroom.schemas.config import BalanceSettings
from tests.unit.builders.throttle_status import TICK_MS

MB = 1e6


def reading(broker: int, mb_in: float | None = None, mb_out: float | None = None, **more: Any) -> BrokerReading:
    """A broker that receives and sends so many MB/s; None: unknown."""
    rates = {Resource.NETWORK_IN: mb_in, Resource.NETWORK_OUT: mb_out}
    known: dict[Resource, float] = {resource: rate * MB for resource, rate in rates.items() if rate is not None}
    fields: dict[str, Any] = {"alive": True, "answered": True, "loads": known | more.pop("loads", {})}
    return BrokerReading(broker, **fields | more)


def loads(
    mb_in: Mapping[int, float | None],
    mb_out: Mapping[int, float | None] | None = None,
    *,
    rounds: Mapping[int, int] | None = None,
    down: tuple[int, ...] = (),
    flush_s: Mapping[int, float] | None = None,
    tick_ms: int = TICK_MS,
    **settings: Any,
) -> MinuteLoads:
    """The states of a minute in which brokers receive, and send, so many MB/s."""
    out, flushes = mb_out or {}, flush_s or {}
    brokers = sorted({*mb_in, *out})
    readings = [
        reading(b, mb_in.get(b), out.get(b), alive=b not in down, answered=b not in down, flush_p999_s=flushes.get(b))
        for b in brokers
    ]
    every = broker_loads(readings, BalanceSettings(**settings))
    return MinuteLoads(
        tick_ms,
        tuple(
            BrokerLoadState(
                tick_ms=tick_ms,
                broker=load.broker,
                resource=load.resource.name.lower(),
                alive=load.broker not in down,
                load=load.load,
                unknown_reason=load.unknown,
                capacity=load.capacity,
                load_limit=load.limit,
                mean=load.mean,
                lower=load.lower,
                upper=load.upper,
                in_band=load.in_band,
                band_score=load.band_score,
                limit_score=load.limit_score,
                flush_p999_s=flushes.get(load.broker),
                slow_rounds=(rounds or {}).get(load.broker),
            )
            for load in every
        ),
    )

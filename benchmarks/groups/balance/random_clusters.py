"""Random clusters of six kinds for a comparison with the greedy rival, by seeds that nobody has tuned to."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np

from headroom.planning.balance.arrays import AnyArray, FloatArray
from headroom.planning.balance.model import BalanceBroker, BrokerCapacity, ClusterModel, PartitionArrays, cluster_model

MIB = 1024**2
SEEDS = range(5000, 5200)
_HOURS = 6
_PARTITIONS_PER_TOPIC = 20


def random_cluster(seed: int) -> tuple[str, ClusterModel]:
    """Return the kind and the cluster of a seed; the kinds take turns."""
    kind = tuple(_KINDS)[seed % len(_KINDS)]
    return kind, _KINDS[kind](np.random.default_rng(seed))


def _new_brokers(draw: np.random.Generator) -> ClusterModel:
    """3 of 12 brokers are empty."""
    return _cluster(draw, 12, _placed(draw, np.r_[np.ones(9), np.zeros(3)], 300, 3), _rates(draw, 300))


def _hot_topic(draw: np.random.Generator) -> ClusterModel:
    """One topic with much traffic is on 3 of 9 brokers."""
    replicas, rates = _placed(draw, np.ones(9), 240, 2), _rates(draw, 240)
    replicas[:24] = _placed(draw, np.r_[np.ones(3), np.zeros(6)], 24, 2)
    rates[:24] *= 8
    return _cluster(draw, 9, replicas, rates)


def _few_large(draw: np.random.Generator) -> ClusterModel:
    """60 large partitions."""
    return _cluster(draw, 6, _placed(draw, draw.dirichlet(np.full(6, 3.0)), 60, 2), draw.lognormal(2, 0.5, 60) * MIB)


def _skewed(draw: np.random.Generator) -> ClusterModel:
    """Replicas are on brokers by random weights, one on each of 3 racks."""
    count, weights = int(draw.choice([6, 9, 12])), draw.dirichlet(np.full(4, 3.0), 3)
    by_rack = [3 * _placed(draw, own[: count // 3], 30 * count, 1) + rack for rack, own in enumerate(weights)]
    replicas = draw.permuted(np.concatenate(by_rack, axis=1), axis=1)
    return _cluster(draw, count, replicas, _rates(draw, 30 * count), 3)


def heavy_tail(brokers: int, partitions: int, seed: int) -> ClusterModel:
    """Return a cluster of which a few partitions carry most of the load."""
    return _tailed(np.random.default_rng(seed), brokers, partitions)


def _heavy_tail(draw: np.random.Generator) -> ClusterModel:
    """A few partitions carry most of the load."""
    return _tailed(draw, 15, 300)


def _tailed(draw: np.random.Generator, brokers: int, partitions: int) -> ClusterModel:
    rates = np.minimum(draw.pareto(1.1, partitions) + 0.05, 60.0) * MIB
    return _cluster(draw, brokers, _placed(draw, np.ones(brokers), partitions, 3), rates)


def _unequal(draw: np.random.Generator) -> ClusterModel:
    """Brokers differ in capacity, and some of them are more than half full."""
    units = draw.choice([1.0, 2.0], 8)
    return _cluster(draw, 8, _placed(draw, np.ones(8), 240, 2), _rates(draw, 240), units=units)


_KINDS: dict[str, Callable[[np.random.Generator], ClusterModel]] = {
    "new brokers": _new_brokers,
    "hot topic": _hot_topic,
    "few large": _few_large,
    "skewed": _skewed,
    "heavy tail": _heavy_tail,
    "unequal": _unequal,
}


def _placed(draw: np.random.Generator, weights: FloatArray, partitions: int, replication: int) -> AnyArray:
    chances = weights / weights.sum() * 0.999 + (weights > 0) * 0.001 / (weights > 0).sum()
    return np.array([draw.choice(len(weights), replication, False, chances) for _ in range(partitions)])


def _rates(draw: np.random.Generator, partitions: int) -> FloatArray:
    topics = draw.lognormal(0.0, 1.0, -(-partitions // _PARTITIONS_PER_TOPIC))
    return np.repeat(topics, _PARTITIONS_PER_TOPIC)[:partitions] * draw.lognormal(0.0, 0.3, partitions) * MIB


def _cluster(
    draw: np.random.Generator,
    brokers: int,
    replicas: AnyArray,
    rates: FloatArray,
    racks: int = 0,
    units: FloatArray | None = None,
) -> ClusterModel:
    count, slots = replicas.shape
    topic = np.arange(count) // _PARTITIONS_PER_TOPIC
    cycle = 1 + 0.3 * np.sin(2 * np.pi * (np.arange(_HOURS)[:, None] + draw.uniform(0, 24, count)) / 24)
    write = rates * cycle
    read = write * draw.choice([0.5, 1.0, 2.0], int(topic[-1]) + 1)[topic]
    sizes = rates * draw.choice([3600.0, 21600.0, 86400.0], int(topic[-1]) + 1)[topic] * draw.uniform(0.8, 1.2, count)
    arrays = PartitionArrays(
        topics=[f"topic-{number:03}" for number in topic],
        partitions=np.arange(count) % _PARTITIONS_PER_TOPIC,
        replicas=replicas,
        leaders=replicas[:, 0],
        write=write,
        read=read,
        requests=(write + read) / 20_000.0,
        sizes=sizes,
    )
    states = [BalanceBroker(number, f"rack-{number % racks}" if racks else None) for number in range(brokers)]
    if units is not None:
        share = units / units.sum()
        peak, out = write.sum(axis=1).max() * slots, (read + write * (slots - 1)).sum(axis=1).max()
        states = [
            replace(
                state,
                capacity=BrokerCapacity(2 * peak * own, 2 * out * own, 1.6 * float(sizes.sum()) * slots * own, None),
            )
            for state, own in zip(states, share.tolist(), strict=True)
        ]
    return cluster_model(states, arrays)

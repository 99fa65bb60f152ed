"""Synthetic clusters for load balance: balanced ones, and the same with replicas displaced, so that an answer is known.

A balanced cluster is made in blocks. Partitions of similar size and rate form a block, in which every broker leads one
partition and follows in RF - 1 others. Replicas are then displaced, with their bytes as the known price of the answer
that puts them back.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from headroom.planning.balance.arrays import AnyArray, FloatArray, IntArray
from headroom.planning.balance.model import BalanceBroker, BrokerCapacity, ClusterModel, PartitionArrays, cluster_model

MIB = 1024**2
# Retention of a topic in seconds: 1 h to 7 d.
RETENTIONS_S = (3600.0, 6 * 3600.0, 86400.0, 3 * 86400.0, 7 * 86400.0)
_PARTITIONS_PER_BROKER = 1000
# Capacity of a broker of one unit, as a multiple of the mean load.
_CAPACITY_RATIO = 2.5


@dataclass(frozen=True)
class ClusterShape:
    """Size of a synthetic cluster.

    Attributes:
        brokers: number of brokers.
        partitions: number of partitions.
        replication: replication factor.
        hours: hours of history.
        racks: number of racks; it divides the brokers. 0: none.
        large: number of brokers with twice the capacity of the others.
        topic_partitions: partitions of a topic.
        mean_write: mean write rate of a partition, bytes per second.
        seed: seed of all that is random.
    """

    brokers: int
    partitions: int
    replication: int = 3
    hours: int = 24
    racks: int = 0
    large: int = 0
    topic_partitions: int = 100
    mean_write: float = 200_000.0
    seed: int = 1


@dataclass(frozen=True, eq=False)
class KnownCluster:
    """A cluster that is out of balance, with an answer.

    Attributes:
        name: name of the scenario.
        model: the cluster.
        known_bytes: bytes that the answer copies.
        known_moves: replicas that the answer copies.
    """

    name: str
    model: ClusterModel
    known_bytes: float
    known_moves: int


@dataclass(frozen=True, eq=False)
class SyntheticPartitions:
    """Arrays of a balanced cluster; brokers are indices.

    Attributes:
        brokers: the brokers.
        arrays: the partitions.
    """

    brokers: tuple[BalanceBroker, ...]
    arrays: PartitionArrays


def balanced(shape: ClusterShape) -> SyntheticPartitions:
    """Return a cluster whose brokers carry their share of everything, within a few percent."""
    draw = np.random.default_rng(shape.seed)
    count = shape.partitions
    topic = np.arange(count) // shape.topic_partitions
    topics = int(topic[-1]) + 1
    retention = draw.choice(RETENTIONS_S, topics)[topic]
    # Rates of topics differ by orders of magnitude, rates of the partitions of one topic by some percent.
    rate = (draw.lognormal(0.0, 1.0, topics)[topic]) * draw.lognormal(0.0, 0.15, count)
    rate *= shape.mean_write / rate.mean()
    fan_out = draw.choice([0.5, 1.0, 2.0, 3.0], topics)[topic]
    hours = np.arange(shape.hours)[:, None]
    phase = draw.uniform(-3, 3, topics)[topic]
    cycle = 1 + 0.4 * np.sin(2 * np.pi * (hours - 9 + phase) / 24)
    write = (rate * cycle * draw.lognormal(0.0, 0.1, (shape.hours, count))).astype(np.float32)
    size = rate * retention * draw.uniform(0.95, 1.05, count)
    # Blocks of similar retention, fan-out and rate.
    order = np.lexsort((rate, fan_out, retention))
    replicas = np.empty((count, shape.replication), dtype=np.int64)
    replicas[order] = _block_replicas(shape, draw)
    arrays = PartitionArrays(
        topics=[f"topic-{number:05}" for number in topic],
        partitions=np.arange(count) % shape.topic_partitions,
        replicas=replicas,
        leaders=replicas[:, 0].copy(),
        write=write,
        read=write * fan_out.astype(np.float32),
        requests=write / np.float32(20_000.0) * (1 + fan_out.astype(np.float32)),
        sizes=size,
    )
    return SyntheticPartitions(_brokers(shape, arrays), arrays)


def _block_replicas(shape: ClusterShape, draw: np.random.Generator) -> IntArray:
    """Return the brokers of partitions in the order of blocks, (P, RF). Large brokers occur twice in each block."""
    slots = np.r_[np.arange(shape.brokers), np.arange(shape.large)]
    width, step = len(slots), max(1, shape.racks)
    blocks = -(-shape.partitions // width)
    replicas = np.empty((blocks, width, shape.replication), dtype=np.int64)
    for block in range(blocks):
        turned = np.roll(slots, int(draw.integers(width)))
        while True:
            # Shifts that differ by the number of racks keep the replicas of a partition on different racks.
            shifts = [0]
            for follower in range(1, shape.replication):
                shifts.append(follower + step * int(draw.integers(max(1, width // step))))
            rows = np.stack([np.roll(turned, -shift) for shift in shifts], axis=1)
            ordered = np.sort(rows, axis=1)
            if not (ordered[:, 1:] == ordered[:, :-1]).any():
                break
        replicas[block] = rows
    return replicas.reshape(-1, shape.replication)[: shape.partitions]


def _brokers(shape: ClusterShape, arrays: PartitionArrays) -> tuple[BalanceBroker, ...]:
    """Return brokers with 2.5 times the capacity that they use if all is balanced."""
    units = shape.brokers + shape.large
    replication = shape.replication
    per_unit = _CAPACITY_RATIO / units
    peak = arrays.write.sum(axis=1).max()
    out = (arrays.read + arrays.write * (replication - 1)).sum(axis=1).max()
    return tuple(
        BalanceBroker(
            number,
            f"rack-{number % shape.racks}" if shape.racks else None,
            BrokerCapacity(
                network_in_bytes_per_s=float(peak) * replication * per_unit * unit,
                network_out_bytes_per_s=float(out) * per_unit * unit,
                disk_bytes=float(arrays.sizes.sum()) * replication * per_unit * unit,
                # Kafka itself has no such limit; shares of leaders and replicas follow it.
                replicas=shape.partitions * replication * per_unit * unit,
            ),
        )
        for number in range(shape.brokers)
        for unit in [2.0 if number < shape.large else 1.0]
    )


def large_cluster(partitions: int) -> KnownCluster:
    """Return the large cluster: replicas of 90 % of the brokers are on the others."""
    brokers = max(8, partitions // _PARTITIONS_PER_BROKER)
    made = balanced(ClusterShape(brokers, partitions, racks=4 if brokers % 4 == 0 else 0))
    order = np.random.default_rng(5).permutation(brokers)
    hot = max(1, brokers // 10)
    return displaced(made, "large", order[hot:], order[:hot], 0.05, 3)


def wide_cluster() -> KnownCluster:
    """Return 100,000 partitions on 1,000 brokers, of which 100 have replicas of all others."""
    made = balanced(ClusterShape(1000, 100_000, racks=4))
    order = np.random.default_rng(5).permutation(1000)
    return displaced(made, "wide", order[100:], order[:100], 0.05, 3)


def displaced(
    made: SyntheticPartitions, name: str, sources: IntArray, targets: IntArray, ratio: float, seed: int
) -> KnownCluster:
    """Return a cluster in which a share of the replicas of some brokers lies on others.

    Args:
        made: the balanced cluster; it is not changed.
        name: name of the scenario.
        sources: brokers that lose replicas.
        targets: brokers that get them.
        ratio: share of the replicas that each source loses.
        seed: seed of the choice.
    """
    draw = np.random.default_rng(seed)
    arrays = made.arrays
    replicas, racks = arrays.replicas.copy(), [b.rack for b in made.brokers]
    rack = np.array([-1 - n if r is None else int(r.removeprefix("rack-")) for n, r in enumerate(racks)])
    known_bytes, known_moves = 0.0, 0
    for source in sources:
        rows, columns = np.nonzero(replicas == source)
        chosen = draw.permutation(len(rows))[: round(ratio * len(rows))]
        wanted = draw.choice(targets, len(chosen))
        for at, target in zip(chosen.tolist(), wanted.tolist(), strict=True):
            row, column = rows[at], columns[at]
            others = np.delete(replicas[row], column)
            if target in others or rack[target] in rack[others]:
                continue
            replicas[row, column] = target
            known_bytes += float(arrays.sizes[row])
            known_moves += 1
    return KnownCluster(name, _model(made, replicas), known_bytes, known_moves)


def _model(made: SyntheticPartitions, replicas: AnyArray) -> ClusterModel:
    arrays = made.arrays
    changed = PartitionArrays(
        arrays.topics,
        arrays.partitions,
        replicas,
        replicas[:, 0].copy(),
        arrays.write,
        arrays.read,
        arrays.requests,
        arrays.sizes,
    )
    return cluster_model(made.brokers, changed)


def published_case(seed: int = 1) -> ClusterModel:
    """Return AutoMQ's published case: 20 brokers, 5,000 topics, 100,000 single replicas, rates uniform to 1 MiB/s.

    Partition counts of topics are Poisson(10), scaled to 100,000; replicas are on brokers by weights of Poisson(10).
    """
    draw = np.random.default_rng(seed)
    brokers, topics, partitions = 20, 5000, 100_000
    counts = draw.poisson(10, topics)
    counts = np.maximum(1, np.round(counts * partitions / counts.sum())).astype(np.int64)
    # Rounding leaves a few partitions too many or too few.
    counts[np.argmax(counts)] += partitions - counts.sum()
    weights: FloatArray = draw.poisson(10, brokers).astype(np.float64)
    replicas = draw.choice(brokers, partitions, p=weights / weights.sum())
    arrays = PartitionArrays(
        topics=np.repeat([f"topic-{number:04}" for number in range(topics)], counts).tolist(),
        partitions=np.concatenate([np.arange(count) for count in counts]),
        replicas=replicas[:, None],
        leaders=replicas,
        write=draw.uniform(0, MIB, (1, partitions)),
        read=draw.uniform(0, MIB, (1, partitions)),
        requests=np.zeros((1, partitions)),
        sizes=np.zeros(partitions),
    )
    return cluster_model([BalanceBroker(number) for number in range(brokers)], arrays)

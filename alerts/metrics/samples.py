"""The sides of one tick as samples: brokers, and the moving partitions that weigh most."""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Iterator, Sequence

from alerts.inputs.throttle_status import PartitionEvidence, ThrottleStatus
from schemas import metrics
from schemas.alerts import Role, Verdict
from schemas.metrics import MetricSpec

# Metric, values of its labels, value.
Sample = tuple[MetricSpec, tuple[str, ...], float]


def throttle_samples(cluster: str, sides: Iterable[ThrottleStatus]) -> Iterator[Sample]:
    """Yield what is known of every broker and role.

    Args:
        cluster: name of the cluster.
        sides: of one tick.
    """
    for side in sides:
        labels = (cluster, str(side.broker), side.role.value)
        for spec, value in _numbers(side):
            if value is not None:
                yield spec, labels, float(value)
        yield metrics.VERDICT, (*labels, side.verdict.value), 1.0
        if side.role is Role.LEADER:
            yield metrics.PLANNED, labels[:2], float(side.planned_partitions)
        else:
            yield metrics.LOST_REPLICAS, labels[:2], float(side.lost_replicas)


def _numbers(side: ThrottleStatus) -> list[tuple[MetricSpec, float | None]]:
    demand = side.demand
    throttle, required = demand.throttle_bytes_per_s, demand.required_bytes_per_s
    # Where the verdict is unknown, no stall seen is not the same as none.
    blind = side.verdict is Verdict.NO_DATA and not side.stalled_replicas
    return [
        (metrics.THROTTLE, throttle),
        (metrics.REQUIRED, required),
        (metrics.IN_SYNC, demand.in_sync_bytes_per_s),
        (metrics.HEADROOM, None if throttle is None or required is None else throttle - required),
        (metrics.REMAINING, demand.remaining_bytes),
        (metrics.ETA, side.eta_s),
        (metrics.MOVING_REPLICAS, demand.limited_replicas + demand.free_replicas),
        (metrics.STALLED_REPLICAS, None if blind else side.stalled_replicas),
        (metrics.WAITING_REPLICAS, side.waiting_replicas),
    ]


def partition_samples(cluster: str, sides: Iterable[ThrottleStatus], top_n: int) -> Iterator[Sample]:
    """Yield what is known of the moving partitions of greatest write rate x followers.

    Args:
        cluster: name of the cluster.
        sides: of one tick; those of leaders tell, for a destination knows only its own share of a partition.
        top_n: most partitions.
    """
    for p in busiest([p for side in sides if side.role is Role.LEADER for p in side.partitions if p.moving], top_n):
        labels = (cluster, p.topic, str(p.partition))
        if p.write_bytes_per_s is not None:
            yield metrics.PARTITION_WRITE_RATE, labels, p.write_bytes_per_s
        if p.remaining_bytes is not None:
            yield metrics.PARTITION_REMAINING, labels, float(p.remaining_bytes)


def busiest(partitions: Sequence[PartitionEvidence], top_n: int) -> list[PartitionEvidence]:
    """Return the partitions of greatest write rate x followers, greatest first; of equals always the same."""
    return heapq.nsmallest(top_n, partitions, key=_rank)


def _rank(p: PartitionEvidence) -> tuple[float, float, str, int]:
    # Where no list names followers the write rate alone tells.
    written = p.write_bytes_per_s or 0.0
    return -written * p.followers, -written, p.topic, p.partition

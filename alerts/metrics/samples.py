"""Throttle statuses of one tick as metric samples: brokers and roles, and the busiest moving partitions."""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Iterator, Sequence

from headroom.alerts.inputs.throttle_status import PartitionEvidence, ThrottleStatus
from headroom.schemas import metrics
from headroom.schemas.alerts import Verdict
from headroom.schemas.keys import Role
from headroom.schemas.metrics import MetricSpec

# Metric, values of its labels, value.
Sample = tuple[MetricSpec, tuple[str, ...], float]


def throttle_samples(cluster: str, statuses: Iterable[ThrottleStatus]) -> Iterator[Sample]:
    """Yield the known values of every broker and role.

    Args:
        cluster: name of the cluster.
        statuses: throttle statuses of one tick.
    """
    for status in statuses:
        labels = (cluster, str(status.broker), status.role.value)
        for spec, value in _numbers(status):
            if value is not None:
                yield spec, labels, float(value)
        yield metrics.VERDICT, (*labels, status.verdict.value), 1.0
        if status.role is Role.LEADER:
            yield metrics.PLANNED, labels[:2], float(status.planned_partitions)
        else:
            yield metrics.LOST_REPLICAS, labels[:2], float(status.lost_replicas)


def _numbers(status: ThrottleStatus) -> list[tuple[MetricSpec, float | None]]:
    load = status.load
    throttle, required = load.throttle_bytes_per_s, load.required_bytes_per_s
    # If the verdict is unknown, zero stalled replicas does not mean that none is stalled.
    is_unknown = status.verdict is Verdict.NO_DATA and not status.stalled_replicas
    return [
        (metrics.THROTTLE, throttle),
        (metrics.REQUIRED, required),
        (metrics.IN_SYNC, load.in_sync_bytes_per_s),
        (metrics.HEADROOM, None if throttle is None or required is None else throttle - required),
        (metrics.REMAINING, load.remaining_bytes),
        (metrics.ETA, status.eta_s),
        (metrics.MOVING_REPLICAS, load.limited_replicas + load.free_replicas),
        (metrics.STALLED_REPLICAS, None if is_unknown else status.stalled_replicas),
        (metrics.WAITING_REPLICAS, status.waiting_replicas),
    ]


def partition_samples(cluster: str, statuses: Iterable[ThrottleStatus], top_n: int) -> Iterator[Sample]:
    """Yield the known values of the moving partitions with the highest write rate x followers.

    Args:
        cluster: name of the cluster.
        statuses: throttle statuses of one tick; only leaders count, since a destination has part of the traffic.
        top_n: largest number of partitions.
    """
    for p in busiest(
        [p for status in statuses if status.role is Role.LEADER for p in status.partitions if p.moving], top_n
    ):
        labels = (cluster, p.topic, str(p.partition))
        if p.write_bytes_per_s is not None:
            yield metrics.PARTITION_WRITE_RATE, labels, p.write_bytes_per_s
        if p.remaining_bytes is not None:
            yield metrics.PARTITION_REMAINING, labels, float(p.remaining_bytes)


def busiest(partitions: Sequence[PartitionEvidence], top_n: int) -> list[PartitionEvidence]:
    """Return the partitions with the highest write rate x followers, descending; ties in the order of names."""
    return heapq.nsmallest(top_n, partitions, key=_rank)


def _rank(p: PartitionEvidence) -> tuple[float, float, str, int]:
    # Without listed followers the product is zero, so the write rate decides.
    written = p.write_bytes_per_s or 0.0
    return -written * p.followers, -written, p.topic, p.partition

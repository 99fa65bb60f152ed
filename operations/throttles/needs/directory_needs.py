"""Needs of the rate of moves between log directories, which Kafka lists nowhere but at the brokers themselves."""

from __future__ import annotations

from headroom.cluster.live.live_cluster import LiveCluster
from headroom.cluster.live.throttle_state import ThrottleState
from headroom.cluster.log_dirs.describe import LogDirsReading
from headroom.operations.throttles.needs.throttle_need import MAX_PARTITIONS, MoveNeed, NeedingPartition
from headroom.planning.log_dirs.broker_logs import BrokerLogs
from headroom.schemas.config import Settings


def read_limited_log_dirs(settings: Settings, view: ThrottleState) -> LogDirsReading:
    """Return the log directories of the brokers on which a rate for moves between them is in force.

    Only these are read: an answer has every replica of the broker.

    Raises:
        HeadroomError: no broker could be reached.
    """
    if not view.log_dirs():
        return LogDirsReading({}, {})
    with LiveCluster(settings) as cluster:
        return cluster.log_dirs(view.log_dirs())


def directory_needs(view: ThrottleState, reading: LogDirsReading) -> tuple[MoveNeed, ...]:
    """Return the need of each broker that moves replicas between its log directories, by broker.

    Args:
        view: rates in force.
        reading: log directories of the brokers with such a rate.
    """
    return tuple(_need(view, logs) for _, logs in sorted(reading.brokers.items()) if logs.futures)


def _need(view: ThrottleState, logs: BrokerLogs) -> MoveNeed:
    remaining = {name: logs.remaining_bytes(name) for name in logs.futures}
    largest = sorted(remaining, key=lambda name: (-remaining[name], name))
    return MoveNeed(
        broker=logs.broker,
        role="log_dirs",
        throttle_bytes_per_s=view.of(logs.broker).log_dirs_bytes_per_s,
        in_sync_bytes_per_s=None,
        required_bytes_per_s=None,
        moving_bytes_per_s=None,
        verdict=None,
        moving_partitions=len(remaining),
        partitions=tuple(NeedingPartition(*name, None) for name in largest[:MAX_PARTITIONS]),
        remaining_bytes=sum(remaining.values()),
    )

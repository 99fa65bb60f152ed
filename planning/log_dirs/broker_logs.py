"""Logs by directory as a broker reports them, and a cluster state that knows them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace

from headroom.planning.reassignments.cluster_state import ClusterState, LogDirectory, PartitionPlacement
from headroom.schemas.keys import TopicPartition


@dataclass(frozen=True, slots=True)
class ReplicaLog:
    """One log of a replica in one directory.

    Attributes:
        path: path of the directory.
        size_bytes: bytes of its segments.
        offset_lag: of a current log: log end offset behind the high watermark, 0 or more. Of a future log: offsets
            behind the current log.
    """

    path: str
    size_bytes: int
    offset_lag: int


@dataclass(frozen=True)
class BrokerLogs:
    """Log directories of one broker, with the logs in them.

    Attributes:
        broker: id.
        directories: all its log directories, by path; those that are offline too.
        logs: current log by partition; logs in an offline directory are missing.
        futures: log that will replace the current one, by partition that moves between directories.
        untiered_bytes: bytes that are not in remote storage yet, of the logs that it leads and of which new replicas
            copy only these. Of others, new replicas copy all.
        awaiting_leader: those of which new replicas copy nothing before its next upload to remote storage, or before
            its next record.
    """

    broker: int
    directories: tuple[LogDirectory, ...]
    logs: Mapping[TopicPartition, ReplicaLog] = field(default_factory=dict)
    futures: Mapping[TopicPartition, ReplicaLog] = field(default_factory=dict)
    untiered_bytes: Mapping[TopicPartition, int] = field(default_factory=dict)
    awaiting_leader: frozenset[TopicPartition] = frozenset()

    def remaining_bytes(self, name: TopicPartition) -> int:
        """Return the bytes that a move between directories still has to copy; 0 if the partition does not move.

        The brokers report bytes of whole segments, so this is exact only up to what both logs deleted meanwhile.
        """
        future, current = self.futures.get(name), self.logs.get(name)
        return max(0, current.size_bytes - future.size_bytes) if future is not None and current is not None else 0


def with_log_dirs(state: ClusterState, read: Mapping[int, BrokerLogs]) -> ClusterState:
    """Return the state with the brokers' directories, the directory of each replica, and the size of each partition.

    Brokers and partitions that were not read keep what the state has. The size is that of the leader's log. If the
    leader was not read, it is that of the largest in-sync follower, whose log has the same records. Future logs never
    count. Adding replicas have copied what their logs have, not what the state has: its gauges may be those of an
    earlier replica (Kafka 4.3.1).

    Args:
        state: the cluster.
        read: logs by broker that reported them.
    """
    brokers = {
        broker: replace(own, log_dirs=read[broker].directories) if broker in read else own
        for broker, own in state.brokers.items()
    }
    partitions = {name: _with_logs(placement, read) for name, placement in state.partitions.items()}
    return replace(state, brokers=brokers, partitions=partitions)


def _with_logs(placement: PartitionPlacement, read: Mapping[int, BrokerLogs]) -> PartitionPlacement:
    name, leader = placement.name, placement.leader
    logs = {b: log for b in placement.replicas if b in read and (log := read[b].logs.get(name)) is not None}
    if not logs:
        return placement
    own = None if leader is None else read.get(leader)
    sizes = _sizes([leader], logs) or _sizes(placement.isr, logs)
    return replace(
        placement,
        size_bytes=max(sizes, default=placement.size_bytes),
        untiered_bytes=placement.untiered_bytes if own is None else own.untiered_bytes.get(name),
        awaits_leader=placement.awaits_leader if own is None else name in own.awaiting_leader,
        log_dirs={**placement.log_dirs, **{broker: log.path for broker, log in logs.items()}},
        copied_bytes={**placement.copied_bytes, **{b: logs[b].size_bytes for b in placement.adding if b in logs}},
    )


def _sizes(brokers: Iterable[int | None], logs: Mapping[int, ReplicaLog]) -> list[int]:
    return [logs[broker].size_bytes for broker in brokers if broker is not None and broker in logs]

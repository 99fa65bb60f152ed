"""A cluster of three brokers with two log directories each, for plans that name directories."""

from __future__ import annotations

from headroom.planning.log_dirs.broker_logs import BrokerLogs, ReplicaLog
from headroom.planning.reassignments.cluster_state import BrokerState, ClusterState, LogDirectory, PartitionPlacement
from headroom.planning.reassignments.plan import ReassignmentPlan, TargetAssignment
from headroom.schemas.keys import TopicPartition

MB = 1_000_000
GB = 1_000_000_000
A, B = "/disk/a", "/disk/b"
ORDERS = TopicPartition("orders", 0)
BOTH = (LogDirectory(A, 100 * GB, 40 * GB), LogDirectory(B, 100 * GB, 10 * GB))


def placed(topic: str = "orders", partition: int = 0, **changes: object) -> PartitionPlacement:
    """Return a partition of 1 GB on brokers 1 (leader) and 2, in directory A of both."""
    found = {
        "leader": 1,
        "replicas": (1, 2),
        "isr": (1, 2),
        "size_bytes": GB,
        "write_bytes_per_s": 0.0,
        "log_dirs": {1: A, 2: A},
    }
    return PartitionPlacement(topic, partition, **{**found, **changes})  # type: ignore[arg-type]


def cluster(*partitions: PartitionPlacement, directories: tuple[LogDirectory, ...] = BOTH) -> ClusterState:
    """Return brokers 1 to 3, all with these directories."""
    brokers = {broker: BrokerState(broker, log_dirs=directories) for broker in (1, 2, 3)}
    return ClusterState("test", 0, brokers, {p.name: p for p in partitions or (placed(),)})


def plan(*targets: tuple[str, int, tuple[int, ...], tuple[str, ...] | None]) -> ReassignmentPlan:
    """Return a plan of (topic, partition, replicas, log_dirs)."""
    return ReassignmentPlan(tuple(TargetAssignment(TopicPartition(*target[:2]), *target[2:]) for target in targets))


def logs(
    broker: int,
    current: dict[TopicPartition, tuple[str, int]],
    futures: dict[TopicPartition, tuple[str, int]] | None = None,
) -> BrokerLogs:
    """Return the logs of a broker, each as (path, bytes); a future log is one offset behind."""
    return BrokerLogs(
        broker,
        BOTH,
        {name: ReplicaLog(path, size, 0) for name, (path, size) in current.items()},
        {name: ReplicaLog(path, size, 1) for name, (path, size) in (futures or {}).items()},
    )

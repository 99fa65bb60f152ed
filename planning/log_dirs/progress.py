"""Progress of directory moves, from the logs that brokers report."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum

from headroom.planning.log_dirs.broker_logs import BrokerLogs
from headroom.planning.reassignments.plan import ReassignmentPlan
from headroom.schemas.keys import TopicPartition


class DirectoryState(str, Enum):
    """State of a replica with respect to its log directory in a plan.

    DONE: it is there. MOVING: its copy there is under way. ELSEWHERE: it is in another directory and not on its way
    there. ABSENT: the broker has no log of it. UNKNOWN: the broker did not report its logs.
    """

    DONE = "done"
    MOVING = "moving"
    ELSEWHERE = "elsewhere"
    ABSENT = "absent"
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True)
class DirectoryProgress:
    """Progress of one replica.

    Attributes:
        name: partition.
        broker: broker of the replica.
        destination: directory in the plan.
        state: state of the replica.
        current: directory that it is in; None if absent or unknown.
        remaining_bytes: bytes still to copy; 0 if done, None if unknown or not on its way.
    """

    name: TopicPartition
    broker: int
    destination: str
    state: DirectoryState
    current: str | None = None
    remaining_bytes: int | None = None


def directory_progress(plan: ReassignmentPlan, read: Mapping[int, BrokerLogs]) -> tuple[DirectoryProgress, ...]:
    """Return the progress of every replica that a plan gives a named directory, in the order of the plan.

    Args:
        plan: the plan; ``any`` is left out.
        read: logs by broker that reported them.

    Source: Kafka 4.3.1, ``ReassignPartitionsCommand.findLogDirMoveStates``.
    """
    return tuple(
        replica_progress(assignment.name, broker, path, read.get(broker))
        for assignment in plan
        for broker, path in assignment.named_log_dirs.items()
    )


def replica_progress(name: TopicPartition, broker: int, path: str, logs: BrokerLogs | None) -> DirectoryProgress:
    """Return the progress of one replica on its way to a directory.

    Args:
        name: partition.
        broker: broker of the replica.
        path: directory that it is to be in.
        logs: logs of the broker; None if it did not report them.
    """
    if logs is None:
        return DirectoryProgress(name, broker, path, DirectoryState.UNKNOWN)
    current, future = logs.logs.get(name), logs.futures.get(name)
    at = None if current is None else current.path
    if future is not None and future.path == path:
        remaining = None if current is None else logs.remaining_bytes(name)
        return DirectoryProgress(name, broker, path, DirectoryState.MOVING, at, remaining)
    # With a copy under way to a third directory, the replica does not stay where it is.
    if at == path and future is None:
        return DirectoryProgress(name, broker, path, DirectoryState.DONE, at, 0)
    state = DirectoryState.ABSENT if current is None and future is None else DirectoryState.ELSEWHERE
    return DirectoryProgress(name, broker, path, state, at)

"""Directory moves of a plan: replicas that change their directory, and new replicas in a named directory."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from headroom.planning.reassignments.cluster_state import ClusterState
from headroom.planning.reassignments.plan import ReassignmentPlan, TargetAssignment
from headroom.schemas.keys import TopicPartition


@dataclass(frozen=True, slots=True)
class DirectoryMove:
    """A replica that gets a named log directory.

    Attributes:
        name: topic and number of the partition.
        broker: broker of the replica.
        source: directory that it is in now; None if unknown, or if the plan adds the replica.
        destination: directory that it gets.
        size_bytes: bytes to copy; None if unknown.
        new_replica: whether the plan adds the replica. Its copy comes from the leader, and not from another directory.
        write_bytes_per_s: write rate of the partition; None if unknown.
    """

    name: TopicPartition
    broker: int
    source: str | None
    destination: str
    size_bytes: int | None
    new_replica: bool = False
    write_bytes_per_s: float | None = None


def directory_moves(plan: ReassignmentPlan, state: ClusterState) -> tuple[DirectoryMove, ...]:
    """Return the replicas that a plan puts into another directory, by topic, partition and broker.

    A replica that is in its directory already is left out, and so is ``any``: there the broker chooses, and a replica
    that exists stays where it is. Both kinds are requested in the same way: of a new replica before the reassignment,
    because the broker keeps the directory for it.

    Args:
        plan: the plan.
        state: the cluster, with the directories of its replicas as far as known.

    Source: Kafka 4.3.1, ``ReassignPartitionsCommand.executeAssignment`` and ``ReplicaManager.alterReplicaLogDirs``.
    """
    moves = (move for assignment in plan if assignment.named_log_dirs for move in _moves_of(assignment, state))
    return tuple(sorted(moves, key=lambda move: (move.name, move.broker)))


def within_brokers(moves: Iterable[DirectoryMove]) -> tuple[DirectoryMove, ...]:
    """Return the moves between directories of one broker, which the rate for log directories throttles."""
    return tuple(move for move in moves if not move.new_replica)


def bytes_by_broker(moves: Iterable[DirectoryMove]) -> dict[int, int | None]:
    """Return the bytes that each broker copies between its directories; None if a size is unknown."""
    sums: dict[int, int | None] = {}
    for move in within_brokers(moves):
        so_far = sums.get(move.broker, 0)
        sums[move.broker] = None if so_far is None or move.size_bytes is None else so_far + move.size_bytes
    return sums


def _moves_of(assignment: TargetAssignment, state: ClusterState) -> list[DirectoryMove]:
    now = state.partitions.get(assignment.name)
    if now is None:
        return []
    # An adding replica of a running move has its log already, and so a directory to move from.
    return [
        DirectoryMove(
            assignment.name,
            broker,
            now.log_dirs.get(broker),
            path,
            now.size_bytes,
            broker not in now.replicas,
            now.write_bytes_per_s,
        )
        for broker, path in assignment.named_log_dirs.items()
        if path != now.log_dirs.get(broker)
    ]

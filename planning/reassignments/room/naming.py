"""Log directories of new replicas, named in a plan where those that brokers choose may have no room."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from heapq import heapify, heapreplace

from headroom.planning.reassignments.cluster_state import ClusterState, LogDirectory
from headroom.planning.reassignments.plan import ANY_LOG_DIR, ReassignmentPlan, TargetAssignment
from headroom.planning.reassignments.room.checks import check_room
from headroom.schemas.keys import TopicPartition

_Paths = Mapping[int, Mapping[TopicPartition, str]]


def with_named_directories(plan: ReassignmentPlan, state: ClusterState) -> tuple[ReassignmentPlan, tuple[int, ...]]:
    """Return a plan with the directories of new replicas on brokers that may overfill one, and these brokers.

    The largest replicas are placed first, each into the directory with the most free bytes. A broker with a replica for
    which no directory has room keeps its choice.

    Args:
        plan: the plan, without directories.
        state: the cluster.
    """
    crowded = check_room([plan], state).crowded
    if not crowded:
        return plan, ()
    new: dict[int, list[tuple[int, TopicPartition]]] = {broker: [] for broker in crowded}
    for assignment in plan:
        placement = state.partitions[assignment.name]
        for broker in crowded.keys() & set(assignment.replicas).difference(placement.replicas):
            new[broker].append((placement.new_replica_bytes or 0, assignment.name))
    paths = {
        broker: found
        for broker, left in crowded.items()
        if (found := _paths(new[broker], left, state.brokers[broker].log_dirs))
    }
    return ReassignmentPlan(tuple(_named(assignment, paths) for assignment in plan)), tuple(sorted(paths))


def _paths(
    copies: Collection[tuple[int, TopicPartition]],
    left_bytes: Mapping[tuple[str, ...], int],
    directories: Collection[LogDirectory],
) -> dict[TopicPartition, str]:
    """Return the directory of each copy; empty if one of them has room nowhere."""
    logs = {directory.path: directory.logs or 0 for directory in directories}
    volumes = [(-left, paths) for paths, left in left_bytes.items()]
    heapify(volumes)
    found: dict[TopicPartition, str] = {}
    for size_bytes, name in sorted(copies, key=lambda copy: (-copy[0], copy[1])):
        used, paths = volumes[0]
        if size_bytes > -used:
            return {}
        found[name] = min(paths, key=lambda path: (logs[path], path))
        logs[found[name]] += 1
        heapreplace(volumes, (used + size_bytes, paths))
    return found


def _named(assignment: TargetAssignment, paths: _Paths) -> TargetAssignment:
    log_dirs = tuple(paths.get(broker, {}).get(assignment.name, ANY_LOG_DIR) for broker in assignment.replicas)
    if all(path == ANY_LOG_DIR for path in log_dirs):
        return assignment
    return TargetAssignment(assignment.name, assignment.replicas, log_dirs)

"""Log directories of new replicas, named in a plan where those that brokers choose may have no room."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from heapq import heapify, heapreplace

from headroom.planning.reassignments.cluster_state import ClusterState, LogDirectory
from headroom.planning.reassignments.plan import ANY_LOG_DIR, ReassignmentPlan, TargetAssignment
from headroom.planning.reassignments.room.checks import check_room
from headroom.schemas.keys import TopicPartition
from headroom.schemas.text.names import broker_names

# Directories of new replicas, by broker and partition.
PathsByBroker = Mapping[int, Mapping[TopicPartition, str]]
_SHOWN = 5


def with_named_directories(plan: ReassignmentPlan, state: ClusterState) -> tuple[ReassignmentPlan, tuple[int, ...]]:
    """Return a plan with the directories of new replicas on brokers that may overfill one, and these brokers.

    Each goes into the directory with the most free bytes (``paths_of_copies``). A broker with a replica for which no
    directory has room keeps its choice.

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
        if (found := paths_of_copies(new[broker], left, state.brokers[broker].log_dirs))
    }
    return ReassignmentPlan(tuple(with_paths(assignment, paths) for assignment in plan)), tuple(sorted(paths))


def with_paths(assignment: TargetAssignment, paths: PathsByBroker) -> TargetAssignment:
    """Return the target of a partition with the directories of its replicas that have one; the others have any.

    Args:
        assignment: the target, without directories.
        paths: the directories.
    """
    log_dirs = tuple(paths.get(broker, {}).get(assignment.name, ANY_LOG_DIR) for broker in assignment.replicas)
    if all(path == ANY_LOG_DIR for path in log_dirs):
        return assignment
    return TargetAssignment(assignment.name, assignment.replicas, log_dirs)


def naming_notes(named: Sequence[int]) -> Iterator[str]:
    """Yield, as a sentence, the brokers on which a plan names the log directories of new replicas."""
    if named:
        yield (
            f"The plan names log directories for new replicas on {broker_names(named, _SHOWN)}: that with the fewest "
            "logs, which the broker would choose, may have no room."
        )


def paths_of_copies(
    copies: Sequence[tuple[int, TopicPartition]],
    left_bytes: Mapping[tuple[str, ...], int],
    directories: Collection[LogDirectory],
) -> dict[TopicPartition, str]:
    """Return the directory of each copy; empty if one of them has room nowhere.

    Args:
        copies: sizes and names; they are placed largest first, or, if one then finds no room, in this order.
        left_bytes: bytes that are left, by the directories on a volume.
        directories: all directories of the broker.
    """
    largest_first = sorted(copies, key=lambda copy: (-copy[0], copy[1]))
    return _paths(largest_first, left_bytes, directories) or _paths(copies, left_bytes, directories)


def _paths(
    copies: Sequence[tuple[int, TopicPartition]],
    left_bytes: Mapping[tuple[str, ...], int],
    directories: Collection[LogDirectory],
) -> dict[TopicPartition, str]:
    """Return the directory of each copy, placed in their order; empty if one of them has room nowhere."""
    logs = {directory.path: directory.logs or 0 for directory in directories}
    volumes = [(-left, paths) for paths, left in left_bytes.items()]
    heapify(volumes)
    found: dict[TopicPartition, str] = {}
    for size_bytes, name in copies:
        used, paths = volumes[0]
        if size_bytes > -used:
            return {}
        found[name] = min(paths, key=lambda path: (logs[path], path))
        logs[found[name]] += 1
        heapreplace(volumes, (used + size_bytes, paths))
    return found

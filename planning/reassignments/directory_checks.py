"""Checks of a plan's log directories before anything moves: that they exist, are usable, and have room."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from headroom.planning.reassignments.cluster_state import BrokerState, ClusterState, LogDirectory, PartitionPlacement
from headroom.planning.reassignments.directory_moves import DirectoryMove
from headroom.planning.reassignments.plan import ANY_LOG_DIR, ReassignmentPlan
from headroom.schemas.errors import HeadroomError
from headroom.schemas.keys import TopicPartition

_NAMED = 3
_NAME_OTHERS = "Name another log directory of that broker, or any"
_MAKE_ROOM = (
    "Free space there, choose another destination, or move in batches, each after the one before. Until a move ends, "
    "both copies exist."
)


# A plan may make hundreds of thousands of them.
class _Copy(NamedTuple):
    """A copy that a broker has to find room for; ``path`` is None if the broker chooses the directory."""

    name: TopicPartition
    path: str | None
    size_bytes: int


def directory_errors(moves: Iterable[DirectoryMove], state: ClusterState) -> tuple[HeadroomError, ...]:
    """Return one error per broker and directory that a plan names and the broker cannot use.

    A directory is unusable if the broker has none of that path, or if it is offline or cordoned. A cordoned one still
    serves the replicas in it, so only new ones count. If a broker did not report its directories, it is an error
    too, because Kafka would refuse the directory only after the plan was submitted.

    Args:
        moves: the directory moves of the plan.
        state: the cluster, with the directories of its brokers as far as known.

    Source: Kafka 4.3.1, ``LogManager.isLogDirOnline``, which compares the absolute paths as text.
    """
    by_directory: dict[tuple[int, str], list[DirectoryMove]] = defaultdict(list)
    for move in moves:
        by_directory[move.broker, move.destination].append(move)
    errors = (
        _error(broker, path, moves, state.brokers.get(broker)) for (broker, path), moves in sorted(by_directory.items())
    )
    return tuple(error for error in errors if error is not None)


def room_errors(plan: ReassignmentPlan, state: ClusterState) -> tuple[HeadroomError, ...]:
    """Return one error per directory, or broker, without room for the copies that a plan sends there.

    Until the end of a move both copies exist, so nothing that leaves is deducted. Of a running copy only what is left
    counts. Partitions of unknown size and directories of unknown free space are left out. Where the broker chooses the
    directory, it is an error only if none has room for the partition, or all together have none for all. Directories
    that report the same size and the same free space, to the byte, are on one volume and count once.

    Args:
        plan: the plan.
        state: the cluster, with sizes and free space as far as known.
    """
    errors: list[HeadroomError] = []
    for broker, copies in sorted(_copies(plan, state).items()):
        broker_state = state.brokers.get(broker)
        if broker_state is not None:
            usable = [d for d in broker_state.log_dirs if not d.offline and not d.cordoned]
            errors += _room_errors(broker, copies, usable)
    return tuple(errors)


def _error(
    broker: int, path: str, moves: list[DirectoryMove], broker_state: BrokerState | None
) -> HeadroomError | None:
    directories = {directory.path: directory for directory in broker_state.log_dirs} if broker_state is not None else {}
    subject = f"log directory {path} of broker {broker}"
    if not directories:
        subject, rule = f"broker {broker}", "did not report its log directories"
        remedy = "See that the broker is up and that this user may Describe the cluster, then try again."
    elif path not in directories:
        rule, remedy = "does not exist", f"It has {', '.join(directories)}. {_NAME_OTHERS}."
    elif directories[path].offline:
        rule, remedy = "is offline", f"Repair its disk. {_NAME_OTHERS}."
    elif directories[path].cordoned:
        rule, remedy = "is cordoned", f"Remove it from cordoned.log.dirs. {_NAME_OTHERS}."
    else:
        return None
    return HeadroomError(subject, f"{rule}, and the plan puts {_some(move.name for move in moves)} there", remedy)


def _copies(plan: ReassignmentPlan, state: ClusterState) -> dict[int, list[_Copy]]:
    """Return the copies by broker that the plan makes: new replicas, and moves between directories."""
    copies: dict[int, list[_Copy]] = defaultdict(list)
    for name, assignment in plan.by_name.items():
        now = state.partitions.get(name)
        if now is None or now.size_bytes is None:
            continue
        if assignment.log_dirs is None:
            for broker in assignment.replicas:
                if broker not in now.replicas or broker in now.adding:
                    copies[broker].append(_Copy(name, None, _left_bytes(now, now.size_bytes, broker)))
            continue
        for broker, path in zip(assignment.replicas, assignment.log_dirs, strict=True):
            named = None if path == ANY_LOG_DIR else path
            if broker not in now.replicas or broker in now.adding:
                copies[broker].append(_Copy(name, named, _left_bytes(now, now.size_bytes, broker)))
            elif named is not None and named != now.log_dirs.get(broker):
                copies[broker].append(_Copy(name, named, now.size_bytes))
    return copies


def _left_bytes(now: PartitionPlacement, size_bytes: int, broker: int) -> int:
    return max(0, size_bytes - now.copied_bytes[broker]) if broker in now.copied_bytes else size_bytes


def _room_errors(broker: int, copies: Sequence[_Copy], usable: Sequence[LogDirectory]) -> Iterator[HeadroomError]:
    free = {d.path: d.usable_bytes for d in usable if d.usable_bytes is not None}
    is_full = False
    for path in sorted({copy.path for copy in copies if copy.path is not None} & free.keys()):
        here = [copy for copy in copies if copy.path == path]
        if _bytes_of(here) > free[path]:
            is_full = True
            yield _no_room(f"log directory {path} of broker {broker}", here, free[path])
    if is_full or not free or len(free) < len(usable):
        return
    largest = max((copy for copy in copies if copy.path is None), key=lambda copy: copy.size_bytes, default=None)
    if largest is not None and largest.size_bytes > (most := max(free.values())):
        rule = f"has {most:,} bytes free in one log directory, and {largest.name} has {largest.size_bytes:,}"
        yield HeadroomError(f"broker {broker}", rule, _MAKE_ROOM)
        return
    # Directories of one volume report the same numbers.
    in_all = sum(usable_bytes for _, usable_bytes in {(d.total_bytes, free[d.path]) for d in usable})
    if _bytes_of(copies) > in_all:
        yield _no_room(f"broker {broker}", copies, in_all)


def _no_room(subject: str, copies: Sequence[_Copy], free_bytes: int) -> HeadroomError:
    names = _some(copy.name for copy in copies)
    rule = f"has {free_bytes:,} bytes free, and the plan copies {_bytes_of(copies):,} there ({names})"
    return HeadroomError(subject, rule, _MAKE_ROOM)


def _bytes_of(copies: Sequence[_Copy]) -> int:
    return sum(copy.size_bytes for copy in copies)


def _some(names: Iterable[TopicPartition]) -> str:
    ordered = sorted(set(names))
    more = f" and {len(ordered) - _NAMED} more" if len(ordered) > _NAMED else ""
    return ", ".join(map(str, ordered[:_NAMED])) + more

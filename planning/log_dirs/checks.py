"""Checks of a plan's log directories before anything moves: that they exist, are usable, and have room."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from planning.log_dirs.directory_moves import DirectoryMove
from planning.reassignments.cluster_state import BrokerState, ClusterState, LogDirectory
from planning.reassignments.plan import ANY_LOG_DIR, ReassignmentPlan
from schemas.errors import HeadroomError
from schemas.keys import TopicPartition

_NAMED = 3
_NAME_OTHERS = "Name another log directory of that broker, or any"


@dataclass(frozen=True)
class _Copy:
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


def room_errors(
    plan: ReassignmentPlan, moves: Iterable[DirectoryMove], state: ClusterState
) -> tuple[HeadroomError, ...]:
    """Return one error per directory, or broker, without room for the copies that a plan sends there.

    Until the end of a move both copies exist, so nothing is deducted. Partitions of unknown size and directories of
    unknown free space are left out. Where the broker chooses the directory, it is an error only if none has room for
    the partition, or all together have none for all. Directories that report the same size and the same free space, to
    the byte, are on one volume and count once.

    Args:
        plan: the plan.
        moves: its directory moves.
        state: the cluster, with sizes and free space as far as known.
    """
    errors: list[HeadroomError] = []
    for broker, copies in sorted(_copies(plan, moves, state).items()):
        found = state.brokers.get(broker)
        free = _free_bytes(found.log_dirs) if found is not None else {}
        errors += _room_errors(broker, copies, free)
    return tuple(errors)


def _error(broker: int, path: str, moves: list[DirectoryMove], found: BrokerState | None) -> HeadroomError | None:
    directories = {directory.path: directory for directory in found.log_dirs} if found is not None else {}
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


def _copies(plan: ReassignmentPlan, moves: Iterable[DirectoryMove], state: ClusterState) -> dict[int, list[_Copy]]:
    """Return the copies by broker that the plan makes: new replicas, and moves between directories."""
    copies: dict[int, list[_Copy]] = defaultdict(list)
    for move in moves:
        if move.size_bytes is not None:
            copies[move.broker].append(_Copy(move.name, move.destination, move.size_bytes))
    for assignment in plan:
        now = state.partitions.get(assignment.name)
        if now is None or now.size_bytes is None:
            continue
        log_dirs = assignment.log_dirs or (ANY_LOG_DIR,) * len(assignment.replicas)
        for broker, path in zip(assignment.replicas, log_dirs, strict=True):
            if path == ANY_LOG_DIR and broker not in now.replicas:
                copies[broker].append(_Copy(assignment.name, None, now.size_bytes))
    return copies


def _free_bytes(directories: Iterable[LogDirectory]) -> dict[str, tuple[int | None, int]]:
    """Return the size and the free bytes of each directory that can be used and reports them, by path."""
    return {
        d.path: (d.total_bytes, d.usable_bytes)
        for d in directories
        if d.usable_bytes is not None and not d.offline and not d.cordoned
    }


def _room_errors(
    broker: int, copies: list[_Copy], free: Mapping[str, tuple[int | None, int]]
) -> Iterator[HeadroomError]:
    known = [copy for copy in copies if copy.path is None or copy.path in free] if free else []
    remedy = "Free space there, or choose another destination. Until the move ends, both copies exist."
    is_full = False
    for path in sorted({copy.path for copy in known if copy.path is not None}):
        here = [copy for copy in known if copy.path == path]
        needed, usable = sum(copy.size_bytes for copy in here), free[path][1]
        if needed > usable:
            is_full = True
            rule = f"has {usable} bytes free, and the plan copies {needed} there ({_some(c.name for c in here)})"
            yield HeadroomError(f"log directory {path} of broker {broker}", rule, remedy)
    largest = max((copy for copy in known if copy.path is None), key=lambda copy: copy.size_bytes, default=None)
    if largest is not None and largest.size_bytes > (most := max(usable for _, usable in free.values())):
        is_full = True
        rule = f"has {most} bytes free in one log directory, and {largest.name} has {largest.size_bytes}"
        yield HeadroomError(f"broker {broker}", rule, remedy)
    # Directories of one volume report the same numbers.
    in_all, needed = sum(usable for _, usable in set(free.values())), sum(copy.size_bytes for copy in known)
    if needed > in_all and not is_full:
        rule = f"has {in_all} bytes free, and the plan copies {needed} there ({_some(c.name for c in known)})"
        yield HeadroomError(f"broker {broker}", rule, remedy)


def _some(names: Iterable[TopicPartition]) -> str:
    ordered = sorted(set(names))
    more = f" and {len(ordered) - _NAMED} more" if len(ordered) > _NAMED else ""
    return ", ".join(map(str, ordered[:_NAMED])) + more

"""Checks of a plan's log directories before anything moves: that they exist and can be used."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable

from headroom.planning.reassignments.cluster_state import BrokerState, ClusterState
from headroom.planning.reassignments.directory_moves import DirectoryMove
from headroom.planning.reassignments.run.conditions import partitions_text
from headroom.schemas.errors import HeadroomError

_NAME_OTHERS = "Name another log directory of that broker, or any"


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
    names = partitions_text({move.name for move in moves})
    return HeadroomError(subject, f"{rule}, and the plan puts {names} there", remedy)

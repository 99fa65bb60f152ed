"""Selection and order of scenes."""

from __future__ import annotations

from collections.abc import Sequence

from benchmarks.fixtures.bench_cluster import failure
from benchmarks.groups.large_moves.scenes.base import MoveScene
from benchmarks.groups.large_moves.scenes.death import DestinationDeath, LeaderDeath
from benchmarks.groups.large_moves.scenes.directories import LogDirectories
from benchmarks.groups.large_moves.scenes.growing import GrowingFault
from benchmarks.groups.large_moves.scenes.large import LargeMove
from benchmarks.groups.large_moves.scenes.leaderless import LeaderlessPartition
from benchmarks.groups.large_moves.scenes.near import NearThreshold
from benchmarks.groups.large_moves.scenes.restart import RestartBefore, RestartDuring
from benchmarks.groups.large_moves.scenes.short import LowThrottle
from benchmarks.groups.large_moves.scenes.uneven import UnevenThrottles

CLASSES: tuple[type[MoveScene], ...] = (
    LargeMove,
    LowThrottle,
    LeaderDeath,
    DestinationDeath,
    RestartBefore,
    RestartDuring,
    UnevenThrottles,
    NearThreshold,
    GrowingFault,
    LogDirectories,
    LeaderlessPartition,
)


def schedule(wanted: str = "", each: int | None = None) -> list[MoveScene]:
    """Return the scenes to run, class by class.

    Args:
        wanted: names of classes or of single scenes (``near:2``), comma-separated; empty for all.
        each: scenes per class; all of the class if None. Single scenes are not affected.

    Raises:
        HeadroomError: there is no such class, or no such number.
    """
    classes = {of.key: of for of in CLASSES}
    names = [name.strip() for name in wanted.split(",") if name.strip()] or list(classes)
    return [scene for name in names for scene in _named(name, classes, each)]


def _named(name: str, classes: dict[str, type[MoveScene]], each: int | None) -> Sequence[MoveScene]:
    key, _, number = name.partition(":")
    if key not in classes or (number and not number.isdigit()):
        raise failure(f"BENCH_SCENES names {name!r}; there are {', '.join(classes)}, and near:2 for one scene")
    if number:
        return [classes[key].drawn(int(number))]
    return [classes[key].drawn(n) for n in range(classes[key].count if each is None else each)]

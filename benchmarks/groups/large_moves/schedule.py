"""Selection and order of scenes."""

from __future__ import annotations

from benchmarks.faults.schedule import chosen_names
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
    return [
        classes[key].drawn(n)
        for key, number in chosen_names(wanted, classes, "scene")
        for n in ([number] if number is not None else range(classes[key].count if each is None else each))
    ]

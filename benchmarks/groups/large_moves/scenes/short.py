"""Sixty partitions on one leader whose throttle starves or loses: one alert about it, with the right numbers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from benchmarks.groups.large_moves.scenes.base import AFTER_S, COUNT, MB, SIZES, MoveScene, OneLeaderScene
from benchmarks.groups.large_moves.scoring.claims import severity_of
from benchmarks.groups.large_moves.scoring.remedies import await_promised_end, lose_until_advised
from benchmarks.groups.large_moves.scoring.truth import Cause, all_of, has_severity
from benchmarks.groups.large_moves.stage.groups import Group
from benchmarks.groups.large_moves.stage.stage import SceneContext

_END_S = 60.0


class LowThrottle(OneLeaderScene):
    """A throttle that is too low from the start."""

    key: ClassVar[str] = "short"
    titles: ClassVar[Sequence[str]] = (
        "60 partitions starve, RF 2",
        "60 partitions lose, RF 2",
        "60 partitions starve, RF 3",
        "60 partitions lose, RF 3",
    )

    @property
    def starves(self) -> bool:
        """Return whether new replicas get nothing; otherwise they get less than is written."""
        return self.number % 2 == 0

    def groups(self) -> Sequence[Group]:
        """Return partitions that all have the same leader, and one or two in-sync followers."""
        others = (self.b, self.d)[: 1 + self.number // 2 % 2]
        write = self.loaded(1.6, 2.4) * MB / COUNT
        return (Group(COUNT, (self.a, *others), (self.a, self.c, *others[1:]), write, *SIZES),)

    def throttle_bytes_per_s(self) -> float:
        """Return a rate below in-sync use, or less than two thirds of the way to the required rate."""
        load = self.load_of_leader()
        if self.starves:
            return load.in_sync_bytes_per_s * self.between(0.5, 0.8)
        room = load.required_bytes_per_s - load.in_sync_bytes_per_s
        return load.in_sync_bytes_per_s + room * self.between(0.3, 0.6)

    def play(self, context: SceneContext) -> None:
        """Start the move, wait for its alert, and follow the advice."""
        severity = severity_of(self.throttle_bytes_per_s(), self.load_of_leader())
        check = all_of(self.low_throttle_check(context), has_severity(severity))
        lose_to_the_end(self, context, self.expect_low(context, check))


def lose_to_the_end(scene: MoveScene, context: SceneContext, low: Cause) -> None:
    """Start a move whose throttle is too low, follow the advice, and record the end if it is promised soon."""
    lose_until_advised(context, scene.rates(), [low])
    context.end_causes(low)
    context.observe(AFTER_S)
    await_promised_end(context, _END_S)

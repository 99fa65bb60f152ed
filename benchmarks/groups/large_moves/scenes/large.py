"""Healthy moves of 240 and 600 partitions, at a low and at a high throttle: nothing is wrong."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from benchmarks.groups.large_moves.scenes.base import MB, MoveScene, all_rates
from benchmarks.groups.large_moves.scoring.remedies import follow_advice
from benchmarks.groups.large_moves.stage.acts import await_end, end_healthy, start_move
from benchmarks.groups.large_moves.stage.groups import Group
from benchmarks.groups.large_moves.stage.stage import SceneContext
from benchmarks.groups.large_moves.stage.topic import Rates

_COUNTS = (240, 600)
_LEAST_BYTES = 200_000
# Together some 500 to 660 MB.
_MOST_BYTES = {240: 4 * MB, 600: 2 * MB}
_LOW, _HIGH = (4.0 * MB, 5.5 * MB), (20.0 * MB, 30.0 * MB)
# No writes, or few: a record of 10 kB per partition from time to time.
_WRITES = (0.0, 0.25 * MB, 0.5 * MB)
_EARLY_S, _LATE_S, _AFTER_S = 35.0, 300.0, 8.0


class LargeMove(MoveScene):
    """A healthy move; a third of the partitions changes its leader at the end, as planned."""

    key: ClassVar[str] = "large"
    titles: ClassVar[Sequence[str]] = tuple(
        f"healthy move of {count} partitions, {throttle} throttle" for count in _COUNTS for throttle in ("low", "high")
    )

    def groups(self) -> Sequence[Group]:
        """Return the partitions: two thirds go to one destination, a third leaves its leader."""
        count = _COUNTS[self.number // 2 % 2]
        third, write = count // 3, _WRITES[int(self.load * len(_WRITES))] / count
        sizes = (_LEAST_BYTES, _MOST_BYTES[count])
        return (
            Group(third, (self.a, self.b), (self.a, self.c), write, *sizes),
            Group(third, (self.b, self.a), (self.b, self.c), write, *sizes),
            Group(third, (self.a, self.b), (self.b, self.d), write, *sizes),
        )

    def rates(self) -> Rates:
        """Return one rate for all brokers and roles, far above the write rate."""
        return all_rates(self.between(*(_LOW if self.number % 2 == 0 else _HIGH)))

    def play(self, context: SceneContext) -> None:
        """Let the move run to its end, and follow the advice of infos in the middle of it."""
        start_move(context, self.rates())
        if not await_end(context, _EARLY_S):
            follow_advice(context)
            end_healthy(context, _LATE_S)
        context.clear()
        context.observe(_AFTER_S)

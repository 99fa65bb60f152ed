"""Healthy moves of 240 and 600 partitions, at a low and at a high throttle: nothing is wrong."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from benchmarks.fixtures.bench_cluster import failure
from benchmarks.groups.large_moves.scenes.base import BROKERS, MB, MoveScene
from benchmarks.groups.large_moves.scoring.remedies import follow_advice
from benchmarks.groups.large_moves.stage.acts import await_end, start_move
from benchmarks.groups.large_moves.stage.groups import Group
from benchmarks.groups.large_moves.stage.stage import SceneContext
from benchmarks.groups.large_moves.stage.topic import Rates, both_roles

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

    @property
    def partitions(self) -> int:
        """Return the number of moving partitions."""
        return _COUNTS[self.number // 2 % 2]

    @property
    def low(self) -> bool:
        """Return whether the throttle is low."""
        return self.number % 2 == 0

    @property
    def title(self) -> str:
        """Return a short description of the fault."""
        return f"healthy move of {self.partitions} partitions, {'low' if self.low else 'high'} throttle"

    def groups(self) -> Sequence[Group]:
        """Return the partitions: two thirds go to one destination, a third leaves its leader."""
        third = self.partitions // 3
        write = _WRITES[int(self.load * len(_WRITES))] / self.partitions
        sizes = (_LEAST_BYTES, _MOST_BYTES[self.partitions])
        return (
            Group(third, (self.a, self.b), (self.a, self.c), write, *sizes),
            Group(third, (self.b, self.a), (self.b, self.c), write, *sizes),
            Group(third, (self.a, self.b), (self.b, self.d), write, *sizes),
        )

    def rates(self) -> Rates:
        """Return one rate for all brokers and roles, far above the write rate."""
        rate = self.between(*(_LOW if self.low else _HIGH))
        return both_roles(range(1, BROKERS + 1), rate, rate)

    def play(self, context: SceneContext) -> None:
        """Let the move run to its end, and follow the advice of infos in the middle of it."""
        start_move(context, self.rates())
        if not await_end(context, _EARLY_S):
            follow_advice(context)
            if not await_end(context, _LATE_S):
                raise failure("a healthy move did not end")
        context.clear()
        context.observe(_AFTER_S)

"""Throttles just above and below in-sync use and the required rate: the measured lag decides which alerts are true."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import ClassVar

from benchmarks.groups.large_moves.scenes.base import AFTER_S, MB, OneLeaderScene, all_rates
from benchmarks.groups.large_moves.scoring.remedies import BURST_S, follow_advice
from benchmarks.groups.large_moves.stage.acts import start_move
from benchmarks.groups.large_moves.stage.groups import Group
from benchmarks.groups.large_moves.stage.stage import SceneContext
from benchmarks.groups.large_moves.stage.topic import Rates
from benchmarks.results import slope_per_s

_LEAST_OFF, _MOST_OFF = 0.04, 0.08
# Many partitions have a low write rate, so that bursts matter much. Few have a high one. Number, all writes and size.
_MANY, _FEW = (60, 1.2 * MB, 2 * MB), (3, 2.4 * MB, 40 * MB)
# Six cycles of bursts of some 12 s.
_WINDOW_S, _SAMPLE_S = 72.0, 1.5
# Change of the lag as a share of the write rate. If the lag falls by more than the first, the move finishes. If it
# grows by more than the second, it does not. In between it is undecided.
_GAINS_RATIO, _LOSES_RATIO = 0.05, 0.02
# By variant: threshold is the required rate (otherwise in-sync use), rate is above it, many partitions.
_VARIANTS = (
    (True, False, True),
    (True, False, False),
    (True, True, True),
    (True, True, False),
    (False, True, False),
    (False, False, True),
)


class NearThreshold(OneLeaderScene):
    """A throttle within 8 % of a threshold."""

    key: ClassVar[str] = "near"
    count: ClassVar[int] = len(_VARIANTS)
    titles: ClassVar[Sequence[str]] = tuple(
        f"throttle just {'above' if above else 'below'} {'required' if required else 'in-sync use'}, "
        f"{(_MANY if many else _FEW)[0]} partitions"
        for required, above, many in _VARIANTS
    )

    @property
    def _variant(self) -> tuple[bool, bool, bool]:
        return _VARIANTS[self.number % len(_VARIANTS)]

    def groups(self) -> Sequence[Group]:
        """Return partitions of one leader."""
        count, writes, size = _MANY if self._variant[2] else _FEW
        return (Group(count, (self.a, self.b), (self.a, self.c), writes / count, round(0.8 * size), round(1.2 * size)),)

    def throttle_bytes_per_s(self) -> float:
        """Return the rate of the leader."""
        required, above, _ = self._variant
        load = self.load_of_leader()
        threshold = load.required_bytes_per_s if required else load.in_sync_bytes_per_s
        off = self.between(_LEAST_OFF, _MOST_OFF)
        return threshold * (1 + off if above else 1 - off)

    def rates(self) -> Rates:
        """Return the rate for leaders, and one for destinations that does not limit them."""
        return all_rates(self.throttle_bytes_per_s(), 5 * self.load_of_leader().required_bytes_per_s)

    def play(self, context: SceneContext) -> None:
        """Run the move for six cycles of bursts, decide by the lag which alerts are true, and follow the advice."""
        began_s, check = time.monotonic(), self.low_throttle_check(context)
        start_move(context, self.rates())
        context.observe(BURST_S)
        growth = self._growth_bytes_per_s(context)
        finishes, fails = move_outcome(growth, self.groups()[0].writes_bytes_per_s)
        outcome = "finishes" if finishes else "does not finish" if fails else "may finish or not"
        context.note(f"the lag grows by {growth / 1e6:.2f} MB/s: the move {outcome}")
        if not finishes:
            low = self.expect_low(context, check)
            low.from_s, low.required = began_s, fails
        follow_advice(context)
        context.end_causes(*context.causes)
        context.observe(AFTER_S)

    def _growth_bytes_per_s(self, context: SceneContext) -> float:
        """Return the growth of the lag over the window. A move that ends in it gains all bytes to copy."""
        samples: list[tuple[float, float]] = []
        until_s = time.monotonic() + _WINDOW_S
        while time.monotonic() < until_s:
            samples.append((time.monotonic(), context.topic.logs.missing_bytes()))
            context.observe(_SAMPLE_S)
        return slope_per_s(samples)


def move_outcome(growth_bytes_per_s: float, writes_bytes_per_s: float) -> tuple[bool, bool]:
    """Return whether a move finishes, and whether it does not. Both are False if it is undecided.

    Args:
        growth_bytes_per_s: growth of the lag of new replicas.
        writes_bytes_per_s: write rate of the partitions.
    """
    finishes = growth_bytes_per_s < -_GAINS_RATIO * writes_bytes_per_s
    return finishes, growth_bytes_per_s > _LOSES_RATIO * writes_bytes_per_s

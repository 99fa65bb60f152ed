"""Fixed-rate schedule of ticks: a tick that overruns skips whole ticks and never shifts the later ones."""

from __future__ import annotations

import math
from dataclasses import dataclass


@dataclass(frozen=True)
class ScheduledTick:
    """A tick that is due.

    Attributes:
        number: number of the tick since the start.
        at_s: time at which it is due, monotonic seconds.
        skipped: number of ticks skipped just before it.
    """

    number: int
    at_s: float
    skipped: int


class FixedRateSchedule:
    """Schedule in which tick k is due at ``start + k x interval``.

    Args:
        start_s: time of tick 0, monotonic seconds.
        interval_s: time from tick to tick, seconds.
        second_after_s: least time from tick 0 to the next one, seconds; ticks in between are not due.
    """

    def __init__(self, start_s: float, interval_s: float, second_after_s: float = 0.0) -> None:
        self._start_s = start_s
        self._interval_s = interval_s
        self._second = max(1, math.ceil(second_after_s / interval_s))
        self._next = 0

    def next(self, now_s: float) -> ScheduledTick:
        """Return the next tick: the first one not yet run that is less than one interval late."""
        elapsed_ticks = int((now_s - self._start_s) // self._interval_s)
        number = max(self._next, elapsed_ticks)
        skipped = number - self._next
        self._next = self._second if number == 0 else number + 1
        return ScheduledTick(number, self._start_s + number * self._interval_s, skipped)

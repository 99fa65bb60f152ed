"""The pace of the collector: ticks are due at fixed times; one that overruns costs whole ticks, never the rhythm."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class ScheduledTick:
    """When a tick is due: the tick's number since the start, its time, and how many were left out before it."""

    number: int
    at_s: float
    skipped: int


class FixedRateSchedule:
    """Tick k is due at ``start + k x interval``.

    Args:
        start_s: when tick 0 is due, monotonic seconds.
        interval_s: time from tick to tick.
    """

    def __init__(self, start_s: float, interval_s: float) -> None:
        self._start_s = start_s
        self._interval_s = interval_s
        self._next = 0

    def next(self, now_s: float) -> ScheduledTick:
        """Return the tick to run next: the first not yet run that is not a whole interval late."""
        passed = int((now_s - self._start_s) // self._interval_s)
        number = max(self._next, passed)
        skipped = number - self._next
        self._next = number + 1
        return ScheduledTick(number, self._start_s + number * self._interval_s, skipped)

"""The pace of ticks, on a clock of the test's own."""

from __future__ import annotations

import threading

from headroom.cluster.collector.collector import run_paced
from headroom.cluster.collector.pacing import FixedRateSchedule, ScheduledTick


class Clock:
    """Monotonic clock that the test advances."""

    def __init__(self) -> None:
        self.now_s = 100.0

    def __call__(self) -> float:
        return self.now_s


class WaitingEvent(threading.Event):
    """A stop that lets the clock run instead of waiting."""

    def __init__(self, clock: Clock) -> None:
        super().__init__()
        self._clock = clock

    def wait(self, timeout: float | None = None) -> bool:
        self._clock.now_s += timeout or 0.0
        return self.is_set()


def run(durations_s: list[float], interval_s: float = 1.0) -> list[tuple[float, float, int]]:
    """Run ticks that last so long; return begin since the start, lateness and ticks left out before, of each."""
    clock, calls = Clock(), []
    stop = WaitingEvent(clock)

    def tick(due: ScheduledTick, lateness_s: float) -> bool:
        calls.append((round(clock.now_s - 100.0, 3), round(lateness_s, 3), due.skipped))
        clock.now_s += durations_s[len(calls) - 1]
        if len(calls) == len(durations_s):
            stop.set()
        return True

    run_paced(interval_s, tick, stop, clock)
    return calls


def test_ticks_begin_at_fixed_times_whatever_they_last() -> None:
    assert run([0.2, 0.9, 0.5]) == [(0.0, 0.0, 0), (1.0, 0.0, 0), (2.0, 0.0, 0)]


def test_a_tick_that_overruns_a_little_makes_the_next_one_late_and_nothing_else() -> None:
    # Tick 0 ends at 1.3: tick 1 is 0.3 late and ends at 1.5; tick 2 is on time.
    assert run([1.3, 0.2, 0.2]) == [(0.0, 0.0, 0), (1.3, 0.3, 0), (2.0, 0.0, 0)]


def test_ticks_missed_are_left_out_and_counted_never_bunched() -> None:
    # Tick 0 ends at 3.4: 1 and 2 are left out, 3 begins 0.4 late, 4 is on time.
    assert run([3.4, 0.2, 0.2]) == [(0.0, 0.0, 0), (3.4, 0.4, 2), (4.0, 0.0, 0)]


def test_a_stop_ends_the_run_before_the_next_tick() -> None:
    assert len(run([0.1])) == 1


def test_each_tick_is_given_once() -> None:
    pace = FixedRateSchedule(0.0, 1.0)
    assert [pace.next(0.0).number, pace.next(0.0).number, pace.next(0.5).number] == [0, 1, 2]


def test_the_second_tick_leaves_time_for_a_first_rate_and_nothing_counts_as_skipped() -> None:
    pace = FixedRateSchedule(0.0, 1.0, second_after_s=2.5)
    assert [pace.next(at_s) for at_s in (0.0, 0.4, 3.2)] == [
        ScheduledTick(0, 0.0, 0),
        ScheduledTick(3, 3.0, 0),
        ScheduledTick(4, 4.0, 0),
    ]
    # Of an interval that is longer no tick is left out.
    slow = FixedRateSchedule(0.0, 5.0, second_after_s=2.5)
    assert [slow.next(at_s).number for at_s in (0.0, 0.4, 5.2)] == [0, 1, 2]

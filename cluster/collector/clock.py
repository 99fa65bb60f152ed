"""The wall clock of the collector's machine, and the detection of steps by which it is set."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from dataclasses import dataclass, replace

from headroom.cluster.model import Metrics, Reading

log = logging.getLogger(__name__)
# A slewed clock gains or loses at most 0.5 ms per second (adjtimex); one that is off by 128 ms is stepped (ntpd).
_LEAST_STEP_S = 0.1
_SLEW_RATIO = 0.001
# The process may be descheduled between the readings of two clocks: the closest of this many pairs counts.
_PAIRS = 3


def _elapsed_s() -> float:
    """Return elapsed seconds, including suspend where the system counts it, so that a suspend is not a step."""
    boot_time = getattr(time, "CLOCK_BOOTTIME", None)
    return time.monotonic() if boot_time is None else time.clock_gettime(boot_time)


@dataclass(frozen=True)
class Clock:
    """A wall clock and a monotonic clock.

    Attributes:
        wall_s: returns the wall clock in epoch seconds.
        elapsed_s: returns seconds since a fixed moment, independent of the wall clock.
    """

    wall_s: Callable[[], float] = time.time
    elapsed_s: Callable[[], float] = _elapsed_s

    def now_ms(self) -> int:
        """Return the epoch milliseconds of the wall clock."""
        return int(self.wall_s() * 1000)


class ClockSteps:
    """Detects steps of the wall clock by comparing it with elapsed time.

    Args:
        clock: the clock to check.
    """

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._last = self._pair()

    def step_ms(self) -> int:
        """Return the step of the wall clock since the last call, in milliseconds; 0 without a step.

        Negative if the clock was set back. Slewing is not a step. A step is logged.
        """
        (last_wall_s, last_s), (wall_s, now_s) = self._last, self._pair()
        self._last = (wall_s, now_s)
        passed_s = now_s - last_s
        step_s = wall_s - last_wall_s - passed_s
        if abs(step_s) <= max(_LEAST_STEP_S, _SLEW_RATIO * passed_s):
            return 0
        log.warning(
            "the clock of this machine was set %s by %.1f s; earlier samples are moved along, so that rates continue",
            "back" if step_s < 0 else "forward",
            abs(step_s),
        )
        return round(step_s * 1000)

    def _pair(self) -> tuple[float, float]:
        """Return wall clock and elapsed time of the same moment, seconds."""
        pairs = []
        for _ in range(_PAIRS):
            before_s, wall_s, after_s = self._clock.elapsed_s(), self._clock.wall_s(), self._clock.elapsed_s()
            pairs.append((after_s - before_s, wall_s, (before_s + after_s) / 2))
        _, wall_s, at_s = min(pairs)
        return wall_s, at_s


def on_one_clock(metrics: Metrics, from_ms: int, until_ms: int, step_ms: int) -> Metrics:
    """Return the metrics with all times converted to the clock after a step.

    A time outside ``from_ms`` and ``until_ms`` was taken before the step, and is shifted.

    Args:
        metrics: metrics read while the clock was set, partly before and partly after the step.
        from_ms: start of the read by the clock after the step, epoch milliseconds.
        until_ms: end of the read by the clock after the step, epoch milliseconds.
        step_ms: size of the step, milliseconds.
    """

    def at(read_ms: int) -> int:
        return read_ms if from_ms <= read_ms <= until_ms else read_ms + step_ms

    return replace(
        metrics,
        counters={meter: Reading(at(reading.read_ms), reading.value) for meter, reading in metrics.counters.items()},
        gauges={meter: Reading(at(reading.read_ms), reading.value) for meter, reading in metrics.gauges.items()},
        logs={name: reading._replace(read_ms=at(reading.read_ms)) for name, reading in metrics.logs.items()},
    )

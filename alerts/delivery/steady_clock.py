"""The wall clock of a delivery thread, whose steps are taken only when the thread shifts its due times by them."""

from __future__ import annotations

from collections.abc import Callable

# Smaller steps do not matter for waits of seconds, and a thread may be paused between reading the two clocks. The
# collector has a detector of its own (``cluster/collector/clock.py``): for its rates a tenth of a second is much.
_LEAST_MS = 1000


class SteadyClock:
    """A wall clock that follows steps of the machine's clock only when it is asked for them.

    Args:
        clock_ms: returns the machine's time, epoch milliseconds.
        elapsed_ms: returns monotonic milliseconds. If they leave out a suspend, it counts as a step: waits keep their
            length.
    """

    def __init__(self, clock_ms: Callable[[], int], elapsed_ms: Callable[[], int]) -> None:
        self._clock_ms, self._elapsed_ms = clock_ms, elapsed_ms
        self._ahead_ms = clock_ms() - elapsed_ms()

    def now_ms(self) -> int:
        """Return the time, epoch milliseconds, as if the machine's clock had not been set since the last step.

        A due time that was read from a clock that was just set, and is shifted by the step afterwards, would be wrong
        by the step.
        """
        return self._elapsed_ms() + self._ahead_ms

    def step_ms(self) -> int:
        """Take the step by which the machine's clock was set since the last one, and return it in milliseconds.

        Negative if it was set back; 0 if it was set by less than a second.
        """
        ahead_ms = self._clock_ms() - self._elapsed_ms()
        step_ms = ahead_ms - self._ahead_ms
        if abs(step_ms) < _LEAST_MS:
            return 0
        self._ahead_ms = ahead_ms
        return step_ms

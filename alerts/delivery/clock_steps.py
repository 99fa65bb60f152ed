"""Detection of clock steps: the wall clock compared with monotonic time."""

from __future__ import annotations

from collections.abc import Callable

# Smaller steps do not matter for waits of seconds, and a thread may be paused between reading the two clocks.
_LEAST_MS = 1000


class SetClock:
    """Detects by how much the wall clock was set, and returns times that change with the steps that were found.

    Args:
        clock_ms: returns the current time, epoch milliseconds.
        elapsed_ms: returns monotonic milliseconds.
    """

    def __init__(self, clock_ms: Callable[[], int], elapsed_ms: Callable[[], int]) -> None:
        self._clock_ms, self._elapsed_ms = clock_ms, elapsed_ms
        self._ahead_ms = clock_ms() - elapsed_ms()

    def now_ms(self) -> int:
        """Return the time by the wall clock as it was after the last step, epoch milliseconds.

        Times that were read before a step is found and shifted by it afterwards would be wrong by the step, if this
        followed the wall clock at once.
        """
        return self._elapsed_ms() + self._ahead_ms

    def step_ms(self) -> int:
        """Return the milliseconds that the clock was set by since the last step; negative: back; 0: less than 1 s."""
        ahead_ms = self._clock_ms() - self._elapsed_ms()
        step_ms = ahead_ms - self._ahead_ms
        if abs(step_ms) < _LEAST_MS:
            return 0
        self._ahead_ms = ahead_ms
        return step_ms

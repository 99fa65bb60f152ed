"""When the clock of this machine is set, as seen beside time that passes evenly."""

from __future__ import annotations

from collections.abc import Callable

# Less is no matter for waits of seconds, and a thread may have to wait between the readings of two clocks.
_LEAST_MS = 1000


class SetClock:
    """Finds by how much a wall clock is set.

    Args:
        clock_ms: gives the time now, epoch milliseconds.
        elapsed_ms: gives milliseconds since some moment, whatever the clock is set to.
    """

    def __init__(self, clock_ms: Callable[[], int], elapsed_ms: Callable[[], int]) -> None:
        self._clock_ms, self._elapsed_ms = clock_ms, elapsed_ms
        self._ahead_ms = clock_ms() - elapsed_ms()

    def step_ms(self) -> int:
        """Return by how many milliseconds it was set since the last call that saw it set; negative: back; 0: it was
        not, or by less than a second.
        """
        ahead_ms = self._clock_ms() - self._elapsed_ms()
        step_ms = ahead_ms - self._ahead_ms
        if abs(step_ms) < _LEAST_MS:
            return 0
        self._ahead_ms = ahead_ms
        return step_ms

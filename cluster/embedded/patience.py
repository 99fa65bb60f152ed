"""Deadlines that count the time that this machine had for a program, not the time in which others kept its cores."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from pathlib import Path

from headroom.cluster.machine import cores as usable_cores

_LOADAVG = Path("/proc/loadavg")
# A deadline ends at last, however busy the machine is.
_MOST_SLOWDOWN = 8.0
# Longest time between two questions that counts in full. More may be a pause of this whole process, and what it waits
# for had no time meanwhile either. Or the question took long: so an eighth counts at least.
_LONGEST_STEP_S = 2.0


def runnable_programs(file: Path = _LOADAVG) -> float:
    """Return how many threads of all programs run or wait for a core now, without the one that asks.

    Where the kernel does not tell, it is the mean of the last minute.
    """
    try:
        running = int(file.read_text(encoding="ascii").split()[3].split("/")[0])
    except (OSError, ValueError, IndexError):
        return os.getloadavg()[0]
    return float(max(0, running - 1))


class Patience:
    """A deadline that moves away while more threads want to run than the machine has cores.

    With twice as many, a second by the clock counts as half a second. So a busy machine alone ends no wait, and a
    wait on a quiet one ends at its time.

    Args:
        deadline_s: longest wait on a quiet machine, seconds.
        now_s: monotonic clock, seconds.
        runnable: returns how many other threads run or wait for a core.
        cores: cores that this process may use; None: those of the machine or of the container.
    """

    def __init__(
        self,
        deadline_s: float,
        now_s: Callable[[], float] = time.monotonic,
        runnable: Callable[[], float] = runnable_programs,
        cores: float | None = None,
    ) -> None:
        self._deadline_s = deadline_s
        self._now_s = now_s
        self._runnable = runnable
        self._cores = usable_cores() if cores is None else cores
        self._began_s = self._last_s = now_s()
        self._counted_s = self._spent_s = 0.0

    def is_over(self) -> bool:
        """Return whether the deadline has passed.

        Call it often: each call counts the time since the one before. Of more than 2 s only 2 s count, or an eighth.
        """
        now_s = self._now_s()
        slowdown = min(_MOST_SLOWDOWN, max(1.0, self._runnable() / self._cores))
        step_s = now_s - self._last_s
        counted_s = min(step_s, _LONGEST_STEP_S)
        self._counted_s += counted_s
        self._spent_s += max(counted_s / slowdown, step_s / _MOST_SLOWDOWN)
        self._last_s = now_s
        return self._spent_s > self._deadline_s

    @property
    def elapsed_s(self) -> float:
        """Return the time since the start of the wait by the clock, seconds."""
        return self._now_s() - self._began_s

    def __str__(self) -> str:
        """Return the length of the wait, and how busy the machine was meanwhile, for an error message."""
        text = f"{self._deadline_s:g} s"
        slowdown = self._counted_s / self._spent_s if self._spent_s > 0 else 1.0
        if slowdown < 1.1:
            return text
        wanted = slowdown * self._cores
        return f"{text} ({self.elapsed_s:.0f} s by the clock: {wanted:.1f} threads wanted the {self._cores:g} cores)"

"""Number of recent failures: the limit on automatic restarts."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable


class Failures:
    """The failures of the last ten minutes.

    Args:
        most: number of failures that may be transient. More of them need an operator.
        now_s: monotonic clock, seconds.
    """

    WITHIN_S = 600.0

    def __init__(self, most: int, now_s: Callable[[], float]) -> None:
        self._most = most
        self._now_s = now_s
        self._failed_s: deque[float] = deque()

    def add(self) -> None:
        """Count one failure, and drop those older than ten minutes."""
        now_s = self._now_s()
        self._failed_s.append(now_s)
        while now_s - self._failed_s[0] > self.WITHIN_S:
            self._failed_s.popleft()

    def forget(self) -> None:
        """Reset the count, because the cause is known and was reported."""
        self._failed_s.clear()

    @property
    def count(self) -> int:
        """Return the number of failures in the ten minutes before the last one."""
        return len(self._failed_s)

    @property
    def are_too_many(self) -> bool:
        """Return whether there were more failures than may be transient."""
        return self.count > self._most

"""How often something has failed lately: what is started again has a limit."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable


class Failures:
    """The failures of the last ten minutes.

    Args:
        most: so many are chances of the moment; more need a person.
        now_s: gives seconds that pass evenly.
    """

    WITHIN_S = 600.0

    def __init__(self, most: int, now_s: Callable[[], float]) -> None:
        self._most = most
        self._now_s = now_s
        self._failed_s: deque[float] = deque()

    def add(self) -> None:
        """Count one."""
        now_s = self._now_s()
        self._failed_s.append(now_s)
        while now_s - self._failed_s[0] > self.WITHIN_S:
            self._failed_s.popleft()

    def forget(self) -> None:
        """Count from none again: their cause is known, and has been told."""
        self._failed_s.clear()

    @property
    def count(self) -> int:
        """Return how many there were."""
        return len(self._failed_s)

    @property
    def are_too_many(self) -> bool:
        """Return whether there were more than chance brings."""
        return self.count > self._most

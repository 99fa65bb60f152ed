"""Calls that are repeated while the cluster or the journal fails, because a broker or a disk may be back soon."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TypeVar

from headroom.schemas.errors import HeadroomError

_T = TypeVar("_T")


class Retrying:
    """Repeats what fails.

    Args:
        settle_s: how long a call may fail before it is given up, seconds.
        poll_s: interval between two attempts, seconds.
        note: gets the failure before each further attempt.
        clock: monotonic seconds.
        sleep: waits for the given seconds.
    """

    def __init__(
        self,
        settle_s: float,
        poll_s: float,
        note: Callable[[str], None],
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        self._settle_s = settle_s
        self._poll_s = poll_s
        self._note = note
        self._clock = clock
        self._sleep = sleep

    def result(self, what: str, call: Callable[[], _T]) -> _T:
        """Return the result of a call.

        Args:
            what: what the call belongs to, for the note.
            call: what is repeated; it must be harmless to do it twice.

        Raises:
            HeadroomError: it failed for longer than ``settle_s``.
        """
        failing_since_s: float | None = None
        while True:
            try:
                return call()
            except HeadroomError as error:
                failing_since_s = self._clock() if failing_since_s is None else failing_since_s
                if self._clock() - failing_since_s >= self._settle_s:
                    raise
                self._note(f"{what}: {error.subject} {error.rule}; trying again")
                self._sleep(self._poll_s)

"""Calls with a deadline into storage that may hang, such as a network file system."""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import Future
from concurrent.futures import TimeoutError as NotInTime
from typing import Generic, TypeVar

from headroom.schemas.errors import HeadroomError
from headroom.schemas.threads import run_in_daemon_thread

_T = TypeVar("_T")

# A disk that works needs some hundredths of a second.
DEADLINE_S = 10.0


class NoAnswer(HeadroomError):
    """A location does not answer. Any further call to it, as for the cause, would hang as well."""

    def __init__(self, location: str) -> None:
        super().__init__(location, "does not answer", "Check its file system: a network mount may hang.")


class InTime(Generic[_T]):
    """One call at a time, on a thread of its own, with a deadline. While a call hangs, further ones fail at once.

    Args:
        location: location that the calls use, for error messages.
        deadline_s: longest wait for a call, seconds; None: ``DEADLINE_S``.
    """

    def __init__(self, location: str, deadline_s: float | None = None) -> None:
        self._location = location
        self._deadline_s = deadline_s
        self._hanging: Future[_T] | None = None
        self._calling = threading.Lock()

    def call(self, do: Callable[[], _T]) -> _T:
        """Return what a call returns, or raise what it raises.

        A call that missed the deadline may still finish later. The caller must repeat it until it succeeds.

        Raises:
            NoAnswer: the call missed the deadline, or an earlier one still hangs.
        """
        with self._calling:
            if self._hanging is not None and not self._hanging.done():
                raise NoAnswer(self._location)
            self._hanging = done = run_in_daemon_thread(f"store {self._location}", do)
            try:
                return done.result(DEADLINE_S if self._deadline_s is None else self._deadline_s)
            except NotInTime:
                if done.done():
                    raise
                raise NoAnswer(self._location) from None

"""Calls into a storage that may hang, as a network file system does: waited for only so long."""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import Future
from concurrent.futures import TimeoutError as NotInTime
from typing import Generic, TypeVar

from schemas.errors import HeadroomError

_T = TypeVar("_T")

# What a disk that works does in some hundredths of a second.
DEADLINE_S = 10.0


class NoAnswer(HeadroomError):
    """A place does not answer; to ask it for more, as for why, would hang as well."""

    def __init__(self, place: str) -> None:
        super().__init__(place, "does not answer", "Look at its file system: a network mount may hang.")


class InTime(Generic[_T]):
    """One call at a time, on a thread of its own. Who calls while one hangs is told so at once.

    Args:
        place: what the calls go to.
        deadline_s: how long one is waited for, seconds; None: ``DEADLINE_S``.
    """

    def __init__(self, place: str, deadline_s: float | None = None) -> None:
        self._place = place
        self._deadline_s = deadline_s
        self._hanging: Future[_T] | None = None
        self._calling = threading.Lock()

    def call(self, do: Callable[[], _T]) -> _T:
        """Return what a call returns, or raise what it raises.

        One that was given up may still come to its end: the same must be asked for again until it does.

        Raises:
            NoAnswer: it has not come back in time, or an earlier one has not come back yet.
        """
        with self._calling:
            if self._hanging is not None and not self._hanging.done():
                raise NoAnswer(self._place)
            self._hanging = done = Future[_T]()
            # A daemon, for no end of the process shall wait for it.
            threading.Thread(target=_run, args=(do, done), name=f"store {self._place}", daemon=True).start()
            try:
                return done.result(DEADLINE_S if self._deadline_s is None else self._deadline_s)
            except NotInTime:
                if done.done():
                    raise
                raise NoAnswer(self._place) from None


def _run(do: Callable[[], _T], done: Future[_T]) -> None:
    try:
        done.set_result(do())
    except BaseException as error:
        done.set_exception(error)

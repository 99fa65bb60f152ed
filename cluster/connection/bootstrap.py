"""Connecting by whichever bootstrap server answers first: one that hangs holds nothing up."""

from __future__ import annotations

import random
import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, wait
from typing import Generic, TypeVar

from kafka.errors import KafkaTimeoutError

_HEAD_START_S = 0.5
_T = TypeVar("_T")


def first_to_answer(
    servers: Sequence[str], connect: Callable[[str], _T], discard: Callable[[_T], None], timeout_s: float
) -> _T:
    """Return the client of the server that answered first.

    A broker that hangs takes the connection and says nothing, so a client told to try several servers may spend all its
    time on that one. Here the next server, in random order, is tried as well while none has answered for a moment.

    Args:
        servers: ``host:port`` of each.
        connect: returns a client connected to a server; runs in a thread of its own, and is to end by itself.
        discard: closes a client that came second.
        timeout_s: longest wait in seconds.

    Raises:
        KafkaTimeoutError: none answered in time.
        Exception: all refused, or some did and the others did not answer; the first refusal, as ``connect`` raised it.
    """
    race = _Race(connect, discard)
    deadline = time.monotonic() + timeout_s
    # The last one in line is to have its time too.
    head_start_s = min(_HEAD_START_S, timeout_s / (len(servers) + 1))
    for server in random.sample(servers, len(servers)):
        race.start(server)
        if (winner := race.winner(head_start_s)) is not None:
            return winner.result()
    while race.running and time.monotonic() < deadline:
        if (winner := race.winner(deadline - time.monotonic())) is not None:
            return winner.result()
    raise race.lost()


class _Race(Generic[_T]):
    """Attempts to connect that run side by side."""

    def __init__(self, connect: Callable[[str], _T], discard: Callable[[_T], None]) -> None:
        self._connect = connect
        self._discard = discard
        self._errors: list[BaseException] = []
        self.running: set[Future[_T]] = set()

    def start(self, server: str) -> None:
        attempt: Future[_T] = Future()
        self.running.add(attempt)

        def work() -> None:
            try:
                attempt.set_result(self._connect(server))
            except BaseException as error:
                attempt.set_exception(error)

        # Daemon threads: one that hangs must not keep the process from ending.
        threading.Thread(target=work, name=f"connect-{server}", daemon=True).start()

    def winner(self, timeout_s: float) -> Future[_T] | None:
        """Return the first attempt that succeeded, the others being given up; None: none did before the wait ended.

        The wait also ends when an attempt fails, for the next one need not wait then.
        """
        done, self.running = wait(self.running, timeout_s, FIRST_COMPLETED)
        self._errors += [error for attempt in done if (error := attempt.exception()) is not None]
        succeeded = [attempt for attempt in done if attempt.exception() is None]
        if not succeeded:
            return None
        self._give_up({*succeeded[1:], *self.running})
        return succeeded[0]

    def lost(self) -> BaseException:
        """Return why there is no winner, the attempts that still run being given up."""
        self._give_up(self.running)
        refusals = (error for error in self._errors if not isinstance(error, KafkaTimeoutError))
        return next(refusals, KafkaTimeoutError("no bootstrap server answered"))

    def _give_up(self, attempts: set[Future[_T]]) -> None:
        for attempt in attempts:
            attempt.add_done_callback(self._discard_late)

    def _discard_late(self, attempt: Future[_T]) -> None:
        if attempt.exception() is None:
            self._discard(attempt.result())

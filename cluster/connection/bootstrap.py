"""Connects to the first bootstrap server that answers, so that one that hangs delays nothing."""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, wait
from typing import Generic, TypeVar

from kafka.errors import KafkaTimeoutError

from headroom.schemas.threads import run_in_daemon_thread

# Wait for a server's answer before the next server is tried too.
_HEAD_START_S = 0.5
_T = TypeVar("_T")


def connect_to_first(
    servers: Sequence[str], connect: Callable[[str], _T], discard: Callable[[_T], None], timeout_s: float
) -> _T:
    """Return the client of the server that answered first.

    A broker that hangs accepts the connection and never answers, so a client with several servers may spend all its
    time on that one. Here the servers are tried in random order; the next one starts while the others are pending.

    Args:
        servers: ``host:port`` of each.
        connect: returns a client connected to a server; runs in its own thread and must end by itself.
        discard: closes a client that connected too late.
        timeout_s: longest wait in seconds.

    Raises:
        KafkaTimeoutError: none answered in time.
        Exception: at least one server refused and none connected; the first refusal, as ``connect`` raised it.
    """
    race = _ConnectRace(connect, discard)
    deadline = time.monotonic() + timeout_s
    # Short head starts, so that the last server has time too.
    head_start_s = min(_HEAD_START_S, timeout_s / (len(servers) + 1))
    for server in random.sample(servers, len(servers)):
        race.start(server)
        if (winner := race.winner(head_start_s)) is not None:
            return winner.result()
    while race.running and time.monotonic() < deadline:
        if (winner := race.winner(deadline - time.monotonic())) is not None:
            return winner.result()
    raise race.failure()


class _ConnectRace(Generic[_T]):
    """Concurrent attempts to connect."""

    def __init__(self, connect: Callable[[str], _T], discard: Callable[[_T], None]) -> None:
        self._connect = connect
        self._discard = discard
        self._errors: list[BaseException] = []
        self.running: set[Future[_T]] = set()

    def start(self, server: str) -> None:
        self.running.add(run_in_daemon_thread(f"connect-{server}", lambda: self._connect(server)))

    def winner(self, timeout_s: float) -> Future[_T] | None:
        """Return the first attempt that succeeded and give up the others; None if none did before the wait ended.

        The wait also ends when an attempt fails, so that the next one starts at once.
        """
        done, self.running = wait(self.running, timeout_s, FIRST_COMPLETED)
        self._errors += [error for attempt in done if (error := attempt.exception()) is not None]
        succeeded = [attempt for attempt in done if attempt.exception() is None]
        if not succeeded:
            return None
        self._give_up({*succeeded[1:], *self.running})
        return succeeded[0]

    def failure(self) -> BaseException:
        """Give up the attempts that still run and return why none succeeded."""
        self._give_up(self.running)
        refusals = (error for error in self._errors if not isinstance(error, KafkaTimeoutError))
        return next(refusals, KafkaTimeoutError("no bootstrap server answered"))

    def _give_up(self, attempts: set[Future[_T]]) -> None:
        for attempt in attempts:
            attempt.add_done_callback(self._discard_late)

    def _discard_late(self, attempt: Future[_T]) -> None:
        if attempt.exception() is None:
            self._discard(attempt.result())

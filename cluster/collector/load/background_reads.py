"""Reads of brokers in the background: each broker at its own time of an interval, and at most one read at a time."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from typing import Generic, TypeVar

from headroom.schemas.errors import HeadroomError
from headroom.schemas.threads import run_in_daemon_thread

log = logging.getLogger(__name__)
_Result = TypeVar("_Result")
# Brokers that are read at the same time. More are spread over the interval, so that no tick carries the rows of all.
GROUP = 20


class BackgroundReads(Generic[_Result]):
    """Reads brokers on threads of their own.

    Args:
        what: what is read, for the log.
        interval_s: time from one read of a broker to the next, seconds; 0: never.
    """

    def __init__(self, what: str, interval_s: float) -> None:
        self._what = what
        self._interval_s = interval_s
        self._due_s: dict[int, float] = {}
        self._running: dict[int, Future[_Result]] = {}
        self._discarded: set[int] = set()
        self._failures: dict[int, str] = {}

    def due(self, brokers: Sequence[int], now_s: float) -> list[int]:
        """Return the brokers whose read is due, and forget those that are missing in ``brokers``.

        Args:
            brokers: ids of the brokers that are up, in order.
            now_s: monotonic seconds.
        """
        if not self._interval_s:
            return []
        groups = -(-len(brokers) // GROUP)
        at_start = not self._due_s
        # Brokers that come later are read at once.
        first_s = {b: now_s + (n // GROUP) / groups * self._interval_s * at_start for n, b in enumerate(brokers)}
        self._due_s = {b: self._due_s.get(b, first_s[b]) for b in brokers}
        return [b for b in brokers if self._due_s[b] <= now_s and b not in self._running]

    def start(self, broker: int, now_s: float, read: Callable[[], _Result]) -> None:
        """Start the read of a broker that is due; its next one is due an interval later.

        Args:
            broker: id of the broker.
            now_s: monotonic seconds.
            read: reads the broker. A HeadroomError is logged.
        """
        self._due_s[broker] = max(self._due_s[broker] + self._interval_s, now_s)
        self._running[broker] = run_in_daemon_thread(f"{self._what}-{broker}", read)

    def take(self) -> dict[int, _Result]:
        """Return the results of the reads that have ended since the last call, by broker."""
        ended = {broker: future for broker, future in self._running.items() if future.done()}
        results: dict[int, _Result] = {}
        for broker, future in ended.items():
            del self._running[broker]
            error = future.exception()
            self._note(broker, error)
            if error is None and broker not in self._discarded:
                results[broker] = future.result()
            self._discarded.discard(broker)
        return results

    def idle(self) -> bool:
        """Return whether no read is running."""
        return all(future.done() for future in self._running.values())

    def discard_running(self) -> None:
        """Discard the results of the reads that are running, because the clock was set meanwhile."""
        self._discarded |= self._running.keys()

    def _note(self, broker: int, error: BaseException | None) -> None:
        """Log an error if it is another one than that of the broker's last read."""
        if error is None:
            if self._failures.pop(broker, None) is not None:
                log.info("broker %d: its %s are read again", broker, self._what)
            return
        text = str(error) if isinstance(error, HeadroomError) else type(error).__name__
        if text != self._failures.get(broker):
            unexpected = None if isinstance(error, HeadroomError) else error
            log.warning("broker %d: its %s were not read: %s", broker, self._what, text, exc_info=unexpected)
        self._failures[broker] = text

"""Times of fresh verdicts, read from ``/metrics`` of the watch four times a second."""

from __future__ import annotations

import threading
import time
from contextlib import closing
from http.client import HTTPConnection, HTTPException
from types import TracebackType

from benchmarks.groups.outages.watching.blind import is_fresh
from schemas.metrics import TICK_TIMESTAMP

_EVERY_S = 0.25
_TIMEOUT_S = 1.0
_JOIN_S = 5.0


class Freshness:
    """Records the times at which a newer tick was evaluated.

    Args:
        port: local port of the watch, which may be down.
        cluster: name of the cluster.
    """

    def __init__(self, port: int, cluster: str) -> None:
        self._port = port
        self._cluster = cluster
        self._moments: list[float] = []
        self._last_tick_s: float | None = None
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._run, name="freshness", daemon=True)

    def __enter__(self) -> Freshness:
        """Start reading, and return this."""
        self._thread.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        """Stop reading."""
        self._ended.set()
        self._thread.join(_JOIN_S)

    @property
    def moments(self) -> list[float]:
        """Return the times at which a newer tick was evaluated, monotonic seconds, ascending."""
        return list(self._moments)

    def since(self, at_s: float) -> int:
        """Return the number of newer ticks evaluated since a monotonic time."""
        return sum(moment > at_s for moment in self.moments)

    def reset(self) -> None:
        """Accept any next tick as newer, because the next watch may have another clock."""
        self._last_tick_s = None

    def _run(self) -> None:
        while not self._ended.wait(_EVERY_S):
            try:
                text = self._scrape()
            # The watch is down, hangs, or ends during the answer.
            except (OSError, HTTPException, UnicodeDecodeError):
                continue
            self.add(text, time.monotonic())

    def _scrape(self) -> str:
        # A new connection per request, because an open one would hang on a suspended watch.
        with closing(HTTPConnection("127.0.0.1", self._port, timeout=_TIMEOUT_S)) as connection:
            connection.request("GET", "/metrics")
            return connection.getresponse().read().decode()

    def add(self, text: str, at_s: float) -> None:
        """Add one answer of ``/metrics``.

        Args:
            text: the answer.
            at_s: time of the answer, monotonic seconds.
        """
        tick_s = tick_of(text, self._cluster)
        if tick_s is not None and is_fresh(self._last_tick_s, tick_s):
            self._last_tick_s = tick_s
            self._moments.append(at_s)


def tick_of(text: str, cluster: str) -> float | None:
    """Return the time of the last evaluated tick of a cluster, epoch seconds; None if the answer does not have it.

    Args:
        text: answer of ``/metrics``.
        cluster: name of the cluster.
    """
    begin = f'{TICK_TIMESTAMP.name}{{cluster="{cluster}"}} '
    found = (line.removeprefix(begin) for line in text.splitlines() if line.startswith(begin))
    return next((float(value) for value in found), None)

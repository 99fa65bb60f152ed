"""When fresh verdicts came: ``/metrics`` of the watch, asked some four times a second."""

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
    """Notes each moment at which a newer tick was evaluated.

    Args:
        port: where the watch answers on this machine; it may be away.
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
        """Return this, asking."""
        self._thread.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        """Ask no more."""
        self._ended.set()
        self._thread.join(_JOIN_S)

    @property
    def moments(self) -> list[float]:
        """Return when a newer tick was evaluated, seconds of the monotonic clock, ascending."""
        return list(self._moments)

    def since(self, at_s: float) -> int:
        """Return how many newer ticks were evaluated since a moment of the monotonic clock."""
        return sum(moment > at_s for moment in self.moments)

    def reset(self) -> None:
        """Take any tick for a newer one: the next watch may be of another clock."""
        self._last_tick_s = None

    def _run(self) -> None:
        while not self._ended.wait(_EVERY_S):
            try:
                text = self._scrape()
            # It is away, hangs, or ends in the midst of an answer.
            except (OSError, HTTPException, UnicodeDecodeError):
                continue
            self.add(text, time.monotonic())

    def _scrape(self) -> str:
        # A connection of its own for each question: a kept one would hang on a watch that is stopped.
        with closing(HTTPConnection("127.0.0.1", self._port, timeout=_TIMEOUT_S)) as connection:
            connection.request("GET", "/metrics")
            return connection.getresponse().read().decode()

    def add(self, text: str, at_s: float) -> None:
        """Take one answer of ``/metrics``.

        Args:
            text: the answer.
            at_s: when it came, seconds of the monotonic clock.
        """
        tick_s = tick_of(text, self._cluster)
        if tick_s is not None and is_fresh(self._last_tick_s, tick_s):
            self._last_tick_s = tick_s
            self._moments.append(at_s)


def tick_of(text: str, cluster: str) -> float | None:
    """Return the time of the last evaluated tick of a cluster, epoch seconds; None: the answer does not name it.

    Args:
        text: answer of ``/metrics``.
        cluster: name of the cluster.
    """
    begin = f'{TICK_TIMESTAMP.name}{{cluster="{cluster}"}} '
    found = (line.removeprefix(begin) for line in text.splitlines() if line.startswith(begin))
    return next((float(value) for value in found), None)

"""Rehearsals of a tick while nothing else is to do, until the JVM has compiled what it takes.

A batch is mostly planning: code that runs once per batch, of which the JVM interprets the first dozens. With a tick
every ten seconds the first minutes of a watch, when a reassignment has just begun, would be the slowest.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable

log = logging.getLogger(__name__)

# From here on a round takes no less than the one before; of a large cluster, whose history needs the processors too,
# it is fewer.
_ROUNDS = 40
_MOST_S = 20.0
# Ticks that come every second are rehearsal enough.
_QUIET_S = 1.0
_POLL_S = 0.1
_STOP_S = 30.0


class WarmUp:
    """Plays the last tick again, some dozen times, in a thread of its own.

    Args:
        idle_s: gives for how many seconds there was no real batch.
    """

    def __init__(self, idle_s: Callable[[], float]) -> None:
        self._idle_s = idle_s
        self._stop = threading.Event()
        self._thread: threading.Thread | None = None
        self._batch: Callable[[], None] = _nothing

    def play(self, batch: Callable[[], None]) -> None:
        """Take this batch from now on; the first call begins.

        Args:
            batch: does it again, without effect.
        """
        self._batch = batch
        if self._thread is None:
            self._thread = threading.Thread(target=self._run, name="rehearsal", daemon=True)
            self._thread.start()

    def _run(self) -> None:
        rounds, took_s = 0, 0.0
        while rounds < _ROUNDS and took_s < _MOST_S and not self._stop.wait(_POLL_S):
            if self._idle_s() >= _QUIET_S:
                began_s = time.monotonic()
                try:
                    self._batch()
                except Exception:
                    # What is wrong with it is told by the real one.
                    log.debug("a rehearsal failed", exc_info=True)
                    return
                rounds, took_s = rounds + 1, took_s + time.monotonic() - began_s

    def stop(self) -> None:
        """Begin no more, and return when the last is done, or takes too long."""
        self._stop.set()
        if self._thread is not None:
            self._thread.join(timeout=_STOP_S)


def _nothing() -> None:
    """Play nothing."""

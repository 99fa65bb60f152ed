"""JIT warm-up: runs the last batch again while the query is idle, until the JVM has compiled its code.

Most of a batch is query planning: code that runs once per batch, which the JVM interprets for the first dozens of
batches. With a tick every ten seconds the first minutes of a watch would be the slowest. That is when a reassignment
has just begun.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable

log = logging.getLogger(__name__)

# After 40 rounds a batch gets no faster. With a large cluster, whose history needs the processors too, the time limit
# allows fewer.
_ROUNDS = 40
_MOST_S = 20.0
# Ticks that come every second need no warm-up.
_QUIET_S = 1.0
_POLL_S = 0.1
_STOP_S = 30.0


class WarmUp:
    """Runs the last batch again, some dozen times, on a thread of its own.

    Args:
        idle_s: returns the seconds since the last real batch.
    """

    def __init__(self, idle_s: Callable[[], float]) -> None:
        self._idle_s = idle_s
        self._stop = threading.Event()
        self._thread: threading.Thread | None = None
        self._batch: Callable[[], None] = lambda: None

    def schedule(self, batch: Callable[[], None]) -> None:
        """Run this batch from now on; the first call starts the thread.

        Args:
            batch: runs the batch again and discards its result.
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
                    # The real batch reports the same error.
                    log.debug("a warm-up batch failed", exc_info=True)
                    return
                rounds, took_s = rounds + 1, took_s + time.monotonic() - began_s

    def stop(self) -> None:
        """Start no further batch, and wait for the one in progress, at most 30 s."""
        self._stop.set()
        if self._thread is not None:
            self._thread.join(timeout=_STOP_S)

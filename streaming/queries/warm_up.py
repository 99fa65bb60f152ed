"""JIT warm-up: runs the last batch again while the query is idle, until the JVM has compiled its code.

Most of a batch is query planning: code that runs once per batch, which the JVM interprets for the first dozens of
batches. With a tick every ten seconds the first minutes of a watch would be the slowest. That is when a reassignment
has just begun.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable

from headroom.streaming.supervision.periodic_task import PeriodicTask

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
        self._task = PeriodicTask("rehearsal", self._run_if_idle, _POLL_S)
        self._batch: Callable[[], None] = lambda: None
        self._rounds, self._took_s = 0, 0.0

    def schedule(self, batch: Callable[[], None]) -> None:
        """Run this batch from now on; the first call starts the thread.

        Args:
            batch: runs the batch again and discards its result.
        """
        self._batch = batch
        self._task.start()

    def _run_if_idle(self) -> None:
        if self._idle_s() < _QUIET_S:
            return
        began_s = time.monotonic()
        try:
            self._batch()
        except Exception:
            # The real batch reports the same error.
            log.debug("a warm-up batch failed", exc_info=True)
            self._task.stop()
        self._rounds, self._took_s = self._rounds + 1, self._took_s + time.monotonic() - began_s
        if self._rounds >= _ROUNDS or self._took_s >= _MOST_S:
            self._task.stop()

    def stop(self) -> None:
        """Start no further batch, and wait for the one in progress, at most 30 s."""
        self._task.stop(_STOP_S)

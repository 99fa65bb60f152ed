"""Evaluation of ticks while nothing can be written.

No streaming query runs then, because Spark stores its offsets in a checkpoint.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable

from streaming.supervision.failure import cause_of

log = logging.getLogger(__name__)

_EVERY_S = 0.5
# Longest wait for a batch in progress.
_STOP_S = 10.0


class WithoutStore:
    """Polls the alert partition twice a second on a thread of its own.

    Args:
        evaluate: evaluates the records from an offset on, and returns the offset of the next call.
    """

    def __init__(self, evaluate: Callable[[int], int]) -> None:
        self._evaluate = evaluate
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name="without-store", daemon=True)
        self._offset = 0

    def start(self, offset: int) -> None:
        """Start the thread with an offset of the alert partition."""
        self._offset = offset
        self._thread.start()

    def stop(self) -> None:
        """Stop polling, and wait for the batch in progress, at most 10 s."""
        self._stop.set()
        self._thread.join(_STOP_S)

    def _run(self) -> None:
        logged = ""
        while not self._stop.wait(_EVERY_S):
            try:
                self._offset = self._evaluate(self._offset)
                logged = ""
            except Exception as error:
                trouble = cause_of(error)
                # The same error twice a second would fill the log.
                if trouble != logged:
                    log.error("ticks cannot be evaluated at the moment: %s", trouble)
                logged = trouble

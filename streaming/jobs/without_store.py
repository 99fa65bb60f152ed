"""Judging while nothing can be written: no query runs then, for Spark keeps its offsets in a checkpoint."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable

from streaming.supervision.failure import cause_of

log = logging.getLogger(__name__)

_EVERY_S = 0.5
# A batch that is under way is waited for so long.
_STOP_S = 10.0


class WithoutStore:
    """Looks what has come to the lane, some times a second, on a thread of its own.

    Args:
        judge: judges what has come from an offset on, and returns from where to look next.
    """

    def __init__(self, judge: Callable[[int], int]) -> None:
        self._judge = judge
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name="without-store", daemon=True)
        self._offset = 0

    def start(self, offset: int) -> None:
        """Begin with an offset of the lane."""
        self._offset = offset
        self._thread.start()

    def stop(self) -> None:
        """End, when what is under way is done."""
        self._stop.set()
        self._thread.join(_STOP_S)

    def _run(self) -> None:
        told = ""
        while not self._stop.wait(_EVERY_S):
            try:
                self._offset = self._judge(self._offset)
                told = ""
            except Exception as error:
                trouble = cause_of(error)
                if trouble != told:
                    log.error("ticks cannot be judged just now: %s", trouble)
                told = trouble

"""Evaluation of ticks while nothing can be written.

No streaming query runs then, because Spark stores its offsets in a checkpoint.
"""

from __future__ import annotations

import logging
from collections.abc import Callable

from headroom.streaming.supervision.failure import cause_of
from headroom.streaming.supervision.periodic_task import PeriodicTask

log = logging.getLogger(__name__)

_EVERY_S = 0.5
# Then the partition is read from its first record on, which takes longer.
_UNKNOWN_S = 5.0
# Longest wait for a batch in progress.
_STOP_S = 10.0


class WithoutStore:
    """Polls the alert partition twice a second on a thread of its own.

    Args:
        evaluate: evaluates the records from an offset on, and returns the offset of the next call.
        first_offset: returns the offset of the first call; None as long as it is unknown.
    """

    def __init__(self, evaluate: Callable[[int], int], first_offset: Callable[[], int | None]) -> None:
        self._evaluate = evaluate
        self._first_offset = first_offset
        self._task = PeriodicTask("without-store", self._poll, _EVERY_S)
        self._offset: int | None = None
        self._polls = 0
        self._logged = ""

    def start(self) -> None:
        """Start polling."""
        self._task.start()

    def stop(self) -> None:
        """Stop polling, and wait for the batch in progress, at most 10 s."""
        self._task.stop(_STOP_S)

    def _poll(self) -> None:
        try:
            self._polls += 1
            if self._offset is None:
                self._offset = self._first_offset()
            if self._offset is not None:
                self._offset = self._evaluate(self._offset)
            elif self._polls * _EVERY_S >= _UNKNOWN_S:
                self._offset = self._evaluate(0)
            self._logged = ""
        except Exception as error:
            trouble = cause_of(error)
            # The same error twice a second would fill the log.
            if trouble != self._logged:
                log.error("ticks cannot be evaluated at the moment: %s", trouble)
            self._logged = trouble

"""Evaluation of ticks while nothing can be written.

No streaming query runs then, because Spark stores its offsets in a checkpoint.
"""

from __future__ import annotations

import logging
from collections.abc import Callable

from streaming.supervision.failure import cause_of
from streaming.supervision.periodic_task import PeriodicTask

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
        self._task = PeriodicTask("without-store", self._poll, _EVERY_S)
        self._offset = 0
        self._logged = ""

    def start(self, offset: int) -> None:
        """Start polling from an offset of the alert partition on."""
        self._offset = offset
        self._task.start()

    def stop(self) -> None:
        """Stop polling, and wait for the batch in progress, at most 10 s."""
        self._task.stop(_STOP_S)

    def _poll(self) -> None:
        try:
            self._offset = self._evaluate(self._offset)
            self._logged = ""
        except Exception as error:
            trouble = cause_of(error)
            # The same error twice a second would fill the log.
            if trouble != self._logged:
                log.error("ticks cannot be evaluated at the moment: %s", trouble)
            self._logged = trouble

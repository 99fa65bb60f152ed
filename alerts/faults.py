"""Log of evaluation errors: once per cause, because an error repeats with every tick."""

from __future__ import annotations

import logging
import time
import traceback
from collections.abc import Callable

# A lasting error is logged again after this time.
_AGAIN_S = 600.0


class Faults:
    """Logs evaluation errors by cluster.

    Args:
        log: logger to write to.
        now_s: returns monotonic seconds.
    """

    def __init__(self, log: logging.Logger, now_s: Callable[[], float] = time.monotonic) -> None:
        self._log = log
        self._now_s = now_s
        # Time of the last log line, by cluster, error, file and line.
        self._logged_s: dict[tuple[str, str, str, int | None], float] = {}

    def report(self, cluster: str, operation: str, error: Exception) -> None:
        """Log an error with its traceback, unless the same one of this cluster was logged in the last 10 minutes.

        Args:
            cluster: name of the cluster.
            operation: failed operation and consequence, printed before the cause.
            error: cause.
        """
        last = traceback.extract_tb(error.__traceback__)[-1]
        cause = (cluster, type(error).__name__, last.filename, last.lineno)
        now_s = self._now_s()
        if now_s - self._logged_s.get(cause, -_AGAIN_S) >= _AGAIN_S:
            self._logged_s[cause] = now_s
            self._log.error("%s: %s: %s", operation, type(error).__name__, error, exc_info=error)

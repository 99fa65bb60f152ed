"""What fails in the evaluation of a cluster: told once for each cause, for it comes back with every tick."""

from __future__ import annotations

import logging
import time
import traceback
from collections.abc import Callable

# What lasts is told anew.
_AGAIN_S = 600.0


class Faults:
    """Logs what fails, by cluster.

    Args:
        log: where to.
        now_s: gives seconds that pass evenly.
    """

    def __init__(self, log: logging.Logger, now_s: Callable[[], float] = time.monotonic) -> None:
        self._log = log
        self._now_s = now_s
        # When it was told, by cluster, error, file and line.
        self._told_s: dict[tuple[str, str, str, int | None], float] = {}

    def tell(self, cluster: str, what: str, error: Exception) -> None:
        """Log an error with its traceback, unless the same one of this cluster was told some minutes ago.

        Args:
            cluster: name of the cluster.
            what: what failed and what follows, to stand before the cause.
            error: the cause.
        """
        last = traceback.extract_tb(error.__traceback__)[-1]
        cause = (cluster, type(error).__name__, last.filename, last.lineno)
        now_s = self._now_s()
        if now_s - self._told_s.get(cause, -_AGAIN_S) >= _AGAIN_S:
            self._told_s[cause] = now_s
            self._log.error("%s: %s: %s", what, type(error).__name__, error, exc_info=error)

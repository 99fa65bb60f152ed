"""Jobs that are started again when they fail, in the same Spark."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Sequence

from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException
from pyspark.sql.streaming.query import StreamingQuery

from alerts.text.formatting import format_duration
from schemas.errors import HeadroomError
from streaming.supervision.failure import cause_of
from streaming.supervision.failures import Failures
from streaming.supervision.jvm import AGAIN

log = logging.getLogger(__name__)

_AGAIN_S = 2.0
_FAILURES = (HeadroomError, Py4JJavaError, PySparkException)
# More failures than these are no chance of the moment, and need a person.
_MOST = 5


class RestartingJob:
    """A job with its queries, which is started again when one of them has stopped.

    Args:
        name: what messages call it.
        start: starts it, and returns its queries.
        is_awaited: whether something that it cannot do without is awaited: it is not started then.
        now_s: gives seconds that pass evenly.

    Attributes:
        queries: those that were started last.
        down: whether it does not run just now.
    """

    def __init__(
        self,
        name: str,
        start: Callable[[], Sequence[StreamingQuery]],
        is_awaited: Callable[[], bool] = lambda: False,
        now_s: Callable[[], float] = time.monotonic,
    ) -> None:
        self.name = name
        self.queries: Sequence[StreamingQuery] = ()
        self.down = False
        self._start = start
        self._is_awaited = is_awaited
        self._now_s = now_s
        self._again_s, self._reason = 0.0, ""
        self._failures = Failures(_MOST, now_s)

    def start(self) -> None:
        """Start it; what goes wrong is raised."""
        self.queries = self._start()
        self.down = False

    def begin(self) -> None:
        """Start it; what goes wrong is raised, unless it is what it has to wait for."""
        try:
            self.start()
        except _FAILURES as error:
            if not self._is_awaited():
                raise
            self._note_failure(cause_of(error))

    def look(self) -> None:
        """Note whether it has stopped, and let go of what is left of it."""
        if not self.down and not all(query.isActive for query in self.queries):
            reason = next(reason_of(query) for query in self.queries if not query.isActive)
            for query in self.queries:
                query.stop()
            self._note_failure(reason)

    def excuse(self) -> None:
        """Forget its failures: their cause is known, and has been told."""
        self._failures.forget()

    def go_on(self) -> None:
        """Start it again, if it is down and it is time.

        Raises:
            HeadroomError: it has failed too often.
        """
        if not self.down:
            return
        if self._is_awaited():
            self.excuse()
            return
        if self._failures.are_too_many:
            rule = (
                f"has stopped {self._failures.count} times within {format_duration(Failures.WITHIN_S)}: {self._reason}"
            )
            raise HeadroomError(f"job {self.name}", rule, _remedy(self._reason))
        if self._now_s() < self._again_s:
            return
        try:
            self.start()
        except _FAILURES as error:
            self._note_failure(cause_of(error))
        else:
            log.warning("job %s goes on", self.name)

    def _note_failure(self, reason: str) -> None:
        self.down, self._reason, self._again_s = True, reason, self._now_s() + _AGAIN_S
        self._failures.add()
        log.error("job %s has stopped, and is started again: %s", self.name, reason)


def reason_of(query: StreamingQuery) -> str:
    """Return why a query has stopped."""
    error = query.exception()
    return "it was stopped from outside" if error is None else cause_of(error)


def _remedy(reason: str) -> str:
    if "offset" in reason.lower() and ("lost" in reason.lower() or "out of range" in reason.lower()):
        return "Records were deleted before they were read: raise the topic's retention, remove this job's checkpoint."
    return AGAIN

"""Jobs that restart in the same Spark session after a failure."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Sequence

from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException
from pyspark.sql.streaming.query import StreamingQuery

from headroom.schemas.errors import HeadroomError
from headroom.schemas.text.amounts import duration_text
from headroom.streaming.supervision.failure import AGAIN, cause_of
from headroom.streaming.supervision.failures import Failures

log = logging.getLogger(__name__)

# Pause before a restart, seconds.
_RESTART_S = 2.0
# Errors of a start.
JOB_FAILURES = (HeadroomError, Py4JJavaError, PySparkException)
# Number of failures in ten minutes that may be transient. More of them need an operator.
_MOST = 5


class RestartingJob:
    """A job with its queries, which restarts after one of them has stopped.

    Args:
        name: name of the job in messages.
        start: starts the job and returns its queries.
        is_blocked: returns whether the job must wait, because its tables are damaged. It is not restarted then.
        now_s: monotonic clock, seconds.

    Attributes:
        queries: queries of the last start.
        down: whether the job has stopped and waits for a restart.
    """

    def __init__(
        self,
        name: str,
        start: Callable[[], Sequence[StreamingQuery]],
        is_blocked: Callable[[], bool] = lambda: False,
        now_s: Callable[[], float] = time.monotonic,
    ) -> None:
        self.name = name
        self.queries: Sequence[StreamingQuery] = ()
        self.down = False
        self._start = start
        self._is_blocked = is_blocked
        self._now_s = now_s
        self._restart_at_s, self._reason = 0.0, ""
        self._failures = Failures(_MOST, now_s)

    def start(self) -> None:
        """Start the job; all errors are raised."""
        self.queries = self._start()
        self.down = False

    def start_or_wait(self) -> None:
        """Start the job; errors are raised, unless the job must wait for its tables."""
        try:
            self.start()
        except JOB_FAILURES as error:
            if not self._is_blocked():
                raise
            self._note_failure(cause_of(error))

    def wait(self, reason: str) -> None:
        """Let the job wait to be started by ``restart_if_due``; that is no failure.

        Args:
            reason: why it cannot be started yet.
        """
        self.down, self._reason, self._restart_at_s = True, reason, self._now_s()
        log.warning("job %s is not started yet: %s", self.name, reason)

    def check(self) -> None:
        """Record a failure if a query has stopped, and stop the job's other queries."""
        if not self.down and not all(query.isActive for query in self.queries):
            reason = next(reason_of(query) for query in self.queries if not query.isActive)
            for query in self.queries:
                query.stop()
            self._note_failure(reason)

    def forget_failures(self) -> None:
        """Reset the count of failures, because their cause is known and was reported."""
        self._failures.forget()

    def restart_if_due(self) -> None:
        """Start the job again if it is down and the pause is over.

        Raises:
            HeadroomError: the job has failed too often.
        """
        if not self.down:
            return
        if self._is_blocked():
            self.forget_failures()
            return
        if self._failures.are_too_many:
            rule = f"has stopped {self._failures.count} times within {duration_text(Failures.WITHIN_S)}: {self._reason}"
            raise HeadroomError(f"job {self.name}", rule, AGAIN)
        if self._now_s() < self._restart_at_s:
            return
        try:
            self.start()
        except JOB_FAILURES as error:
            self._note_failure(cause_of(error))
        else:
            log.warning("job %s runs again", self.name)

    def _note_failure(self, reason: str) -> None:
        self.down, self._reason, self._restart_at_s = True, reason, self._now_s() + _RESTART_S
        self._failures.add()
        log.error("job %s has stopped, and is started again: %s", self.name, reason)


def reason_of(query: StreamingQuery) -> str:
    """Return the cause of a query's stop in one line."""
    error = query.exception()
    return "it was stopped from outside" if error is None else cause_of(error)

"""A pipeline that is rebuilt after Spark's JVM has ended, for example killed by the kernel when memory ran out."""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import suppress
from typing import TYPE_CHECKING

from headroom.cli.common.output import echo
from headroom.schemas.errors import HeadroomError
from headroom.schemas.text.amounts import duration_text
from headroom.streaming.supervision.failure import JvmEnded
from headroom.streaming.supervision.failures import Failures

if TYPE_CHECKING:
    from headroom.streaming.handover import Handover
    from headroom.streaming.pipeline import Pipeline

_RESTART_AFTER_S = 2.0
# More ends than this in a short time have a lasting cause, so the command fails.
_MAX_ENDS = 3


class RestartingPipeline:
    """A pipeline that restarts some seconds after its JVM has ended, and restores its state from the tables.

    What the tables could not take, the next pipeline gets from the one that has ended.

    Args:
        build: returns a pipeline over a new Spark session; gets what the one before has passed on.
        start: starts the jobs of a pipeline.
        now_s: monotonic clock, in seconds.
    """

    def __init__(
        self,
        build: Callable[[Handover | None], Pipeline],
        start: Callable[[Pipeline], None],
        now_s: Callable[[], float] = time.monotonic,
    ) -> None:
        self._build = build
        self._start = start
        self._now_s = now_s
        self._pipeline: Pipeline | None = None
        self._handover: Handover | None = None
        self._restart_at_s, self._last_error = 0.0, ""
        self._jvm_ends = Failures(_MAX_ENDS, now_s)

    def start(self) -> None:
        """Build the pipeline and start its jobs; after an error nothing is left running."""
        self._pipeline = self._build(self._handover)
        try:
            self._start(self._pipeline)
        except BaseException:
            if self._handover is not None:
                self._handover = self._pipeline.hand_over()
            with suppress(HeadroomError):
                self._stop_pipeline()
            raise
        self._handover = None

    def check(self) -> None:
        """Check the pipeline, and restart it if its JVM has ended and the delay has passed.

        Raises:
            HeadroomError: a job has stopped too often, or the JVM has.
        """
        try:
            if self._pipeline is not None:
                self._pipeline.check()
            elif self._now_s() >= self._restart_at_s:
                self._restart()
        except JvmEnded as error:
            self._schedule_restart(error)

    def stop(self) -> None:
        """Stop the jobs, if there are any.

        Raises:
            HeadroomError: Spark itself has stopped before.
        """
        # Between two pipelines nobody else stops the deliveries that were handed over.
        handover, self._handover = self._handover, None
        if handover is not None and handover.outbox is not None:
            handover.outbox.stop()
        self._stop_pipeline()

    def _stop_pipeline(self) -> None:
        pipeline, self._pipeline = self._pipeline, None
        if pipeline is not None:
            pipeline.stop()

    def _restart(self) -> None:
        """Build the pipeline again; an error such as an unreachable cluster may be temporary, so it is retried."""
        try:
            self.start()
        except JvmEnded:
            raise
        except HeadroomError as error:
            self._restart_at_s = self._now_s() + _RESTART_AFTER_S
            # It is tried every few seconds; the same reason again would only fill the log.
            if str(error) != self._last_error:
                echo(f"headroom: {error}", err=True)
            self._last_error = str(error)
        else:
            self._last_error = ""

    def _schedule_restart(self, error: JvmEnded) -> None:
        """Stop the pipeline of a JVM that has ended, and schedule its restart.

        Raises:
            JvmEnded: the JVM has ended too often.
        """
        from headroom.streaming.session import forget_jvm

        self._jvm_ends.add()
        if self._pipeline is not None:
            self._handover = self._pipeline.hand_over()
        # With its Spark gone, stopping the jobs fails too.
        with suppress(HeadroomError):
            self._stop_pipeline()
        if self._jvm_ends.are_too_many:
            raise error
        forget_jvm()
        self._restart_at_s = self._now_s() + _RESTART_AFTER_S
        echo(
            f"headroom: {error.subject}: {error.rule}; it is started again in {duration_text(_RESTART_AFTER_S)}",
            err=True,
        )

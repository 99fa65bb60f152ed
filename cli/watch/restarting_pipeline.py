"""A pipeline that is built again when Spark's JVM has ended, as by the kernel for want of memory."""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import suppress

from alerts.text.formatting import format_duration
from cli.common.output import echo
from schemas.errors import HeadroomError
from streaming.pipeline import Pipeline
from streaming.session import forget_jvm
from streaming.supervision.failures import Failures
from streaming.supervision.jvm import JvmEnded

_AGAIN_S = 2.0
# More than these are no chance of the moment.
_MOST = 3


class RestartingPipeline:
    """A pipeline that runs again some seconds after its JVM has ended; all that it knew it reads from the tables.

    Args:
        build: makes a pipeline over a new session.
        start: starts its jobs.
        now_s: gives seconds that pass evenly.
    """

    def __init__(
        self,
        build: Callable[[], Pipeline],
        start: Callable[[Pipeline], None],
        now_s: Callable[[], float] = time.monotonic,
    ) -> None:
        self._build = build
        self._start = start
        self._now_s = now_s
        self._pipeline: Pipeline | None = None
        self._again_s, self._in_the_way = 0.0, ""
        self._ends = Failures(_MOST, now_s)

    def start(self) -> None:
        """Build it and start its jobs; what goes wrong is raised, with nothing left running."""
        self._pipeline = self._build()
        try:
            self._start(self._pipeline)
        except BaseException:
            with suppress(HeadroomError):
                self.stop()
            raise

    def check(self) -> None:
        """Look after it, and build it again when it is time.

        Raises:
            HeadroomError: a job has stopped too often, or the JVM has.
        """
        try:
            if self._pipeline is not None:
                self._pipeline.check()
            elif self._now_s() >= self._again_s:
                self._start_again()
        except JvmEnded as error:
            self._let_go(error)

    def stop(self) -> None:
        """Stop the jobs, if there are any.

        Raises:
            HeadroomError: Spark itself has stopped before.
        """
        pipeline, self._pipeline = self._pipeline, None
        if pipeline is not None:
            pipeline.stop()

    def _start_again(self) -> None:
        """Build it again; what is in the way now, as a cluster out of reach, may be so no longer in a moment."""
        try:
            self.start()
        except JvmEnded:
            raise
        except HeadroomError as error:
            self._again_s = self._now_s() + _AGAIN_S
            if str(error) != self._in_the_way:
                echo(f"headroom: {error}", err=True)
            self._in_the_way = str(error)
        else:
            self._in_the_way = ""

    def _let_go(self, error: JvmEnded) -> None:
        """Let go of a JVM that has ended.

        Raises:
            JvmEnded: it has ended too often.
        """
        self._ends.add()
        with suppress(HeadroomError):
            self.stop()
        if self._ends.are_too_many:
            raise error
        forget_jvm()
        self._again_s = self._now_s() + _AGAIN_S
        echo(f"headroom: {error.subject}: {error.rule}; it is started again in {format_duration(_AGAIN_S)}", err=True)

"""Frames that a batch keeps in memory while it works on them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager

from pyspark.sql import DataFrame

Hold = Callable[[DataFrame], DataFrame]


@contextmanager
def cached_frames() -> Iterator[Hold]:
    """Give a function that keeps a frame, once it is computed, until the block ends, and returns it."""
    with ExitStack() as held:

        def hold(frame: DataFrame) -> DataFrame:
            held.callback(frame.persist().unpersist)
            return frame

        yield hold


@contextmanager
def computing() -> Iterator[Hold]:
    """Give a function that computes a frame at once and returns its rows, which are kept until the block ends.

    What is made of them is planned from there on: a plan that is joined with itself several times, as for progress,
    otherwise takes seconds to analyse.
    """
    with ExitStack() as kept:

        def compute(frame: DataFrame) -> DataFrame:
            rows = frame.localCheckpoint()
            # Spark lets go of them only when the garbage of the JVM is collected.
            kept.callback(rows._jdf.queryExecution().logical().rdd().unpersist, False)
            return rows

        yield compute

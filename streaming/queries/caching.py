"""DataFrames that a batch keeps in memory while it works on them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager

from pyspark.sql import DataFrame

Cache = Callable[[DataFrame], DataFrame]


@contextmanager
def cached_frames() -> Iterator[Cache]:
    """Yield a function that caches a frame and returns it; Spark fills the cache at the frame's first use.

    At the end of the block all frames are dropped from memory.
    """
    with ExitStack() as stack:

        def cache(frame: DataFrame) -> DataFrame:
            stack.callback(frame.persist().unpersist)
            return frame

        yield cache


@contextmanager
def checkpointed_frames() -> Iterator[Cache]:
    """Yield a function that computes a frame at once and returns its rows as a new frame, kept until the block ends.

    The plans of later steps start at these rows. Without that, a plan that is joined with itself several times, as for
    progress, takes seconds to analyse.
    """
    with ExitStack() as stack:

        def compute(frame: DataFrame) -> DataFrame:
            rows = frame.localCheckpoint()
            # Otherwise Spark frees the rows only after a garbage collection of the JVM.
            stack.callback(rows._jdf.queryExecution().logical().rdd().unpersist, False)
            return rows

        yield compute

"""Frames that a batch keeps in memory while it works on them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager

from pyspark.sql import DataFrame

Hold = Callable[[DataFrame], DataFrame]


@contextmanager
def holding() -> Iterator[Hold]:
    """Give a function that keeps a frame, once it is computed, until the block ends, and returns it."""
    with ExitStack() as held:

        def hold(frame: DataFrame) -> DataFrame:
            held.callback(frame.persist().unpersist)
            return frame

        yield hold

"""A gate for the batches of a query, so that it is stopped between two of them and not in the midst of a write."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence

from pyspark.sql import DataFrame

Batch = Callable[[DataFrame, int], None]

_LONGEST_BATCH_S = 30.0
_STEP_S = 0.05


class Stopping(Exception):
    """A batch came after the stop was asked for; it is done again at the next start."""


class BatchGate:
    """Lets batches through until it is closed.

    Args:
        on_batch: told of every batch that was done for how many seconds it was within.

    Attributes:
        batches: how many were done.
    """

    def __init__(self, on_batch: Callable[[float], None] = lambda seconds: None) -> None:
        self._on_batch = on_batch
        self._busy = threading.Lock()
        self._closed = False
        self._began_s: float | None = None
        self._ended_s = time.monotonic()
        self.batches = 0

    @property
    def idle_s(self) -> float:
        """Return for how many seconds no batch has been within."""
        return time.monotonic() - self._ended_s if self._began_s is None else 0.0

    @property
    def batch_s(self) -> float | None:
        """Return for how many seconds the batch that is within has been there; None: there is none."""
        began_s = self._began_s
        return None if began_s is None else time.monotonic() - began_s

    def through(self, batch: Batch) -> Batch:
        """Return the batch function behind this gate."""

        def guarded(rows: DataFrame, batch_id: int) -> None:
            with self._busy:
                if self._closed:
                    raise Stopping("the job is being stopped")
                self._began_s = began_s = time.monotonic()
                try:
                    batch(rows, batch_id)
                    self.batches += 1
                    self._on_batch(time.monotonic() - began_s)
                except Exception:
                    # A query that is stopped breaks off its batch. Spark looks for the cause in the text of the error,
                    # with a pattern for which a long one, as of a Spark job that is cancelled, overflows the stack.
                    if self._closed:
                        raise Stopping("a batch was broken off") from None
                    raise
                finally:
                    self._ended_s = time.monotonic()
                    self._began_s = None

        return guarded

    def close(self) -> None:
        """Let no further batch through, and return when the running one is done, or has taken too long."""
        self._closed = True
        if self._busy.acquire(timeout=_LONGEST_BATCH_S):
            self._busy.release()


def wait_idle(gates: Sequence[BatchGate], most_s: float) -> None:
    """Return when no batch is within any of some gates, or after so many seconds."""
    end_s = time.monotonic() + most_s
    while any(gate.batch_s is not None for gate in gates) and time.monotonic() < end_s:
        time.sleep(_STEP_S)

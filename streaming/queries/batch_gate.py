"""Admission of the micro-batches of a query, so that it stops between two batches and not in the middle of a write."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence

from pyspark.sql import DataFrame

Batch = Callable[[DataFrame, int], None]

_LONGEST_BATCH_S = 30.0
_STEP_S = 0.05


class StopRequested(Exception):
    """A batch came after the stop was requested. Spark repeats it at the next start."""


class BatchGate:
    """Admits micro-batches until it is closed.

    Args:
        on_batch: called after every batch with its duration in seconds.

    Attributes:
        batches: number of finished batches.
    """

    def __init__(self, on_batch: Callable[[float], None] = lambda seconds: None) -> None:
        self._on_batch = on_batch
        self._busy = threading.Lock()
        self._closed = threading.Event()
        self._began_s: float | None = None
        self._ended_s = time.monotonic()
        self.batches = 0

    @property
    def idle_s(self) -> float:
        """Return the seconds since the last batch ended; 0 while one is in progress."""
        return time.monotonic() - self._ended_s if self._began_s is None else 0.0

    @property
    def is_closed(self) -> bool:
        """Return whether no further batch is admitted."""
        return self._closed.is_set()

    @property
    def batch_s(self) -> float | None:
        """Return how long the current batch has been in progress, seconds; None if there is none."""
        began_s = self._began_s
        return None if began_s is None else time.monotonic() - began_s

    def wrap(self, batch: Batch) -> Batch:
        """Return a batch function that runs only while the gate is open, and is timed."""

        def run_batch(rows: DataFrame, batch_id: int) -> None:
            with self._busy:
                if self._closed.is_set():
                    raise StopRequested("the job is being stopped")
                self._began_s = began_s = time.monotonic()
                try:
                    batch(rows, batch_id)
                    self.batches += 1
                    self._on_batch(time.monotonic() - began_s)
                except Exception:
                    # Stopping a query cancels its batch. Spark searches the error's text with a regular expression,
                    # which overflows the stack on a long text, such as that of a cancelled Spark job.
                    if self._closed.is_set():
                        raise StopRequested("a batch was broken off") from None
                    raise
                finally:
                    self._ended_s = time.monotonic()
                    self._began_s = None

        return run_batch

    def pause(self, seconds: float) -> None:
        """Return after some seconds, or when the gate is closed; no batch counts as in progress meanwhile."""
        self._closed.wait(seconds)

    def close(self) -> None:
        """Admit no further batch, and wait for the one in progress, at most 30 s."""
        self._closed.set()
        if self._busy.acquire(timeout=_LONGEST_BATCH_S):
            self._busy.release()


def wait_idle(gates: Sequence[BatchGate], most_s: float) -> None:
    """Return when none of the gates has a batch in progress, or after ``most_s`` seconds."""
    end_s = time.monotonic() + most_s
    while any(gate.batch_s is not None for gate in gates) and time.monotonic() < end_s:
        time.sleep(_STEP_S)

"""Pace of the commits of a query: seldom while nothing happens in the watched clusters, at every trigger otherwise."""

from __future__ import annotations

import time
from typing import Protocol

from headroom.streaming.queries.batch_gate import BatchGate

# How often a held query looks whether something has begun to move. A look costs microseconds.
_LOOK_S = 0.2


class TicksActivity(Protocol):
    """What is known of the alert partition without reading it with Spark."""

    def start(self) -> None:
        """Start to follow the alert partition; a second call does nothing."""

    def stop(self) -> None:
        """Stop following."""

    def is_quiet(self) -> bool:
        """Return whether no partition has moved, was listed or was under-replicated lately; false if unknown."""
        ...

    def records_from(self, offset: int) -> int | None:
        """Return how many records the alert partition has from an offset on; None if unknown."""
        ...


class NoActivity:
    """Knows nothing, so that each commit follows its trigger."""

    def start(self) -> None:
        """See ``TicksActivity``."""

    def stop(self) -> None:
        """See ``TicksActivity``."""

    def is_quiet(self) -> bool:
        """See ``TicksActivity``."""
        return False

    def records_from(self, offset: int) -> int | None:
        """See ``TicksActivity``."""
        return None


class IdlePace:
    """Holds a query back between two batches while its cluster is quiet, so that one commit has several ticks.

    Args:
        activity: what happens in the alert partition.
        idle_s: longest time from the start of one batch to the next, seconds.
    """

    def __init__(self, activity: TicksActivity, idle_s: float) -> None:
        self._activity = activity
        self._idle_s = idle_s

    def hold(self, began_s: float, end_offset: int, most_records: int, gate: BatchGate) -> None:
        """Return when the next batch may begin.

        Args:
            began_s: start of the last batch, monotonic seconds.
            end_offset: offset after the last tick that it has written.
            most_records: most records of a batch. With as many waiting, more waiting would make no larger commit.
            gate: gate of the query, which ends the wait when it is closed.
        """
        until_s = began_s + self._idle_s
        while not gate.is_closed and time.monotonic() < until_s and self._may_wait(end_offset, most_records):
            gate.pause(_LOOK_S)

    def _may_wait(self, end_offset: int, most_records: int) -> bool:
        waiting = self._activity.records_from(end_offset)
        return self._activity.is_quiet() and waiting is not None and waiting < most_records

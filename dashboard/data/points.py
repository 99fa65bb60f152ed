"""Points of charts whose end goes on with the ticks: only the last ones are read again."""

from __future__ import annotations

import threading
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Protocol, TypeVar

from headroom.dashboard.data.history import ThrottlePoint, throttle_history
from headroom.dashboard.data.kept import keep
from headroom.dashboard.data.moment import LATE_MS
from headroom.dashboard.data.open_tables import OpenTables
from headroom.dashboard.data.timeline import ProgressPoint, TickRange, progress_history
from headroom.schemas.keys import BrokerRole

# Charts that are kept: those of the pages that are open.
_KEPT = 16
# Rows that were written later than that are found when a range is read as a whole, once in a 24th of its length.
_WHOLE_PART = 24


class Point(Protocol):
    """What one point of a chart has."""

    @property
    def tick_ms(self) -> int:
        """Return one of its ticks, epoch milliseconds."""


P = TypeVar("P", bound=Point)


@dataclass
class _KeptPoints:
    """Points up to a tick; one thread at a time reads further ones.

    Attributes:
        points: the points, by time.
        last_ms: end of the range that they are of, epoch milliseconds.
        whole_ms: end of the range that was last read as a whole, epoch milliseconds.
        lock: held while they are read.
    """

    points: Sequence[Any]
    last_ms: int
    whole_ms: int
    lock: threading.Lock


class PointReader:
    """Reads points of charts. Threads may share it.

    Args:
        tables: the tables of the store.
    """

    def __init__(self, tables: OpenTables) -> None:
        self._tables = tables
        self._lock = threading.Lock()
        self._kept: dict[Hashable, _KeptPoints] = {}

    def progress(self, ticks: TickRange) -> list[ProgressPoint]:
        """Return ``progress_history`` of a range.

        Raises:
            HeadroomError: the table cannot be read.
        """

        def read(part: TickRange, step_ms: int) -> list[ProgressPoint]:
            return progress_history(self._tables, part, step_ms)

        return self._points(("progress", ticks.topic), ticks, read)

    def throttle(self, ticks: TickRange, broker_role: BrokerRole) -> list[ThrottlePoint]:
        """Return ``throttle_history`` of a range.

        Raises:
            HeadroomError: the table cannot be read, or a row of it cannot be used.
        """

        def read(part: TickRange, step_ms: int) -> list[ThrottlePoint]:
            return throttle_history(self._tables, part, broker_role, step_ms)

        return self._points(("throttle", broker_role), ticks, read)

    def _points(self, name: Hashable, ticks: TickRange, read: Callable[[TickRange, int], list[P]]) -> list[P]:
        span_ms, step_ms = ticks.last_ms - ticks.first_ms, ticks.step_ms
        if not ticks.is_live:
            return read(ticks, step_ms)
        kept = self._kept_of((name, ticks.cluster, span_ms))
        with kept.lock:
            first_ms, whole_ms = ticks.first_ms, ticks.last_ms
            before: list[P] = []
            if kept.last_ms <= ticks.last_ms <= kept.whole_ms + span_ms // _WHOLE_PART:
                # From the beginning of a step: its point is made of all of its ticks.
                again_ms = kept.last_ms - LATE_MS
                first_ms, whole_ms = max(first_ms, again_ms - again_ms % step_ms), kept.whole_ms
                before = [point for point in kept.points if ticks.first_ms <= point.tick_ms < first_ms]
            points = before + read(replace(ticks, first_ms=first_ms), step_ms)
            kept.points, kept.last_ms, kept.whole_ms = points, ticks.last_ms, whole_ms
            return list(points)

    def _kept_of(self, key: Hashable) -> _KeptPoints:
        """Return what is kept of a chart, nothing at first; the charts that were asked for longest ago are dropped."""
        with self._lock:
            kept = self._kept.get(key) or _KeptPoints((), 0, 0, threading.Lock())
            keep(self._kept, key, kept, _KEPT)
            return kept

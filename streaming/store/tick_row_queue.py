"""Queue of rows for tables of ticks, appended on a thread of its own, so that the alert path does not wait for them."""

from __future__ import annotations

import logging
import threading
import time
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Protocol

from headroom.schemas.errors import ENDINGS
from headroom.schemas.keys import Tick
from headroom.schemas.tables import Table
from headroom.streaming.supervision.failure import cause_of

log = logging.getLogger(__name__)

# Rows that may wait for a slow disk. They are some 20 MB with the evidence of large moves.
_MOST_ROWS = 20_000
# Ticks of which nobody waits for the rows are committed together, because each commit makes two files.
_HOLD_S = 20.0
# Computations that may wait. Further ones come from an alert path that is busier than this thread.
_MOST_COMPUTATIONS = 2
_STOP_S = 10.0


@dataclass(frozen=True)
class TickRows:
    """All rows of a tick in one table.

    Attributes:
        table: table.
        tick: cluster and time.
        rows: the rows, as mappings of columns to values, without ``date``.
        urgent: whether they are written at once. Others may wait for those of later ticks.
    """

    table: Table
    tick: Tick
    rows: Sequence[Mapping[str, Any]]
    urgent: bool


class Computation(Protocol):
    """Rows that are computed on the thread of the queue."""

    def rows(self) -> Sequence[TickRows]:
        """Return the rows; none if it has appended them itself."""

    def close(self) -> None:
        """Free what was kept for it. Called once, also if it does not run, except at the end of the process."""


class Appendable(Protocol):
    """Table that gets rows by tick; see ``streaming.delta.tick_table.TickTable``."""

    def append(self, rows: Mapping[Tick, Sequence[Mapping[str, Any]]]) -> None:
        """Append the rows of the ticks that the table does not have."""


class TickRowQueue:
    """Appends rows on a daemon thread. Rows that find no room, or cannot be appended, are dropped for the gold job.

    Args:
        open_tables: returns the tables; called on the thread until it succeeds, because it may wait for a disk.
        now_s: monotonic clock, seconds.
    """

    def __init__(
        self, open_tables: Callable[[], Mapping[Table, Appendable]], now_s: Callable[[], float] = time.monotonic
    ) -> None:
        self._open_tables = open_tables
        self._now_s = now_s
        self._tables: Mapping[Table, Appendable] = {}
        self._changed = threading.Condition()
        self._waiting: list[TickRows] = []
        self._computations: list[Computation] = []
        # When the waiting rows must be written, monotonic seconds. The first rows after a start are not held back.
        self._due_s = 0.0
        self._hold_s = 0.0
        self._is_stopping = self._is_writing = False
        self._logged = ""
        self._thread = threading.Thread(target=self._run, name="gold rows", daemon=True)

    def put(self, added: Sequence[TickRows], computation: Computation | None = None) -> None:
        """Queue rows, without waiting.

        Args:
            added: rows.
            computation: computes further rows on the thread, after these are written; None if there are none.
        """
        accepted = self._accept(added, computation)
        if computation is not None and not accepted:
            computation.close()

    def _accept(self, added: Sequence[TickRows], computation: Computation | None) -> bool:
        """Queue rows, and return whether the computation is queued too."""
        with self._changed:
            if sum(len(one.rows) for one in (*self._waiting, *added)) > _MOST_ROWS:
                self._report("more rows wait than the disk takes")
                return False
            if not self._waiting:
                self._due_s = self._now_s() + self._hold_s
            self._hold_s = _HOLD_S
            self._waiting += added
            has_room = computation is not None and len(self._computations) < _MOST_COMPUTATIONS
            if computation is not None and has_room:
                self._computations.append(computation)
            if any(one.urgent for one in added):
                self._due_s = self._now_s()
            if self._thread.ident is None:
                self._thread.start()
            self._changed.notify()
            return has_room

    def stop(self) -> None:
        """Write the waiting rows, and end the thread; wait for that at most 10 s. Nothing is computed any more."""
        with self._changed:
            self._is_stopping = True
            self._computations.clear()
            self._changed.notify()
        if self._thread.is_alive():
            self._thread.join(_STOP_S)

    def _run(self) -> None:
        while taken := self._take():
            rows, computations = taken
            try:
                self._append(rows)
                for computation in computations:
                    self._append(computation.rows())
                self._logged = ""
            except ENDINGS:
                raise
            # Any error, and a panic of the library, which is no Exception: the gold job writes these ticks.
            except BaseException as error:
                self._report(cause_of(error))
            for computation in computations:
                # What was kept is gone with a process of Spark that has ended.
                with suppress(Exception):
                    computation.close()
            self._is_writing = False

    def _take(self) -> tuple[list[TickRows], list[Computation]] | None:
        """Return the waiting rows and computations once they are due; None at the end."""
        with self._changed:
            while not self._is_stopping and (not self._waiting or self._now_s() < self._due_s):
                self._changed.wait(self._due_s - self._now_s() if self._waiting else None)
            taken = self._waiting, self._computations
            self._waiting, self._computations = [], []
            self._is_writing = bool(taken[0])
            return taken if self._is_writing else None

    def _append(self, taken: Sequence[TickRows]) -> None:
        self._tables = self._tables or self._open_tables()
        by_table: dict[Table, dict[Tick, Sequence[Mapping[str, Any]]]] = defaultdict(dict)
        for one in taken:
            by_table[one.table].setdefault(one.tick, one.rows)
        for table, rows in by_table.items():
            self._tables[table].append(rows)

    def _report(self, trouble: str) -> None:
        # The same for every tick would fill the log.
        if trouble != self._logged:
            log.warning("rows of gold tables are left to the gold job: %s", trouble)
        self._logged = trouble

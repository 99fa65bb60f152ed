"""Follows the tables, and wakes the streams of pages when a tick or an alert has come."""

from __future__ import annotations

import asyncio
import logging
import threading
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import suppress

from headroom.dashboard.data.moment import DAY_MS
from headroom.dashboard.data.open_tables import OpenTables
from headroom.schemas.errors import HeadroomError
from headroom.schemas.tables import (
    ALERT_DELIVERIES,
    ALERT_EVENTS,
    ALERT_MARKS,
    REASSIGNMENT_PROGRESS,
    THROTTLE_HEADROOM,
    Table,
)
from headroom.streaming.clock import now_ms
from headroom.streaming.delta.query import sql_text
from headroom.streaming.delta.tick_table import day_of

log = logging.getLogger(__name__)

# A look at the log of a table that has not changed takes some 0.1 ms on a local disk.
_EVERY_S = 0.2
# The new replicas of a tick may come after its verdicts.
_FOLLOWED = (THROTTLE_HEADROOM, REASSIGNMENT_PROGRESS, ALERT_EVENTS, ALERT_MARKS, ALERT_DELIVERIES)
_VERDICTS_SQL = """SELECT "cluster", max(tick_ms) AS tick_ms FROM data WHERE date >= DATE '{day}' GROUP BY "cluster" """
_AHEAD_SQL = "SELECT tick_ms FROM data WHERE date >= DATE '{day}' AND ({is_ahead}) LIMIT 1"


class Live:
    """Number of the changes so far. Looks at the tables only while a page is open.

    Args:
        tables: tables of the store.
        clock_ms: returns the current time, epoch milliseconds.
    """

    def __init__(self, tables: OpenTables, clock_ms: Callable[[], int] = now_ms) -> None:
        self._tables = tables
        self._clock_ms = clock_ms
        self.version = 0
        # An event for each open stream.
        self._waiting: set[asyncio.Event] = set()
        self._wanted = threading.Event()
        self._stopped = threading.Event()
        self._loop: asyncio.AbstractEventLoop | None = None

    @property
    def streams(self) -> int:
        """Return the number of open streams."""
        return len(self._waiting)

    def start(self) -> None:
        """Start the thread that follows the tables, inside the event loop."""
        self._loop = asyncio.get_running_loop()
        threading.Thread(target=self._follow, name="tables", daemon=True).start()

    def stop(self) -> None:
        """End the thread, and the streams at once."""
        self._stopped.set()
        self._wanted.set()
        self._wake()

    async def changes(self, every_s: float) -> AsyncGenerator[int, None]:
        """Yield the version after each change, and at least every so often: ages grow without one.

        Args:
            every_s: longest time without a value, seconds.
        """
        changed = asyncio.Event()
        self._waiting.add(changed)
        self._wanted.set()
        try:
            while not self._stopped.is_set():
                # A change that comes meanwhile is not missed.
                changed.clear()
                yield self.version
                with suppress(asyncio.TimeoutError):
                    await asyncio.wait_for(changed.wait(), every_s)
        finally:
            self._waiting.discard(changed)
            if not self._waiting:
                self._wanted.clear()

    def _follow(self) -> None:
        versions: list[int | None] = []
        while not self._stopped.is_set():
            self._wanted.wait()
            now = [self._tables.version(table) for table in _FOLLOWED]
            if now != versions:
                only_replicas = bool(versions) and _changed(versions, now) == [REASSIGNMENT_PROGRESS]
                versions = now
                if not (only_replicas and self._are_ahead()):
                    self._wake()
            self._stopped.wait(_EVERY_S)

    def _are_ahead(self) -> bool:
        """Return whether there are new replicas of a tick without its verdicts, which come next and have it shown."""
        day = day_of(self._clock_ms() - DAY_MS)
        try:
            newest = self._tables.rows(THROTTLE_HEADROOM, _VERDICTS_SQL.format(day=day))
            later = [f'("cluster" = {sql_text(one["cluster"])} AND tick_ms > {one["tick_ms"]})' for one in newest or ()]
            sql = _AHEAD_SQL.format(day=day, is_ahead=" OR ".join(later) or "false")
            return bool(self._tables.rows(REASSIGNMENT_PROGRESS, sql))
        except HeadroomError:
            # The pages say which.
            return False

    def _wake(self) -> None:
        loop = self._loop
        # The loop may end meanwhile.
        with suppress(RuntimeError):
            if loop is not None and not loop.is_closed():
                loop.call_soon_threadsafe(self._advance)

    def _advance(self) -> None:
        self.version += 1
        for changed in self._waiting:
            changed.set()


def _changed(before: Sequence[int | None], now: Sequence[int | None]) -> list[Table]:
    """Return the tables whose version is another one."""
    return [table for table, old, new in zip(_FOLLOWED, before, now, strict=True) if old != new]

"""Follows the tables, and wakes the streams of pages when a tick or an alert has come."""

from __future__ import annotations

import asyncio
import logging
import threading
from collections.abc import AsyncGenerator
from contextlib import suppress

from headroom.dashboard.data.open_tables import OpenTables
from headroom.schemas.tables import (
    ALERT_DELIVERIES,
    ALERT_EVENTS,
    ALERT_MARKS,
    REASSIGNMENT_PROGRESS,
    THROTTLE_HEADROOM,
)

log = logging.getLogger(__name__)

# A look at the log of a table that has not changed takes some 0.1 ms on a local disk.
_EVERY_S = 0.2
# The new replicas of a tick come after its verdicts.
_FOLLOWED = (THROTTLE_HEADROOM, REASSIGNMENT_PROGRESS, ALERT_EVENTS, ALERT_MARKS, ALERT_DELIVERIES)


class Live:
    """Number of the changes so far. Looks at the tables only while a page is open.

    Args:
        tables: tables of the store.
    """

    def __init__(self, tables: OpenTables) -> None:
        self._tables = tables
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
                versions = now
                self._wake()
            self._stopped.wait(_EVERY_S)

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

"""Follows the tables, and wakes the streams of pages when a tick or an alert has come."""

from __future__ import annotations

import asyncio
import logging
import threading
from collections.abc import AsyncGenerator
from contextlib import suppress
from functools import partial

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
        self._changed = asyncio.Condition()
        self._streams = 0
        self._wanted = threading.Event()
        self._stopped = threading.Event()
        self._loop: asyncio.AbstractEventLoop | None = None

    @property
    def streams(self) -> int:
        """Return the number of open streams."""
        return self._streams

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
        self._streams += 1
        self._wanted.set()
        try:
            seen = self.version
            while not self._stopped.is_set():
                yield seen
                async with self._changed:
                    with suppress(asyncio.TimeoutError):
                        await asyncio.wait_for(self._changed.wait_for(partial(self._has_changed, seen)), every_s)
                    seen = self.version
        finally:
            self._streams -= 1
            if not self._streams:
                self._wanted.clear()

    def _has_changed(self, seen: int) -> bool:
        return self.version != seen

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
        if loop is not None and not loop.is_closed():
            asyncio.run_coroutine_threadsafe(self._advance(), loop)

    async def _advance(self) -> None:
        async with self._changed:
            self.version += 1
            self._changed.notify_all()

"""Table of ticks on a local disk that several processes append to, each tick once.

Every append carries one transaction id, with a version that is 1 higher than the last one. Delta refuses a commit if
another one with the same id was made since the state that it is based on. So an append knows all ticks in the table at
the moment of its commit. Maintenance does not use the id: it changes no rows, and conflicts with no append.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import date, datetime, timezone
from functools import partial
from typing import Any

from deltalake import CommitProperties, DeltaTable, Transaction

from headroom.schemas.keys import Tick
from headroom.schemas.tables import Table
from headroom.streaming.delta import query as delta_query
from headroom.streaming.delta.append import again_on_conflict, append_columns, without_panic
from headroom.streaming.delta.locations import require_writable

# Appends rows of some ticks to the table, in one commit with these properties.
Write = Callable[[DeltaTable, frozenset[Tick], CommitProperties], None]

_WRITER = "headroom-ticks"
_ATTEMPTS = 10
# Meanwhile the faster process may write the ticks itself.
_AGAIN_FOR_S = 60.0
# Ticks in memory, before only the newest are read again.
_MOST_KNOWN = 10_000


class TickTable:
    """A table with the columns ``cluster``, ``tick_ms`` and ``date``, for one thread.

    Args:
        path: folder of the table, which must exist before the first call.
        table: definition of the table.
    """

    def __init__(self, path: str, table: Table) -> None:
        self._path = path
        self._table = table
        self._opened: DeltaTable | None = None
        # All ticks from ``since_ms`` on, as of the append with this version.
        self._known: set[Tick] = set()
        self._version, self._since_ms = -1, 0

    def missing(self, ticks: Collection[Tick]) -> frozenset[Tick]:
        """Return which of some ticks the table does not have, at the moment."""
        if not ticks:
            return frozenset()
        with without_panic(self._path), self._opened_table() as opened:
            return self._missing(opened, ticks)

    def append(self, rows: Mapping[Tick, Sequence[Mapping[str, Any]]]) -> None:
        """Append the rows of the ticks that the table does not have; they are durable when this returns.

        Args:
            rows: all rows of each tick, as mappings of columns to values, without ``date``.

        Raises:
            HeadroomError: this user may not write there, or the Delta library panicked.
        """

        def write(opened: DeltaTable, ticks: frozenset[Tick], once: CommitProperties) -> None:
            records = [row | {"date": day_of(tick[1])} for tick in sorted(ticks) for row in map(dict, rows[tick])]
            columns = {name: [record[name] for record in records] for name in self._table.names()}
            append_columns(opened, columns, once)

        self.commit([tick for tick, of_tick in rows.items() if of_tick], write)

    def commit(self, ticks: Collection[Tick], write: Write) -> None:
        """Let ``write`` append the rows of the ticks that the table does not have.

        Args:
            ticks: ticks that have rows.
            write: called again, perhaps with fewer ticks, if another process has appended ticks meanwhile.

        Raises:
            HeadroomError: this user may not write there, or the Delta library panicked.
        """
        if not ticks:
            return
        require_writable(self._path)
        with without_panic(self._path):
            # Another process may append ticks, or delete old days, meanwhile.
            again_on_conflict(partial(self._commit, ticks, write), _ATTEMPTS, _AGAIN_FOR_S)

    def _commit(self, ticks: Collection[Tick], write: Write) -> None:
        with self._opened_table() as opened:
            new = self._missing(opened, ticks)
            if not new:
                return
            write(opened, new, CommitProperties(app_transactions=[Transaction(_WRITER, self._version + 1)]))
            self._known |= new
            self._version += 1

    def _missing(self, opened: DeltaTable, ticks: Collection[Tick]) -> frozenset[Tick]:
        version = opened.transaction_version(_WRITER) or 0
        since_ms = min(tick_ms for _, tick_ms in ticks)
        if version != self._version or since_ms < self._since_ms or len(self._known) > _MOST_KNOWN:
            sql = f"""SELECT DISTINCT "cluster", tick_ms FROM data
                WHERE date >= DATE '{day_of(since_ms)}' AND tick_ms >= {since_ms}"""
            self._known = {(row["cluster"], row["tick_ms"]) for row in delta_query.rows({"data": opened}, sql)}
            self._version, self._since_ms = version, since_ms
        return frozenset(ticks) - self._known

    @contextmanager
    def _opened_table(self) -> Iterator[DeltaTable]:
        """Yield the table as it is now. After an error in the block it is opened again: it may be another one."""
        opened, self._opened = self._opened, None
        if opened is None:
            opened, self._version = DeltaTable(self._path), -1
        else:
            opened.update_incremental()
        yield opened
        self._opened = opened


def day_of(tick_ms: int) -> date:
    """Return the day of a tick in UTC, the folder of its rows."""
    return datetime.fromtimestamp(tick_ms / 1000, timezone.utc).date()

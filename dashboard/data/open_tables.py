"""Delta tables that stay open, and are brought up to date by what was committed since."""

from __future__ import annotations

import logging
import threading
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeVar

from deltalake import DeltaTable, QueryBuilder

from headroom.schemas.errors import HeadroomError
from headroom.schemas.tables import Table
from headroom.streaming.delta import query as delta_query
from headroom.streaming.delta.append import without_panic
from headroom.streaming.delta.query import table_url
from headroom.streaming.delta.query_table import query

log = logging.getLogger(__name__)

T = TypeVar("T")
Answer = Callable[[QueryBuilder, str], list[dict[str, Any]]]


class OpenTables:
    """The tables of a store. Threads may share it; a query keeps no other one from its table, unless both are long.

    Args:
        store_path: ``store.path``: a folder or URL.
    """

    def __init__(self, store_path: str) -> None:
        self.store_path = store_path
        self._opened: dict[str, DeltaTable] = {}
        self._locks: dict[str, threading.Lock] = defaultdict(threading.Lock)
        self._lock = threading.Lock()
        # Two long queries at once would take the memory of both.
        self._long = threading.Lock()

    def rows(self, table: Table, sql: str) -> list[dict[str, Any]] | None:
        """Return the rows of a query over one table, named ``data`` in the SQL; None if the table does not exist.

        Raises:
            HeadroomError: the table exists but cannot be read.
        """
        return self._rows(table, sql, delta_query.answer)

    def records(self, table: Table, sql: str, of: Callable[[Mapping[str, Any]], T]) -> list[T]:
        """Return what a function makes of the rows of a query; nothing if the table does not exist.

        Raises:
            HeadroomError: the table exists but cannot be read, or a row of it cannot be used.
        """
        return _records(table, self.rows(table, sql), of)

    def long_records(self, table: Table, sql: str, of: Callable[[Mapping[str, Any]], T]) -> list[T]:
        """Return ``records`` of a query that takes long, while all others go on; the next long one waits for it.

        Raises:
            HeadroomError: as for ``records``.
        """
        with self._long:
            found = self._rows(table, sql, delta_query.long_answer)
        return _records(table, found, of)

    def _rows(self, table: Table, sql: str, answer: Answer) -> list[dict[str, Any]] | None:
        location = table_url(self.store_path, table.path)
        try:
            with without_panic(location):
                with self._lock_of(table):
                    session = delta_query.session_of({"data": self._current(table)}, {"data": table})
                return answer(session, sql)
        # Not there, damaged, or its files were compacted and deleted since: the other reader knows which.
        except Exception:
            log.debug("%s is opened again", location, exc_info=True)
            with self._lock_of(table):
                self._opened.pop(table.path, None)
        return query(self.store_path, table.path, sql)

    def version(self, table: Table) -> int | None:
        """Return the number of the newest commit of a table; None if it cannot be read."""
        with self._lock_of(table):
            try:
                with without_panic(table.path):
                    return self._current(table).version()
            except Exception:
                self._opened.pop(table.path, None)
                return None

    def _lock_of(self, table: Table) -> threading.Lock:
        with self._lock:
            return self._locks[table.path]

    def _current(self, table: Table) -> DeltaTable:
        opened = self._opened.get(table.path)
        if opened is None:
            opened = self._opened[table.path] = DeltaTable(table_url(self.store_path, table.path))
        else:
            opened.update_incremental()
        return opened


def _records(table: Table, rows: Sequence[Mapping[str, Any]] | None, of: Callable[[Mapping[str, Any]], T]) -> list[T]:
    try:
        return [of(row) for row in rows or ()]
    except (TypeError, ValueError) as error:
        remedy = "No version of Headroom writes that. Delete the row, or restore the table from a copy."
        raise HeadroomError(table.path, f"has a row that cannot be used: {error}", remedy) from None

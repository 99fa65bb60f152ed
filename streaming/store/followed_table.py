"""A table that another process writes, followed without reading it again as long as it has not changed."""

from __future__ import annotations

import logging
from collections import defaultdict
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any, TypeVar

from deltalake import DeltaTable
from deltalake.exceptions import TableNotFoundError
from pyspark.sql import SparkSession

from headroom.alerts.tick_clock import SetBackDetector
from headroom.schemas.keys import Tick
from headroom.schemas.tables import Table
from headroom.streaming.delta import query as delta_query
from headroom.streaming.delta.append import without_panic
from headroom.streaming.delta.locations import local_path
from headroom.streaming.store.store import Store
from headroom.streaming.supervision.failure import cause_of

log = logging.getLogger(__name__)

T = TypeVar("T")

_VIEW = "data"
# Ticks of clusters may differ in time by this much, because of their clocks or a backlog, and are still all found.
CLUSTER_SPREAD_MS = 15 * 60 * 1000
_LAST_SQL = f"SELECT max(tick_ms) AS tick_ms FROM {_VIEW}"

_Row = Mapping[str, Any]


def newest_sql(since_ms: int) -> str:
    """Return the query of each cluster's newest tick later than ``since_ms``, for Spark and without it."""
    return f"""SELECT d.* FROM {_VIEW} d
        JOIN (SELECT cluster, max(tick_ms) AS tick_ms FROM {_VIEW} WHERE tick_ms > {since_ms} GROUP BY cluster) n
        ON d.cluster = n.cluster AND d.tick_ms = n.tick_ms WHERE d.tick_ms > {since_ms}"""


def ticks_sql(since_ms: int) -> str:
    """Return the query of all ticks later than ``since_ms``, for Spark and without it."""
    return f"SELECT DISTINCT cluster, tick_ms FROM {_VIEW} WHERE tick_ms > {since_ms}"


def tick_sql(ticks_ms: Collection[int]) -> str:
    """Return the query of the rows of some ticks, of whatever clusters, for Spark and without it."""
    return f"SELECT * FROM {_VIEW} WHERE tick_ms IN ({', '.join(map(str, sorted(ticks_ms)))})"


def warn_unreadable(location: str, consequence: str, error: Exception) -> None:
    """Log that a table cannot be read."""
    log.warning("%s cannot be read, so %s: %s", location, consequence, cause_of(error))


class NewestTicks:
    """Finds each cluster's newest tick in a growing table, also after the cluster's clock was set back.

    After that, new ticks have times among those of old ones, and can only be recognized because they were not in the
    table before.
    """

    def __init__(self) -> None:
        # All by cluster, in epoch milliseconds. The newest tick that was passed on:
        self._newest: dict[str, int] = {}
        self._set_back: dict[str, SetBackDetector] = defaultdict(SetBackDetector)
        # After a poll without a newer tick: the start of the polled range, and all ticks in it.
        self._known: dict[str, tuple[int, set[int]]] = {}

    @property
    def last_ms(self) -> int | None:
        """Return the latest tick that was passed on, epoch milliseconds; None if there is none."""
        return max(self._newest.values(), default=None)

    def poll(self, query: Callable[[str], Sequence[_Row]], since_ms: int) -> list[_Row]:
        """Return the rows of each cluster's newest tick, unless it was passed on before.

        Args:
            query: runs a query over the table and returns its rows.
            since_ms: only later ticks count, epoch milliseconds.
        """
        rows = query(newest_sql(since_ms))
        newest = {(row["cluster"], row["tick_ms"]) for row in rows}
        new = {(cluster, tick_ms) for cluster, tick_ms in newest if self._is_newer(cluster, tick_ms)}
        for cluster, _ in new:
            self._known.pop(cluster, None)
            self._set_back[cluster].on_newer()
        unchanged = {cluster for cluster, _ in newest - new}
        set_back = self._ticks_set_back(unchanged, query(ticks_sql(since_ms)), since_ms) if unchanged else set()
        if set_back:
            rows = [*rows, *query(tick_sql({tick_ms for _, tick_ms in set_back}))]
        return [row for row in rows if (row["cluster"], row["tick_ms"]) in new | set_back]

    def passed_on(self, ticks: Collection[Tick]) -> None:
        """Record that these ticks were passed on."""
        self._newest.update(ticks)

    def _is_newer(self, cluster: str, tick_ms: int) -> bool:
        _, known = self._known.get(cluster, (0, ()))
        return tick_ms > self._newest.get(cluster, -1) and tick_ms not in known

    def _ticks_set_back(self, clusters: Collection[str], rows: Sequence[_Row], since_ms: int) -> set[Tick]:
        """Return the newest ticks of clusters whose clocks were set back.

        Args:
            clusters: clusters without a tick of a later time.
            rows: all ticks later than ``since_ms``.
            since_ms: start of the polled range, epoch milliseconds.
        """
        ticks: dict[str, set[int]] = defaultdict(set)
        for row in rows:
            ticks[row["cluster"]].add(row["tick_ms"])
        set_back = set()
        for cluster in clusters:
            # A tick before the range of the last poll is not new: it was not in that range.
            polled_ms, known = self._known.get(cluster, (None, set()))
            self._known[cluster] = (since_ms, ticks[cluster])
            added = {tick_ms for tick_ms in ticks[cluster] - known if polled_ms is not None and tick_ms > polled_ms}
            if added and self._is_set_back(cluster, max(added)):
                set_back.add((cluster, max(added)))
        return set_back

    def _is_set_back(self, cluster: str, tick_ms: int) -> bool:
        """Return whether a new tick with an earlier time is the newest one, by a clock that was set back."""
        if tick_ms > self._newest[cluster]:
            self._set_back[cluster].on_newer()
            return True
        return self._set_back[cluster].on_older(tick_ms) is not None


class FollowedTable:
    """A table, read by the Delta library on a local disk and by Spark at a URL.

    Args:
        spark: session, for a store at a URL.
        store: tables.
        table: definition of the table.

    Attributes:
        location: folder or URL.
        path: folder; None if it is at a URL.
    """

    def __init__(self, spark: SparkSession, store: Store, table: Table) -> None:
        self._spark = spark
        self._store = store
        self._definition = table
        self.location = store.location(table)
        self.path = local_path(self.location)
        self._table: DeltaTable | None = None
        self._version = -1
        self._newest = NewestTicks()
        self._is_unreadable = False

    def query(self, sql: str) -> Sequence[Mapping[str, Any]]:
        """Return the rows of a query over the table, which is named ``data`` in it."""
        if self.path is None:
            self._store.read(self._definition).createOrReplaceTempView(_VIEW)
            return [row.asDict(recursive=True) for row in self._spark.sql(sql).collect()]
        return delta_query.rows({_VIEW: self._table or self.path}, sql)

    def newer(self, now_ms: int, of_row: Callable[[_Row], T], consequence: str) -> dict[Tick, list[T]]:
        """Return each cluster's newest tick that was not passed on; none if the table cannot be read.

        The log says so once, until it can be read again.

        Args:
            now_ms: time now, epoch milliseconds.
            of_row: makes an object of a row.
            consequence: of a table that cannot be read, for the log.
        """
        ticks: dict[Tick, list[T]] = defaultdict(list)
        try:
            with without_panic(self.location):
                for row in self._newer_rows(now_ms):
                    ticks[row["cluster"], row["tick_ms"]].append(of_row(row))
        # The library raises its own errors, OSError and bare Exceptions for problems of the storage.
        except Exception as error:
            # The table is opened again at the next read.
            self._table, self._version = None, -1
            if not self._is_unreadable:
                self._is_unreadable = True
                warn_unreadable(self.location, consequence, error)
            return {}
        self._is_unreadable = False
        return ticks

    def _newer_rows(self, now_ms: int) -> Sequence[_Row]:
        """Return the rows of these ticks, if the table has changed."""
        if not self._has_changed():
            return []
        last_ms = self._newest.last_ms or self.query(_LAST_SQL)[0]["tick_ms"]
        if last_ms is None:
            return []
        # After a clock was set back, new ticks have times from now on.
        return self._newest.poll(self.query, min(last_ms, now_ms) - CLUSTER_SPREAD_MS)

    def passed_on(self, ticks: Collection[Tick]) -> None:
        """Record that these ticks were passed on."""
        self._newest.passed_on(ticks)

    def _has_changed(self) -> bool:
        """Return whether the table may have new rows."""
        if self.path is None:
            return self._store.exists(self._definition)
        if self._table is None:
            try:
                self._table = DeltaTable(self.path)
            except TableNotFoundError:
                return False
        else:
            self._table.update_incremental()
        before, self._version = self._version, self._table.version()
        return self._version != before

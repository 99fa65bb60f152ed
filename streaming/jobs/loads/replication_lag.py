"""Writer of ``gold/replication_lag``: how far each broker is behind each other one, from complete ticks in silver.

The newest complete tick is read some times a minute, and not every one: what is shown is how a lag grows and goes over
an hour. The Delta library reads and sums it in a tenth of the time that a Spark job takes, and beside the jobs.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from typing import Any

from headroom.schemas.tables import FETCHER_LAG, LEADER_DISTRIBUTION, MESSAGES, REPLICATION_LAG
from headroom.streaming.delta.query import sql_text
from headroom.streaming.delta.query_table import query
from headroom.streaming.delta.tick_table import day_of

# Pause between two ticks that are written, seconds.
EVERY_S = 15.0
# Ticks that are older than the newest one by more are not written any more.
_PAST_MS = 600_000
_DAY_MS = 86_400_000

# The tick's end is its last message, and messages are numbered from 0.
_COMPLETE_SQL = """SELECT "cluster", max(tick_ms) AS tick_ms FROM (
        SELECT "cluster", tick_ms FROM data WHERE date >= DATE '{day}' AND tick_ms > {since_ms}
        GROUP BY "cluster", tick_ms
        HAVING count(DISTINCT seq) = 1 + max(CASE WHEN kind = 'tick_end' THEN seq END))
    GROUP BY "cluster" """
_NEWEST_SQL = """SELECT "cluster", max(tick_ms) AS tick_ms FROM data WHERE date >= DATE '{day}' GROUP BY "cluster" """
# A message that was delivered twice has its rows twice.
_LAGS_SQL = """SELECT broker, source_broker, count(*) AS replicas,
        sum(CASE WHEN lag_offsets > 0 THEN 1 ELSE 0 END) AS behind,
        sum(CASE WHEN lag_offsets IS NULL THEN 1 ELSE 0 END) AS unknown,
        coalesce(sum(lag_offsets), 0) AS lag_offsets, max(lag_offsets) AS greatest_lag_offsets
    FROM (SELECT DISTINCT broker, source_broker, topic, "partition", lag_offsets FROM data WHERE {condition})
    WHERE broker IS NOT NULL AND source_broker IS NOT NULL GROUP BY broker, source_broker"""
_FOLLOWERS_SQL = """SELECT broker, leader AS source_broker, count(*) AS followers
    FROM (SELECT DISTINCT topic, "partition", leader, unnest(replicas) AS broker FROM data WHERE {condition})
    WHERE leader >= 0 AND broker <> leader GROUP BY broker, leader"""

_NO_GAUGE = {"replicas": 0, "behind": 0, "unknown": 0, "lag_offsets": 0, "greatest_lag_offsets": None}


@dataclass(frozen=True)
class ReplicationLagRow:
    """One row; the columns are those of ``schemas.tables.gold_lag.REPLICATION_LAG``."""

    cluster: str
    tick_ms: int
    date: date
    broker: int
    source_broker: int
    replicas: int
    behind: int
    unknown: int
    missing: int | None
    lag_offsets: int
    greatest_lag_offsets: int | None


class ReplicationLagWriter:
    """Writes the newest complete tick of each cluster, each tick once; for one thread.

    Args:
        store_path: ``store.path``: a folder or URL.
        append: appends rows to the table, which it creates if it is missing.
        clock_ms: returns the time now, epoch milliseconds.
    """

    def __init__(
        self, store_path: str, append: Callable[[Sequence[ReplicationLagRow]], None], clock_ms: Callable[[], int]
    ) -> None:
        self._store_path = store_path
        self._append = append
        self._clock_ms = clock_ms
        self._written: dict[str, int] = {}

    def write_newest(self) -> None:
        """Write the newest complete tick of each cluster, unless the table has it.

        Raises:
            HeadroomError: a table cannot be read or written.
            OSError: the disk did not take the rows.
        """
        for cluster, tick_ms in sorted(complete_ticks(self._store_path, self._since_ms()).items()):
            if tick_ms <= self._written.get(cluster, -1):
                continue
            rows = replication_lags(self._store_path, cluster, tick_ms)
            if rows:
                self._append(rows)
            self._written[cluster] = tick_ms

    def _since_ms(self) -> int:
        """Return the time after which a complete tick is looked for."""
        if not self._written:
            self._written = self._newest(REPLICATION_LAG.path)
        # By the clock of the collectors, which may be another one. Those of a cluster that has ended stay behind.
        newest_ms = max((self._written or self._newest(MESSAGES.path)).values(), default=0)
        return max(newest_ms - _PAST_MS, min(self._written.values(), default=0))

    def _newest(self, table: str) -> dict[str, int]:
        # Clocks may differ, and a day may just have begun.
        sql = _NEWEST_SQL.format(day=day_of(self._clock_ms() - _DAY_MS))
        return _by_cluster(query(self._store_path, table, sql))


def complete_ticks(store_path: str, since_ms: int) -> dict[str, int]:
    """Return the newest tick of each cluster that silver has as a whole, of those after a time.

    Args:
        store_path: ``store.path``: a folder or URL.
        since_ms: the time, epoch milliseconds.

    Raises:
        HeadroomError: the table cannot be read.
    """
    sql = _COMPLETE_SQL.format(day=day_of(since_ms), since_ms=since_ms)
    return _by_cluster(query(store_path, MESSAGES.path, sql))


def _by_cluster(rows: Sequence[Mapping[str, Any]] | None) -> dict[str, int]:
    return {str(row["cluster"]): int(row["tick_ms"]) for row in rows or ()}


def replication_lags(store_path: str, cluster: str, tick_ms: int) -> list[ReplicationLagRow]:
    """Return the lag of each pair of brokers at a tick, by broker.

    Args:
        store_path: ``store.path``: a folder or URL.
        cluster: name of the cluster.
        tick_ms: the tick, epoch milliseconds.

    Raises:
        HeadroomError: a table cannot be read.
    """
    day = day_of(tick_ms)
    condition = f"""date = DATE '{day}' AND "cluster" = {sql_text(cluster)} AND tick_ms = {tick_ms}"""
    lags = query(store_path, FETCHER_LAG.path, _LAGS_SQL.format(condition=condition)) or []
    named = query(store_path, LEADER_DISTRIBUTION.path, _FOLLOWERS_SQL.format(condition=condition)) or []
    followers = {(row["broker"], row["source_broker"]): int(row["followers"]) for row in named}
    by_pair = {(row["broker"], row["source_broker"]): row for row in lags}
    rows = []
    for broker, source_broker in sorted(by_pair.keys() | followers.keys()):
        gauges = by_pair.get((broker, source_broker), _NO_GAUGE)
        missing = max(0, followers.get((broker, source_broker), 0) - gauges["replicas"]) if followers else None
        of_pair = {**gauges, "broker": broker, "source_broker": source_broker, "missing": missing}
        rows.append(ReplicationLagRow(cluster=cluster, tick_ms=tick_ms, date=day, **of_pair))
    return rows

"""Follower of the tables of leader imbalance and election plans, for the alert rules.

The process that evaluates alerts polls both tables, because another process may write them.
"""

from __future__ import annotations

import logging
from collections import defaultdict
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any

from deltalake import DeltaTable
from deltalake.exceptions import TableNotFoundError
from pyspark.sql import SparkSession

from alerts.inputs.leader_balance import LeaderBalance, leader_balance_of, plan_summary
from planning.elections.summary import ElectionPlanSummary
from schemas.keys import Tick
from schemas.tables import ELECTION_PLAN, LEADER_IMBALANCE, Table
from streaming.clock import now_ms
from streaming.delta import query as delta_query
from streaming.delta.append import without_panic
from streaming.delta.locations import local_path
from streaming.store.store import Store
from streaming.supervision.failure import cause_of
from streaming.supervision.periodic_task import PeriodicTask

log = logging.getLogger(__name__)

OnBalances = Callable[[str, int, Sequence[LeaderBalance]], None]
OnPlan = Callable[[str, ElectionPlanSummary], None]

# Polling a local folder takes less than 1 ms. Through Spark it is a small job.
_EVERY_S, _EVERY_BY_SPARK_S = 1.0, 5.0
_VIEW = "data"
# Ticks of clusters may differ in time by this much, because of their clocks or a backlog, and are still all found.
_CLUSTER_SPREAD_MS = 15 * 60 * 1000
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


class NewestTicks:
    """Finds each cluster's newest tick in a growing table, also after the cluster's clock was set back.

    After that, new ticks have times among those of old ones, and can only be recognized because they were not in the
    table before. As for the rules, two such ticks in a row mean that the clock was set back. A single one may be late,
    or come from a second collector.
    """

    def __init__(self) -> None:
        # All by cluster, in epoch milliseconds. The newest tick that was passed on:
        self._newest: dict[str, int] = {}
        # A tick that came later but has an earlier time:
        self._older: dict[str, int] = {}
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
            self._older.pop(cluster, None)
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
        older_ms = self._older.pop(cluster, None)
        if tick_ms > self._newest[cluster] or (older_ms is not None and tick_ms > older_ms):
            return True
        self._older[cluster] = tick_ms
        return False


class LeaderBalanceFollower:
    """Passes on the leader balances of each newer tick, on a thread of its own.

    Args:
        spark: session, for a store at a URL.
        store: tables.
        on_balances: gets cluster, time of the tick and the balance of each broker.
        on_plan: gets cluster and its last election plan, before balances with a broker out of balance.
        clock_ms: returns the time now, epoch milliseconds.
    """

    def __init__(
        self,
        spark: SparkSession,
        store: Store,
        on_balances: OnBalances,
        on_plan: OnPlan,
        clock_ms: Callable[[], int] = now_ms,
    ) -> None:
        self._spark = spark
        self._store = store
        self._on_balances = on_balances
        self._on_plan = on_plan
        self._clock_ms = clock_ms
        self._path = local_path(store.location(LEADER_IMBALANCE))
        self._table: DeltaTable | None = None
        self._version = -1
        self._newest, self._newest_plans = NewestTicks(), NewestTicks()
        self._is_unreadable = self._are_plans_unreadable = False
        every_s = _EVERY_BY_SPARK_S if self._path is None else _EVERY_S
        self._task = PeriodicTask("balances", self.poll, every_s, first_s=0.0)

    def start(self) -> None:
        """Start the thread; the newest existing ticks are passed on at once."""
        self._task.start()

    def stop(self) -> None:
        """Stop following."""
        self._task.stop()

    def poll(self) -> None:
        """Read the tables, and pass on ticks and plans that are newer than at the last read."""
        try:
            with without_panic(self._store.location(LEADER_IMBALANCE)):
                newer = _by_tick(self._rows())
                plans = self._plans(newer)
        except Exception as error:
            self._failed(error)
            return
        self._is_unreadable = False
        for cluster, plan in plans.items():
            self._on_plan(cluster, plan)
        for (cluster, tick_ms), balances in newer.items():
            self._newest.passed_on([(cluster, tick_ms)])
            self._on_balances(cluster, tick_ms, balances)

    def _rows(self) -> Sequence[Mapping[str, Any]]:
        """Return the rows of each cluster's newest tick that was not passed on, if the table has changed."""
        if not self._changed():
            return []
        last_ms = self._newest.last_ms or self._query(LEADER_IMBALANCE, _LAST_SQL)[0]["tick_ms"]
        if last_ms is None:
            return []
        # After a clock was set back, new ticks have times from now on.
        since_ms = min(last_ms, self._clock_ms()) - _CLUSTER_SPREAD_MS
        return self._newest.poll(lambda sql: self._query(LEADER_IMBALANCE, sql), since_ms)

    def _plans(self, ticks: Mapping[Tick, Sequence[LeaderBalance]]) -> dict[str, ElectionPlanSummary]:
        """Return the last plan of each cluster if it is new and a broker is out of balance in one of these ticks."""
        out_of_balance_ms = [
            state.tick_ms for balances in ticks.values() for state in balances if state.is_out_of_balance
        ]
        if not out_of_balance_ms:
            return {}
        try:
            since_ms = min(out_of_balance_ms) - _CLUSTER_SPREAD_MS
            rows = self._newest_plans.poll(lambda sql: self._query(ELECTION_PLAN, sql), since_ms)
        except Exception as error:
            if not self._are_plans_unreadable:
                self._are_plans_unreadable = True
                _warn(self._store.location(ELECTION_PLAN), "alerts name no batches of elections", error)
            return {}
        self._are_plans_unreadable = False
        plans = {row["cluster"]: plan_summary(row) for row in rows}
        self._newest_plans.passed_on([(cluster, plan.tick_ms) for cluster, plan in plans.items()])
        return plans

    def _query(self, table: Table, sql: str) -> Sequence[Mapping[str, Any]]:
        if self._path is None:
            self._store.read(table).createOrReplaceTempView(_VIEW)
            return [row.asDict() for row in self._spark.sql(sql).collect()]
        followed = self._table if table is LEADER_IMBALANCE else None
        return delta_query.rows({_VIEW: followed or str(local_path(self._store.location(table)))}, sql)

    def _changed(self) -> bool:
        """Return whether the table may have new rows."""
        if self._path is None:
            return self._store.exists(LEADER_IMBALANCE)
        if self._table is None:
            try:
                self._table = DeltaTable(self._path)
            except TableNotFoundError:
                return False
        else:
            self._table.update_incremental()
        before, self._version = self._version, self._table.version()
        return self._version != before

    def _failed(self, error: Exception) -> None:
        self._table, self._version = None, -1
        if not self._is_unreadable:
            self._is_unreadable = True
            _warn(self._store.location(LEADER_IMBALANCE), "leader imbalance is unknown", error)


def _warn(location: str, consequence: str, error: Exception) -> None:
    log.warning("%s cannot be read, so %s: %s", location, consequence, cause_of(error))


def _by_tick(rows: Sequence[Mapping[str, Any]]) -> dict[Tick, list[LeaderBalance]]:
    ticks: dict[Tick, list[LeaderBalance]] = defaultdict(list)
    for row in rows:
        ticks[(row["cluster"], row["tick_ms"])].append(leader_balance_of(row))
    return ticks

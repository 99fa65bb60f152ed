"""The newest rows of leader imbalance, with the elections against it, for the rules.

They are read from their tables by the process that judges.
"""

from __future__ import annotations

import logging
import threading
import time
from collections import defaultdict
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any

from deltalake import DeltaTable
from deltalake.exceptions import TableNotFoundError
from pyspark.sql import SparkSession

from alerts.inputs.leader_balance import LeaderBalance, leader_balance_of, plan_summary
from planning.elections.summary import ElectionPlanSummary
from schemas.tables import ELECTION_PLAN, LEADER_IMBALANCE, Table
from streaming.delta import query as plain_sql
from streaming.delta.append import without_panic
from streaming.delta.locations import local_path
from streaming.delta.store import Store
from streaming.supervision.failure import cause_of
from streaming.transforms.tick_status import Tick

log = logging.getLogger(__name__)

Take = Callable[[str, int, Sequence[LeaderBalance]], None]
TakePlan = Callable[[str, ElectionPlanSummary], None]

# A look at a folder costs less than a millisecond; through Spark it is a small batch.
_EVERY_S, _EVERY_BY_SPARK_S = 1.0, 5.0
_VIEW = "data"
# So far clusters may be apart in time, by their clocks or a backlog, for all of them to be found.
_REACH_MS = 15 * 60 * 1000
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
    """Finds each cluster's newest tick in a table that grows, also after the clock of its ticks was set back.

    Then times of new ticks are among those of old ones, so that only what was not there before tells them. Like the
    rules it takes two such ticks in a row for a clock that was set back: one may be late, or of a second collector.
    """

    def __init__(self) -> None:
        # By cluster: the newest tick that was handed over; an older one that came after it; and, once a look found
        # nothing newer, all ticks that are there, with the time that they are later than.
        self._seen: dict[str, int] = {}
        self._older: dict[str, int] = {}
        self._there: dict[str, tuple[int, set[int]]] = {}

    @property
    def last_ms(self) -> int | None:
        """Return the latest tick that was handed over; None: none was."""
        return max(self._seen.values(), default=None)

    def look(self, query: Callable[[str], Sequence[_Row]], since_ms: int) -> list[_Row]:
        """Return the rows of each cluster's newest tick that was not handed over yet.

        Args:
            query: gives the rows of a query of the table.
            since_ms: the tick is later than this.
        """
        rows = query(newest_sql(since_ms))
        newest = {(row["cluster"], row["tick_ms"]) for row in rows}
        new = {(cluster, tick_ms) for cluster, tick_ms in newest if self._is_newer(cluster, tick_ms)}
        for cluster, _ in new:
            self._there.pop(cluster, None)
            self._older.pop(cluster, None)
        of_before = {cluster for cluster, _ in newest - new}
        among = self._among_old(of_before, query(ticks_sql(since_ms)), since_ms) if of_before else set()
        if among:
            rows = [*rows, *query(tick_sql({tick_ms for _, tick_ms in among}))]
        return [row for row in rows if (row["cluster"], row["tick_ms"]) in new | among]

    def took(self, ticks: Collection[Tick]) -> None:
        """Take up that these were handed over."""
        self._seen.update(ticks)

    def _is_newer(self, cluster: str, tick_ms: int) -> bool:
        _, there = self._there.get(cluster, (0, ()))
        return tick_ms > self._seen.get(cluster, -1) and tick_ms not in there

    def _among_old(self, clusters: Collection[str], rows: Sequence[_Row], since_ms: int) -> set[Tick]:
        ticks: dict[str, set[int]] = defaultdict(set)
        for row in rows:
            ticks[row["cluster"]].add(row["tick_ms"])
        found = set()
        for cluster in clusters:
            # What lies before the ticks that were looked at is not new because it is looked at.
            looked_ms, there = self._there.get(cluster, (None, set()))
            self._there[cluster] = (since_ms, ticks[cluster])
            come = {tick_ms for tick_ms in ticks[cluster] - there if looked_ms is not None and tick_ms > looked_ms}
            if come and self._is_taken(cluster, max(come)):
                found.add((cluster, max(come)))
        return found

    def _is_taken(self, cluster: str, tick_ms: int) -> bool:
        """Return whether a tick that came among older ones is the newest, by the clock as it is now."""
        older_ms = self._older.pop(cluster, None)
        if tick_ms > self._seen[cluster] or (older_ms is not None and tick_ms > older_ms):
            return True
        self._older[cluster] = tick_ms
        return False


class LeaderBalanceFollower:
    """Hands over how leaders are shared out whenever a newer tick tells, on a thread of its own.

    Args:
        spark: session, for a store that is no folder of this machine.
        store: tables.
        take: is given cluster, tick and the balance of each broker.
        take_plan: is given cluster and its last plan of elections, before balances of which one is out of balance.
        clock_ms: gives the time now, epoch milliseconds.
    """

    def __init__(
        self,
        spark: SparkSession,
        store: Store,
        take: Take,
        update_election_plan: TakePlan,
        clock_ms: Callable[[], int] = lambda: time.time_ns() // 1_000_000,
    ) -> None:
        self._spark = spark
        self._store = store
        self._take = take
        self._take_plan = update_election_plan
        self._clock_ms = clock_ms
        self._path = local_path(store.location(LEADER_IMBALANCE))
        self._table: DeltaTable | None = None
        self._version = -1
        self._newest, self._newest_plans = NewestTicks(), NewestTicks()
        self._lost = self._lost_plans = False
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name="balances", daemon=True)

    def start(self) -> None:
        """Start; what is there already is handed over at once."""
        self._thread.start()

    def stop(self) -> None:
        """Look no more."""
        self._stop.set()

    def look(self) -> None:
        """Hand over what is newer than at the last look."""
        try:
            with without_panic(self._store.location(LEADER_IMBALANCE)):
                newer = _by_tick(self._rows())
                plans = self._plans(newer)
        except Exception as error:
            self._failed(error)
            return
        self._lost = False
        for cluster, plan in plans.items():
            self._take_plan(cluster, plan)
        for (cluster, tick_ms), balances in newer.items():
            self._newest.took([(cluster, tick_ms)])
            self._take(cluster, tick_ms, balances)

    def _run(self) -> None:
        self.look()
        while not self._stop.wait(_EVERY_S if self._path is not None else _EVERY_BY_SPARK_S):
            self.look()

    def _rows(self) -> Sequence[Mapping[str, Any]]:
        """Return the rows of each cluster's newest tick that was not handed over, if the table has changed."""
        if not self._changed():
            return []
        last_ms = self._newest.last_ms or self._query(LEADER_IMBALANCE, _LAST_SQL)[0]["tick_ms"]
        if last_ms is None:
            return []
        # After the clock was set back ticks go on from now.
        since_ms = min(last_ms, self._clock_ms()) - _REACH_MS
        return self._newest.look(lambda sql: self._query(LEADER_IMBALANCE, sql), since_ms)

    def _plans(self, ticks: Mapping[Tick, Sequence[LeaderBalance]]) -> dict[str, ElectionPlanSummary]:
        """Return each cluster's last plan, if that is new, where a broker is out of balance in one of these ticks."""
        out = [state.tick_ms for balances in ticks.values() for state in balances if state.is_out_of_balance]
        if not out:
            return {}
        try:
            rows = self._newest_plans.look(lambda sql: self._query(ELECTION_PLAN, sql), min(out) - _REACH_MS)
        except Exception as error:
            if not self._lost_plans:
                self._lost_plans = True
                _warn(self._store.location(ELECTION_PLAN), "alerts name no batches of elections", error)
            return {}
        self._lost_plans = False
        plans = {row["cluster"]: plan_summary(row) for row in rows}
        self._newest_plans.took([(cluster, plan.tick_ms) for cluster, plan in plans.items()])
        return plans

    def _query(self, table: Table, sql: str) -> Sequence[Mapping[str, Any]]:
        if self._path is None:
            self._store.read(table).createOrReplaceTempView(_VIEW)
            return [row.asDict() for row in self._spark.sql(sql).collect()]
        followed = self._table if table is LEADER_IMBALANCE else None
        return plain_sql.rows({_VIEW: followed or str(local_path(self._store.location(table)))}, sql)

    def _changed(self) -> bool:
        """Return whether there may be rows that were not looked at."""
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
        if not self._lost:
            self._lost = True
            _warn(self._store.location(LEADER_IMBALANCE), "nothing is known of leader imbalance", error)


def _warn(location: str, so: str, error: Exception) -> None:
    log.warning("%s cannot be read, so %s: %s", location, so, cause_of(error))


def _by_tick(rows: Sequence[Mapping[str, Any]]) -> dict[Tick, list[LeaderBalance]]:
    ticks: dict[Tick, list[LeaderBalance]] = defaultdict(list)
    for row in rows:
        ticks[(row["cluster"], row["tick_ms"])].append(leader_balance_of(row))
    return ticks

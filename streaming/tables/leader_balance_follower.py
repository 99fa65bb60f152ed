"""The newest rows of leader imbalance, with the elections against it, for the rules.

They are read from their tables by the process that judges.
"""

from __future__ import annotations

import logging
import threading
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from deltalake import DeltaTable
from deltalake.exceptions import TableNotFoundError
from pyspark.sql import SparkSession

from alerts.inputs.leader_balance import BalanceState, balance_state, election_outline
from planning.elections.summary import ElectionOutline
from schemas.tables import ELECTION_PLAN, LEADER_IMBALANCE, Table
from streaming.delta import query as plain_sql
from streaming.delta.append import without_panic
from streaming.delta.locations import local_path
from streaming.delta.store import Store
from streaming.supervision.failure import cause_of
from streaming.transforms.tick_status import Tick

log = logging.getLogger(__name__)

Take = Callable[[str, int, Sequence[BalanceState]], None]
TakePlan = Callable[[str, ElectionOutline], None]

# A look at a folder costs less than a millisecond; through Spark it is a small batch.
_EVERY_S, _EVERY_BY_SPARK_S = 1.0, 5.0
_VIEW = "data"
# So far clusters may be apart in time, by their clocks or a backlog, for all of them to be found.
_REACH_MS = 15 * 60 * 1000
_LAST_SQL = f"SELECT max(tick_ms) AS tick_ms FROM {_VIEW}"


def newest_sql(since_ms: int) -> str:
    """Return the query of each cluster's newest tick later than ``since_ms``, for Spark and without it."""
    return f"""SELECT d.* FROM {_VIEW} d
        JOIN (SELECT cluster, max(tick_ms) AS tick_ms FROM {_VIEW} WHERE tick_ms > {since_ms} GROUP BY cluster) n
        ON d.cluster = n.cluster AND d.tick_ms = n.tick_ms WHERE d.tick_ms > {since_ms}"""


class BalanceFollower:
    """Hands over how leaders are shared out whenever a newer tick tells, on a thread of its own.

    Args:
        spark: session, for a store that is no folder of this machine.
        store: tables.
        take: is given cluster, tick and the balance of each broker.
        take_plan: is given cluster and its last plan of elections, before balances of which one is out of balance.
    """

    def __init__(self, spark: SparkSession, store: Store, take: Take, take_plan: TakePlan) -> None:
        self._spark = spark
        self._store = store
        self._take = take
        self._take_plan = take_plan
        self._path = local_path(store.location(LEADER_IMBALANCE))
        self._table: DeltaTable | None = None
        self._version = -1
        # Newest tick that was handed over, by cluster.
        self._seen: dict[str, int] = {}
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
                ticks = _by_tick(self._rows())
                newer = {tick: balances for tick, balances in ticks.items() if tick[1] > self._seen.get(tick[0], -1)}
                plans = self._plans(newer)
        except Exception as error:
            self._failed(error)
            return
        self._lost = False
        for cluster, plan in plans.items():
            self._take_plan(cluster, plan)
        for (cluster, tick_ms), balances in newer.items():
            self._seen[cluster] = tick_ms
            self._take(cluster, tick_ms, balances)

    def _run(self) -> None:
        self.look()
        while not self._stop.wait(_EVERY_S if self._path is not None else _EVERY_BY_SPARK_S):
            self.look()

    def _rows(self) -> Sequence[Mapping[str, Any]]:
        """Return the rows of each cluster's newest tick, if the table has changed."""
        if not self._changed():
            return []
        last_ms = max(self._seen.values(), default=None) or self._query(LEADER_IMBALANCE, _LAST_SQL)[0]["tick_ms"]
        return [] if last_ms is None else self._query(LEADER_IMBALANCE, newest_sql(last_ms - _REACH_MS))

    def _plans(self, ticks: Mapping[Tick, Sequence[BalanceState]]) -> dict[str, ElectionOutline]:
        """Return the last plan of each cluster that has one, if a broker is out of balance in one of these ticks."""
        out = [state.tick_ms for balances in ticks.values() for state in balances if state.is_out_of_balance]
        if not out:
            return {}
        try:
            rows = self._query(ELECTION_PLAN, newest_sql(min(out) - _REACH_MS))
        except Exception as error:
            if not self._lost_plans:
                self._lost_plans = True
                _warn(self._store.location(ELECTION_PLAN), "alerts name no batches of elections", error)
            return {}
        self._lost_plans = False
        return {row["cluster"]: election_outline(row) for row in rows}

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


def _by_tick(rows: Sequence[Mapping[str, Any]]) -> dict[Tick, list[BalanceState]]:
    ticks: dict[Tick, list[BalanceState]] = defaultdict(list)
    for row in rows:
        ticks[(row["cluster"], row["tick_ms"])].append(balance_state(row))
    return ticks

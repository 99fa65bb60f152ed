"""Follower of the tables of leader imbalance and election plans, for the alert rules.

The process that evaluates alerts polls both tables, because another process may write them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from pyspark.sql import SparkSession

from headroom.alerts.inputs.leader_balance import LeaderBalance, leader_balance_of, plan_summary
from headroom.planning.elections.summary import ElectionPlanSummary
from headroom.schemas.keys import Tick
from headroom.schemas.tables import ELECTION_PLAN, LEADER_IMBALANCE
from headroom.streaming.clock import now_ms
from headroom.streaming.store.followed_table import CLUSTER_SPREAD_MS, FollowedTable, NewestTicks, warn_unreadable
from headroom.streaming.store.store import Store
from headroom.streaming.supervision.periodic_task import PeriodicTask

OnBalances = Callable[[str, int, Sequence[LeaderBalance]], None]
OnPlan = Callable[[str, ElectionPlanSummary], None]

# Polling a local folder takes less than 1 ms. Through Spark it is a small job.
EVERY_S, EVERY_BY_SPARK_S = 1.0, 5.0


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
        self._on_balances = on_balances
        self._on_plan = on_plan
        self._clock_ms = clock_ms
        self._balances = FollowedTable(spark, store, LEADER_IMBALANCE)
        self._plans = FollowedTable(spark, store, ELECTION_PLAN)
        self._newest_plans = NewestTicks()
        self._are_plans_unreadable = False
        every_s = EVERY_BY_SPARK_S if self._balances.path is None else EVERY_S
        self._task = PeriodicTask("balances", self.poll, every_s, first_s=0.0)

    def start(self) -> None:
        """Start the thread; the newest existing ticks are passed on at once."""
        self._task.start()

    def stop(self) -> None:
        """Stop following."""
        self._task.stop()

    def poll(self) -> None:
        """Read the tables, and pass on ticks and plans that are newer than at the last read."""
        newer = self._balances.newer(self._clock_ms(), leader_balance_of, "leader imbalance is unknown")
        plans = self._plans_of(newer)
        for cluster, plan in plans.items():
            self._on_plan(cluster, plan)
        for (cluster, tick_ms), balances in newer.items():
            self._balances.passed_on([(cluster, tick_ms)])
            self._on_balances(cluster, tick_ms, balances)

    def _plans_of(self, ticks: Mapping[Tick, Sequence[LeaderBalance]]) -> dict[str, ElectionPlanSummary]:
        """Return the last plan of each cluster if it is new and a broker is out of balance in one of these ticks."""
        out_of_balance_ms = [
            state.tick_ms for balances in ticks.values() for state in balances if state.is_out_of_balance
        ]
        if not out_of_balance_ms:
            return {}
        try:
            since_ms = min(out_of_balance_ms) - CLUSTER_SPREAD_MS
            rows = self._newest_plans.poll(self._plans.query, since_ms)
        except Exception as error:
            if not self._are_plans_unreadable:
                self._are_plans_unreadable = True
                warn_unreadable(self._plans.location, "alerts name no batches of elections", error)
            return {}
        self._are_plans_unreadable = False
        plans = {row["cluster"]: plan_summary(row) for row in rows}
        self._newest_plans.passed_on([(cluster, plan.tick_ms) for cluster, plan in plans.items()])
        return plans

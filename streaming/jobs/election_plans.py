"""Which ticks get a plan of elections, and their plans."""

from __future__ import annotations

import logging
from collections import defaultdict
from collections.abc import Mapping, Sequence

from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, Row, SparkSession

from alerts.inputs.leader_balance import leader_balance_of
from planning.elections.planner import BatchLimits
from schemas.tables import ELECTION_PLAN, LEADER_IMBALANCE
from streaming.delta.low_latency_table import record_rows
from streaming.queries.caching import Hold
from streaming.transforms.gold import as_table
from streaming.transforms.leaders.election_plan import election_plans
from streaming.transforms.leaders.imbalance import ImbalanceInputs
from streaming.transforms.tick_status import Tick, in_ticks

log = logging.getLogger(__name__)

# A plan is made anew as leaders change, and else so often, for what is written to them changes too.
_EVERY_MS = 60_000


class ElectionPlanScheduler:
    """Plans elections for clusters that are out of balance.

    Args:
        spark: session.
        limits: of one batch.
    """

    def __init__(self, spark: SparkSession, limits: BatchLimits) -> None:
        self._spark = spark
        self._limits = limits
        # Cluster to the tick of its last plan, and what every broker lacked then.
        self._planned: dict[str, tuple[int, Mapping[int, int]]] = {}
        self._failed = False

    def plans(
        self, ticks: Sequence[Tick], seen: ImbalanceInputs, moves: DataFrame, balances: Sequence[Row], hold: Hold
    ) -> DataFrame | None:
        """Return the rows of ``gold/election_plan``; None: none could be made.

        Args:
            ticks: those that get a plan.
            seen: of these and other whole ticks.
            moves: their rows of the kind ``moves``.
            balances: their rows of ``gold/leader_imbalance``.
            hold: keeps a frame.
        """
        due = in_ticks(ticks)
        chosen = ImbalanceInputs(*(frame.where(due) for frame in (seen.leaders, seen.logs, seen.meters, seen.brokers)))
        of_due = [row for row in balances if (row["cluster"], row["tick_ms"]) in ticks]
        rows = record_rows(self._spark, of_due, LEADER_IMBALANCE)
        made = election_plans(chosen, moves.where(due), rows, self._limits)
        plans = hold(as_table(made, ELECTION_PLAN))
        try:
            plans.count()
        except (PySparkException, Py4JJavaError) as error:
            # An executor may have no Python, or another one. Who is out of balance is told nevertheless.
            if not self._failed:
                log.warning("no elections are planned: %s", str(error).strip().splitlines()[-1])
            self._failed = True
            return None
        self._failed = False
        return plans

    def due(self, balances: Sequence[Row]) -> list[Tick]:
        """Return the newest tick of each cluster that is out of balance, if the last plan does not do for it.

        Args:
            balances: rows of ``gold/leader_imbalance`` of some whole ticks.
        """
        lacking: dict[Tick, dict[int, int]] = defaultdict(dict)
        out_of_balance = set()
        for row in balances:
            tick, state = (row["cluster"], row["tick_ms"]), leader_balance_of(row.asDict())
            lacking[tick][state.broker] = state.balance.electable_now
            if state.is_out_of_balance:
                out_of_balance.add(tick)
        newest = dict(sorted(lacking)).items()
        due = [tick for tick in newest if tick in out_of_balance and not self._does(tick, lacking[tick])]
        self._planned |= {cluster: (tick_ms, lacking[cluster, tick_ms]) for cluster, tick_ms in due}
        return due

    def _does(self, tick: Tick, lacking: Mapping[int, int]) -> bool:
        planned_ms, before = self._planned.get(tick[0], (0, {}))
        return before == lacking and tick[1] - planned_ms < _EVERY_MS

"""Schedule of election plans: selects the ticks that get a plan, and computes it."""

from __future__ import annotations

import logging
from collections import defaultdict
from collections.abc import Mapping, Sequence

from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, Row, SparkSession

from headroom.alerts.inputs.leader_balance import leader_balance_of
from headroom.planning.elections.planner import BatchLimits
from headroom.schemas.keys import Tick
from headroom.schemas.tables import ELECTION_PLAN, LEADER_IMBALANCE
from headroom.streaming.queries.caching import Cache
from headroom.streaming.store.low_latency_table import record_rows
from headroom.streaming.transforms.gold import as_table
from headroom.streaming.transforms.leaders.election_plan import election_plans
from headroom.streaming.transforms.leaders.imbalance import ImbalanceInputs
from headroom.streaming.transforms.tick_status import in_ticks

log = logging.getLogger(__name__)

# A new plan is made when leaders change, and otherwise once a minute, because write rates change too.
_EVERY_MS = 60_000


class ElectionPlanScheduler:
    """Plans elections for clusters that are out of balance.

    Args:
        spark: session.
        limits: limits of one batch of elections.
    """

    def __init__(self, spark: SparkSession, limits: BatchLimits) -> None:
        self._spark = spark
        self._limits = limits
        # Cluster to the time of its last plan, and each broker's electable partitions then.
        self._planned: dict[str, tuple[int, Mapping[int, int]]] = {}
        self._failed = False

    def plans(
        self, ticks: Sequence[Tick], inputs: ImbalanceInputs, moves: DataFrame, balances: Sequence[Row], cache: Cache
    ) -> DataFrame | None:
        """Return the rows of ``gold/election_plan``; None if no plan could be computed.

        Args:
            ticks: ticks that get a plan.
            inputs: rows of these and other complete ticks.
            moves: rows of the kind ``moves`` of the same ticks.
            balances: rows of ``gold/leader_imbalance`` of the same ticks.
            cache: caches a frame.
        """
        due = in_ticks(ticks)
        chosen = ImbalanceInputs(
            *(frame.where(due) for frame in (inputs.leaders, inputs.logs, inputs.meters, inputs.brokers))
        )
        of_due = [row for row in balances if (row["cluster"], row["tick_ms"]) in ticks]
        rows = record_rows(self._spark, of_due, LEADER_IMBALANCE)
        plans = cache(as_table(election_plans(chosen, moves.where(due), rows, self._limits), ELECTION_PLAN))
        try:
            plans.count()
        except (PySparkException, Py4JJavaError) as error:
            # An executor may have no Python, or another version. The balance is written nevertheless.
            if not self._failed:
                log.warning("no elections are planned: %s", str(error).strip().splitlines()[-1])
            self._failed = True
            return None
        self._failed = False
        return plans

    def due(self, balances: Sequence[Row]) -> list[Tick]:
        """Return the newest tick of each cluster that is out of balance, unless its last plan is still valid.

        Args:
            balances: rows of ``gold/leader_imbalance`` of some complete ticks.
        """
        electable: dict[Tick, dict[int, int]] = defaultdict(dict)
        out_of_balance = set()
        for row in balances:
            tick, state = (row["cluster"], row["tick_ms"]), leader_balance_of(row.asDict())
            electable[tick][state.broker] = state.balance.electable_now
            if state.is_out_of_balance:
                out_of_balance.add(tick)
        newest = dict(sorted(electable)).items()
        due = [tick for tick in newest if tick in out_of_balance and not self._has_plan(tick, electable[tick])]
        self._planned |= {cluster: (tick_ms, electable[cluster, tick_ms]) for cluster, tick_ms in due}
        return due

    def _has_plan(self, tick: Tick, electable: Mapping[int, int]) -> bool:
        """Return whether the cluster's last plan is recent and was made from the same electable partitions."""
        planned_ms, before = self._planned.get(tick[0], (0, {}))
        return before == electable and tick[1] - planned_ms < _EVERY_MS

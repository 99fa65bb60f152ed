"""Leader balances and an election plan for tests of rules."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from headroom.alerts.inputs.leader_balance import LeaderBalance
from headroom.planning.elections.planner import Balance, RequiredThrottleIncrease
from headroom.planning.elections.summary import BalanceForecast, ElectionPlanSummary
from headroom.schemas.keys import Role
from tests.unit.builders.throttle_status import MB, TICK_MS

# Four batches; three partitions are left out because of a move and five because of a throttle.
PLAN_SUMMARY = ElectionPlanSummary(
    tick_ms=TICK_MS,
    batches=4,
    elections=700,
    write_bytes_per_s=90 * MB,
    first_batch=(("t", 7), ("u", 0)),
    first_batch_write_bytes_per_s=3 * MB,
    outlooks=(BalanceForecast(1, 0.25, 0.004), BalanceForecast(2, 0.1, 0.0)),
    left_out=(("moving", 3), ("over_throttle", 5)),
    raise_first=(RequiredThrottleIncrease((2, Role.LEADER), 9 * MB, 12 * MB),),
)


def balance(
    broker: int, preferred: int, electable: int = 0, waiting: int = 0, unavailable: int = 0, **more: Any
) -> LeaderBalance:
    """Return a broker with a write rate of 8 MB/s, 10 MB/s with all its preferred partitions; it leads the rest."""
    writes = {name: more.pop(name) for name in ("write_bytes_per_s", "preferred_write_bytes_per_s") if name in more}
    away = electable + waiting + unavailable
    of_leaders = Balance(broker, preferred, away, electable, waiting, 8 * MB, 10 * MB)
    fields: dict[str, Any] = {
        "tick_ms": TICK_MS,
        "balance": replace(of_leaders, **writes),
        "threshold_ratio": 0.1,
        "threshold_source": "setting",
        "unavailable": unavailable,
        "leader_partitions": preferred - away,
    }
    return LeaderBalance(**fields | more)

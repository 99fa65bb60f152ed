"""What jobs have found out about a cluster beside its ticks, for the rules of the next ticks."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Generic, TypeVar

from headroom.alerts.inputs.broker_load import BalanceAdvice, MinuteLoads
from headroom.alerts.inputs.leader_balance import LeaderBalance
from headroom.planning.balance.broker_loads.capacity_risk import CapacityRisk
from headroom.planning.elections.summary import ElectionPlanSummary
from headroom.planning.migration.progress.progress import MigrationProgress
from headroom.planning.reassignments.run.owners import ThrottleOwner

T = TypeVar("T")


@dataclass(frozen=True)
class Dated(Generic[T]):
    """A value, and the time that it is of.

    Attributes:
        value: the value.
        tick_ms: its time, milliseconds of the clock that it is compared by.
    """

    value: T
    tick_ms: int


# All of them have the time that they are of.
_Dated = TypeVar(
    "_Dated",
    MinuteLoads,
    ElectionPlanSummary,
    Dated[Sequence[LeaderBalance]],
    Dated[Sequence[CapacityRisk]],
    Dated[Sequence[MigrationProgress]],
)


def fresh(dated: _Dated | None, now_ms: int, stale_after_s: float) -> _Dated | None:
    """Return what is known; None if it is stale, or further in the future, as after its clock was set back.

    Args:
        dated: what is known; None if it is nothing.
        now_ms: current time of its clock, milliseconds.
        stale_after_s: the age from which it is stale, in seconds.
    """
    return None if dated is None or abs(now_ms - dated.tick_ms) > stale_after_s * 1000 else dated


def _shift(dated: _Dated | None, by_ms: int, later_than_ms: int) -> _Dated | None:
    if dated is None or dated.tick_ms <= later_than_ms:
        return dated
    return replace(dated, tick_ms=dated.tick_ms + by_ms)


@dataclass
class ClusterInputs:
    """What other jobs have found out about a cluster. Each attribute is set as a whole, by one job.

    Attributes:
        balances: leader balance of every broker that is the preferred leader of a partition, by tick.
        loads: loads of all brokers in the last minute.
        elections: last plan of preferred elections.
        risks: brokers that the loss of a broker or rack takes over their limit, by this machine's monotonic clock.
        advice: last proposal that balances the cluster; None if there is none.
        owners: commands that set the throttles that are left behind, by subject in the journal of changes.
        migrations: progress of every migrating partition in the last tick; None without a migration.
        store_trouble: location of the store that cannot be written, and the reason; None if all can.
    """

    balances: Dated[Sequence[LeaderBalance]] | None = None
    loads: MinuteLoads | None = None
    elections: ElectionPlanSummary | None = None
    risks: Dated[Sequence[CapacityRisk]] | None = None
    advice: BalanceAdvice | None = None
    owners: Mapping[str, ThrottleOwner] = field(default_factory=dict)
    migrations: Dated[Sequence[MigrationProgress]] | None = None
    store_trouble: str | None = None

    def shift_clock(self, by_ms: int, later_than_ms: int = -1) -> None:
        """Shift what has the time of a tick, because the clock of the ticks was set.

        Args:
            by_ms: milliseconds to shift by; negative: back.
            later_than_ms: only times after this tick are shifted, epoch milliseconds.
        """
        self.balances = _shift(self.balances, by_ms, later_than_ms)
        self.loads = _shift(self.loads, by_ms, later_than_ms)
        self.elections = _shift(self.elections, by_ms, later_than_ms)
        self.migrations = _shift(self.migrations, by_ms, later_than_ms)

"""One broker's share of the leaders in one tick, and the elections against it, as the rules look at them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from planning.elections.planner import Balance, RequiredThrottleIncrease, out_of_balance
from planning.elections.summary import BalanceForecast, ElectionPlanSummary
from schemas.alerts import Role


@dataclass(frozen=True)
class LeaderBalance:
    """One row of ``gold/leader_imbalance``, whose columns tell more.

    Attributes:
        tick_ms: tick that it is of, epoch milliseconds.
        balance: what the broker leads, and is preferred to lead.
        threshold_ratio: what a share has to exceed to be told.
        threshold_source: broker or setting: where that stands.
        unavailable: partitions that another leads because this broker is down, or out of sync.
        leaderless: partitions that prefer it and that nobody leads.
        leader_partitions: partitions that it leads, whomever they prefer.
        alive: whether the broker is registered with the cluster.
        read_bytes_per_s: what consumers read of it; None: unknown.
        preferred_read_bytes_per_s: what would be if every preferred leader led; None: unknown.
        auto_leader_rebalance: whether brokers balance leaders by themselves; None: not told.
        check_interval_s: how often they look; None: not told.
    """

    tick_ms: int
    balance: Balance
    threshold_ratio: float
    threshold_source: str
    unavailable: int = 0
    leaderless: int = 0
    leader_partitions: int = 0
    alive: bool = True
    read_bytes_per_s: float | None = None
    preferred_read_bytes_per_s: float | None = None
    auto_leader_rebalance: bool | None = None
    check_interval_s: int | None = None

    @property
    def broker(self) -> int:
        """Return the broker's id."""
        return self.balance.broker

    @property
    def electable_ratio(self) -> float:
        """Return the share of the partitions that prefer it which an election would give back, 0 to 1."""
        return self.balance.electable_now / self.balance.preferred_partitions

    @property
    def is_out_of_balance(self) -> bool:
        """Return whether an election would give back more than the threshold allows to be missing."""
        return out_of_balance(self.balance, self.threshold_ratio)

    @property
    def lacking_ratio(self) -> float:
        """Return the share that it lacks for another reason than a move, 0 to 1."""
        return (self.balance.electable_now + self.unavailable) / self.balance.preferred_partitions


_OF_BALANCE = tuple(Balance.__dataclass_fields__)
_AS_THEY_ARE = tuple(name for name in LeaderBalance.__dataclass_fields__ if name != "balance")


def leader_balance_of(row: Mapping[str, Any]) -> LeaderBalance:
    """Return the balance of one row of ``gold/leader_imbalance``, given as a mapping of its columns."""
    balance = Balance(**{name: row[name] for name in _OF_BALANCE})
    return LeaderBalance(balance=balance, **{name: row[name] for name in _AS_THEY_ARE})


def plan_summary(row: Mapping[str, Any]) -> ElectionPlanSummary:
    """Return the plan of one row of ``gold/election_plan``, given as a mapping of its columns."""
    return ElectionPlanSummary(
        tick_ms=row["tick_ms"],
        batches=row["batches"],
        elections=row["elections"],
        write_bytes_per_s=row["write_bytes_per_s"],
        first_batch=tuple((p["topic"], p["partition"]) for p in row["first_batch"]),
        first_batch_write_bytes_per_s=row["first_batch_write_bytes_per_s"],
        outlooks=tuple(BalanceForecast(*(o[name] for name in BalanceForecast._fields)) for o in row["outlooks"]),
        left_out=tuple((left["reason"], left["partitions"]) for left in row["left_out"]),
        raise_first=tuple(
            RequiredThrottleIncrease(
                (r["broker"], Role(r["role"])), r["throttle_bytes_per_s"], r["required_bytes_per_s"]
            )
            for r in row["raise_first"]
        ),
    )

"""Inputs of rules from ``gold/leader_imbalance`` and ``gold/election_plan``."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from headroom.planning.elections.planner import Balance, out_of_balance
from headroom.planning.elections.summary import BalanceForecast, ElectionPlanSummary
from headroom.schemas.keys import BrokerRole, TopicPartition
from headroom.schemas.records import record, records


@dataclass(frozen=True)
class LeaderBalance:
    """Leader balance of one broker: one row of ``gold/leader_imbalance``, whose table describes the columns.

    Attributes:
        tick_ms: tick of the balance, epoch milliseconds.
        balance: partitions that the broker leads, and should lead as their preferred leader.
        threshold_ratio: share above which an imbalance is reported, 0 to 1.
        threshold_source: broker or setting: origin of the threshold.
        unavailable: partitions that another broker leads because this one is down or out of sync.
        leaderless: partitions without a leader whose preferred leader this broker is.
        leader_partitions: partitions that it leads, preferred or not.
        alive: whether the broker is registered with the cluster.
        read_bytes_per_s: consumer read rate from the broker; None if unknown.
        preferred_read_bytes_per_s: read rate if every preferred leader led; None if unknown.
        auto_leader_rebalance: whether auto.leader.rebalance.enable is set; None if unknown.
        check_interval_s: interval of Kafka's imbalance checks, seconds; None if unknown.
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
        """Return the share of the broker's preferred partitions that an election would give back, 0 to 1."""
        return self.balance.electable_now / self.balance.preferred_partitions

    @property
    def is_out_of_balance(self) -> bool:
        """Return whether the share that an election would give back exceeds the threshold."""
        return out_of_balance(self.balance, self.threshold_ratio)

    @property
    def missing_leadership_ratio(self) -> float:
        """Return the share of its preferred partitions that other brokers lead, without moving ones, 0 to 1."""
        return (self.balance.electable_now + self.unavailable) / self.balance.preferred_partitions


def leader_balance_of(row: Mapping[str, Any]) -> LeaderBalance:
    """Return the leader balance of one row of ``gold/leader_imbalance``, given as a mapping of its columns.

    Raises:
        ValueError: a value is missing or of another type.
    """
    return record(LeaderBalance, {**row, "balance": record(Balance, row)})


def plan_summary(row: Mapping[str, Any]) -> ElectionPlanSummary:
    """Return the plan summary of one row of ``gold/election_plan``, given as a mapping of its columns.

    Raises:
        ValueError: a value is missing or of another type.
    """
    parts = {
        "first_batch": tuple(TopicPartition(one["topic"], one["partition"]) for one in row["first_batch"]),
        "outlooks": records(BalanceForecast, row["outlooks"]),
        "left_out": tuple((left["reason"], left["partitions"]) for left in row["left_out"]),
        "raise_first": [
            {**raised, "broker_role": BrokerRole(raised["broker"], raised["role"])} for raised in row["raise_first"]
        ],
    }
    return record(ElectionPlanSummary, {**row, **parts})

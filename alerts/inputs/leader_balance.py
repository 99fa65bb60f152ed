"""Inputs of rules from ``gold/leader_imbalance`` and ``gold/election_plan``."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from headroom.planning.elections.planner import Balance, RequiredThrottleIncrease, out_of_balance
from headroom.planning.elections.summary import BalanceForecast, ElectionPlanSummary
from headroom.schemas.keys import BrokerRole, Role, TopicPartition


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
    """Return the leader balance of one row of ``gold/leader_imbalance``, given as a mapping of its columns."""
    return LeaderBalance(
        tick_ms=row["tick_ms"],
        balance=Balance(
            broker=row["broker"],
            preferred_partitions=row["preferred_partitions"],
            non_preferred_partitions=row["non_preferred_partitions"],
            electable_now=row["electable_now"],
            waiting_for_move=row["waiting_for_move"],
            write_bytes_per_s=row["write_bytes_per_s"],
            preferred_write_bytes_per_s=row["preferred_write_bytes_per_s"],
        ),
        threshold_ratio=row["threshold_ratio"],
        threshold_source=row["threshold_source"],
        unavailable=row["unavailable"],
        leaderless=row["leaderless"],
        leader_partitions=row["leader_partitions"],
        alive=row["alive"],
        read_bytes_per_s=row["read_bytes_per_s"],
        preferred_read_bytes_per_s=row["preferred_read_bytes_per_s"],
        auto_leader_rebalance=row["auto_leader_rebalance"],
        check_interval_s=row["check_interval_s"],
    )


def plan_summary(row: Mapping[str, Any]) -> ElectionPlanSummary:
    """Return the plan summary of one row of ``gold/election_plan``, given as a mapping of its columns."""
    return ElectionPlanSummary(
        tick_ms=row["tick_ms"],
        batches=row["batches"],
        elections=row["elections"],
        write_bytes_per_s=row["write_bytes_per_s"],
        first_batch=tuple(TopicPartition(p["topic"], p["partition"]) for p in row["first_batch"]),
        first_batch_write_bytes_per_s=row["first_batch_write_bytes_per_s"],
        outlooks=tuple(
            BalanceForecast(
                broker=outlook["broker"],
                first_batch_ratio=outlook["first_batch_ratio"],
                last_batch_ratio=outlook["last_batch_ratio"],
            )
            for outlook in row["outlooks"]
        ),
        left_out=tuple((left["reason"], left["partitions"]) for left in row["left_out"]),
        raise_first=tuple(
            RequiredThrottleIncrease(
                broker_role=BrokerRole(raised["broker"], Role(raised["role"])),
                throttle_bytes_per_s=raised["throttle_bytes_per_s"],
                required_bytes_per_s=raised["required_bytes_per_s"],
            )
            for raised in row["raise_first"]
        ),
    )

"""What the rules on leader balances share: what a stale count means, and the evidence."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass

from headroom.alerts.evidence.evidence import Evidence
from headroom.alerts.inputs.leader_balance import LeaderBalance
from headroom.alerts.rules.rule import Assessment, Rule, RuleInputs


@dataclass(frozen=True, kw_only=True)
class LeaderBalanceEvidence(Evidence):
    """Evidence on the leader balance of a broker: columns of ``gold/leader_imbalance``, whose table describes them.

    Attributes:
        counted_tick_ms: tick of the count, which may be older than that of the event; epoch milliseconds.
    """

    alive: bool
    preferred_partitions: int
    non_preferred_partitions: int
    electable_now: int
    waiting_for_move: int
    unavailable: int
    leaderless: int
    leader_partitions: int
    imbalance_ratio: float
    electable_ratio: float
    threshold_ratio: float
    threshold_source: str
    write_bytes_per_s: float | None
    preferred_write_bytes_per_s: float | None
    read_bytes_per_s: float | None
    preferred_read_bytes_per_s: float | None
    auto_leader_rebalance: bool | None
    check_interval_s: int | None
    counted_tick_ms: int

    @staticmethod
    def of(state: LeaderBalance) -> LeaderBalanceEvidence:
        """Return the evidence of a broker's leader balance."""
        balance = state.balance
        return LeaderBalanceEvidence(
            broker_id=state.broker,
            alive=state.alive,
            preferred_partitions=balance.preferred_partitions,
            non_preferred_partitions=balance.non_preferred_partitions,
            electable_now=balance.electable_now,
            waiting_for_move=balance.waiting_for_move,
            unavailable=state.unavailable,
            leaderless=state.leaderless,
            leader_partitions=state.leader_partitions,
            imbalance_ratio=balance.imbalance_ratio,
            electable_ratio=state.electable_ratio,
            threshold_ratio=state.threshold_ratio,
            threshold_source=state.threshold_source,
            write_bytes_per_s=balance.write_bytes_per_s,
            preferred_write_bytes_per_s=balance.preferred_write_bytes_per_s,
            read_bytes_per_s=state.read_bytes_per_s,
            preferred_read_bytes_per_s=state.preferred_read_bytes_per_s,
            auto_leader_rebalance=state.auto_leader_rebalance,
            check_interval_s=state.check_interval_s,
            counted_tick_ms=state.tick_ms,
        )


class LeaderBalanceRule(Rule):
    """A rule on the leader balance of brokers, which is counted less often than ticks arrive."""

    def evaluate(self, tick: RuleInputs) -> Assessment:
        """Return the assessment of the last count; if it is stale, alerts keep firing."""
        if tick.balances is None:
            return Assessment(keep_firing=tick.active_of(self.kind))
        return self.evaluate_balances(tick.balances, tick)

    @abstractmethod
    def evaluate_balances(self, balances: Sequence[LeaderBalance], tick: RuleInputs) -> Assessment:
        """Return the findings on the brokers of a count, and the subjects whose alerts must not resolve.

        Args:
            balances: every broker that is the preferred leader of a partition.
            tick: the tick, which may be newer than the count.
        """

"""Rule ``leader_imbalance``: a broker leads too few of the partitions that prefer it, and an election helps."""

from __future__ import annotations

from collections.abc import Sequence

from headroom.alerts.finding import Finding
from headroom.alerts.inputs.leader_balance import LeaderBalance
from headroom.alerts.rules.leaders.leader_balance_rule import LeaderBalanceEvidence, LeaderBalanceRule
from headroom.alerts.rules.rule import Assessment, RuleInputs
from headroom.schemas.alerts import AlertKind, Severity
from headroom.schemas.text.amounts import percent_text, rate_text

# With auto.leader.rebalance.enable, Kafka gets this many of its own checks before the alert fires.
_CHECKS = 2


class LeaderImbalance(LeaderBalanceRule):
    """A broker could get back more of its preferred partitions by an election than the threshold allows.

    Moving partitions, and partitions without an electable preferred replica, do not count: an election cannot help.
    """

    kind = AlertKind.LEADER_IMBALANCE

    def evaluate_balances(self, balances: Sequence[LeaderBalance], tick: RuleInputs) -> Assessment:
        """Return a finding for each imbalanced broker.

        Its alert keeps firing within the exit margin, and while elections cannot help for now.
        """
        return Assessment(
            [self._finding(state, tick) for state in balances if state.is_out_of_balance],
            {
                (self.kind, f"broker {state.broker}")
                for state in balances
                if state.missing_leadership_ratio > state.threshold_ratio / tick.settings.exit_ratio
            },
        )

    def _finding(self, state: LeaderBalance, tick: RuleInputs) -> Finding:
        checks_s = _CHECKS * (state.check_interval_s or 0) if state.auto_leader_rebalance else 0
        return Finding(
            kind=self.kind,
            subject=f"broker {state.broker}",
            severity=Severity.WARNING if _write_rate_deviates(state) else Severity.INFO,
            summary=_summary(state),
            evidence=LeaderBalanceEvidence.of(state),
            recommendation=tick.recommender.elect_preferred(),
            hold_s=max(tick.settings.imbalance_s, checks_s),
            # One group, because one command elects for all brokers.
            cause="leader imbalance",
            weight=float(state.balance.electable_now),
        )


def _write_rate_deviates(state: LeaderBalance) -> bool:
    """Return whether the broker's write rate deviates by more than the threshold; false if unknown."""
    # Counts alone do no harm: brokers may lead each other's partitions at the same write rate.
    written, preferred = state.balance.write_bytes_per_s, state.balance.preferred_write_bytes_per_s
    if written is None or preferred is None:
        return False
    return abs(preferred - written) > state.threshold_ratio * preferred


def _summary(state: LeaderBalance) -> str:
    balance = state.balance
    written, preferred = balance.write_bytes_per_s, balance.preferred_write_bytes_per_s
    load = f"{rate_text(written)} are written to it, and {rate_text(preferred)} would be if all preferred leaders led"
    if written is None or preferred is None:
        load = "what is written to them is not known"
    share, threshold = percent_text(state.electable_ratio), percent_text(state.threshold_ratio)
    return (
        f"Broker {state.broker} does not lead {balance.electable_now} of the {balance.preferred_partitions} partitions "
        f"that prefer it, and could ({share}, threshold {threshold}); {load}"
    )

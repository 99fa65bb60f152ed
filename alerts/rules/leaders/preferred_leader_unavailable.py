"""Rule ``preferred_leader_unavailable``: others lead a broker's partitions because it is down or out of sync."""

from __future__ import annotations

from collections.abc import Sequence

from headroom.alerts.finding import Finding
from headroom.alerts.inputs.leader_balance import LeaderBalance
from headroom.alerts.rules.causes import BrokerPrecedence, broker_cause, broker_causes
from headroom.alerts.rules.leaders.leader_balance_rule import LeaderBalanceEvidence, LeaderBalanceRule
from headroom.alerts.rules.rule import Assessment, RuleInputs
from headroom.schemas.alerts import AlertKind, Severity
from headroom.schemas.keys import Role


class PreferredLeaderUnavailable(LeaderBalanceRule):
    """A broker cannot lead partitions that prefer it, because it is down or out of sync."""

    kind = AlertKind.PREFERRED_LEADER_UNAVAILABLE

    def evaluate_balances(self, balances: Sequence[LeaderBalance], tick: RuleInputs) -> Assessment:
        """Return a finding for each such broker."""
        # The tick is newer than the count, and shows whether it is over.
        back = {s.broker for s in tick.statuses if s.role is Role.FOLLOWER and s.alive and not s.lost_replicas}
        return Assessment(
            [self._finding(state, tick) for state in balances if state.unavailable and state.broker not in back]
        )

    def _finding(self, state: LeaderBalance, tick: RuleInputs) -> Finding:
        return Finding(
            kind=self.kind,
            subject=f"broker {state.broker}",
            severity=Severity.WARNING,
            summary=(
                f"Broker {state.broker} {'is out of sync' if state.alive else 'is down'}: it cannot lead "
                f"{state.unavailable} of the {state.balance.preferred_partitions} partitions that prefer it"
            ),
            evidence=LeaderBalanceEvidence.of(state),
            recommendation=tick.recommender.restore_or_inspect_broker(
                state.broker, "not_fetching" if state.alive else "broker_down"
            ),
            hold_s=tick.settings.imbalance_s,
            cause=broker_cause(state.broker, state.alive),
            continues=broker_causes(state.broker, state.alive),
            precedence=BrokerPrecedence.NOT_LEADING,
            affected=state.unavailable,
        )

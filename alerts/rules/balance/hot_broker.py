"""Rule ``hot_broker``: a load of a broker is above its band and above its limit."""

from __future__ import annotations

from collections.abc import Sequence

from headroom.alerts.finding import Finding
from headroom.alerts.inputs.broker_load import BrokerLoadState, MinuteLoads
from headroom.alerts.rules.balance.broker_load_rule import (
    UNEVEN,
    BrokerLoadRule,
    changed_by_move,
    evidence_of,
    sort_by_deviation,
)
from headroom.alerts.rules.rule import Assessment, RuleInputs
from headroom.alerts.text.loads import VERBS, load_text
from headroom.schemas.alerts import AlertKind, Severity
from headroom.schemas.text.amounts import percent_text


class HotBroker(BrokerLoadRule):
    """A broker uses more of its capacity than its limit allows, while others have room.

    Without a capacity there is no limit. If all brokers are above their limits, none is above its band: the cluster is
    then too small, and moving load helps nothing.
    """

    kind = AlertKind.HOT_BROKER

    def evaluate_loads(self, loads: MinuteLoads, tick: RuleInputs) -> Assessment:
        """Return a finding for each such broker that no move changes.

        Its alert keeps firing within the exit margin, and while its load is unknown.
        """
        moved = changed_by_move(tick)
        hot = {broker: [s for s in states if s.is_hot] for broker, states in loads.by_broker.items()}
        findings = [
            self._finding(broker, loads, sort_by_deviation(hot_states), tick)
            for broker, hot_states in hot.items()
            if hot_states and broker not in moved
        ]
        near = {
            (self.kind, f"broker {broker}")
            for broker, states in loads.by_broker.items()
            if broker in moved or any(s.is_near_limit(tick.settings.exit_ratio) for s in states)
        }
        return Assessment(findings, (near | self.unread(loads, tick)) & tick.active_of(self.kind))

    def _finding(self, broker: int, loads: MinuteLoads, states: Sequence[BrokerLoadState], tick: RuleInputs) -> Finding:
        return Finding(
            kind=self.kind,
            subject=f"broker {broker}",
            severity=Severity.WARNING,
            summary=_summary(broker, states),
            evidence=evidence_of(broker, loads, states),
            recommendation=tick.recommender.balance_load(loads.uneven, tick.loads.advice, loads.tick_ms),
            hold_s=tick.settings.hot_broker_s,
            cause=UNEVEN,
            weight=max((state.load or 0.0) / (state.load_limit or 1.0) for state in states),
            # An alert on another broker that is merely uneven does not cover a hot one.
            joins=False,
            continues=(UNEVEN,),
        )


def _summary(broker: int, states: Sequence[BrokerLoadState]) -> str:
    parts = []
    for state in states:
        load, limit, share = (
            load_text(state.resource, value or 0.0) for value in (state.load, state.load_limit, state.mean)
        )
        used = percent_text((state.load or 0.0) / state.capacity) if state.capacity else "an unknown part"
        above = f"{used} of its capacity and above its limit of {limit}"
        parts.append(f"{VERBS[state.resource]} {load}, {above} (its share: {share})")
    return f"Broker {broker} {'; it '.join(parts)}"

"""Rule ``load_out_of_band``: a broker carries much more or much less than its share of a load."""

from __future__ import annotations

from collections.abc import Sequence

from headroom.alerts.finding import Finding
from headroom.alerts.inputs.broker_load import LOADS, BrokerLoadState, MinuteLoads
from headroom.alerts.rules.balance.broker_load_rule import (
    OF_LEADERS,
    UNEVEN,
    BrokerLoadRule,
    changed_by_move,
    describe_bands,
    deviation,
    evidence_of,
    sort_by_deviation,
)
from headroom.alerts.rules.rule import Assessment, RuleInputs
from headroom.schemas.alerts import AlertKind, Severity

# A load above this share of the capacity leaves little room for a peak or a lost broker.
_HALF = 0.5


class LoadOutOfBand(BrokerLoadRule):
    """The load of a broker is out of its band: the mean of all brokers, or its share by capacity, ± 10 %.

    A running move explains the brokers that it changes. While a broker is down, others carry its load. While brokers do
    not lead their preferred partitions, ``leader_imbalance`` explains what leaders send and serve.
    """

    kind = AlertKind.LOAD_OUT_OF_BAND

    def evaluate_loads(self, loads: MinuteLoads, tick: RuleInputs) -> Assessment:
        """Return a finding for each such broker.

        Its alert keeps firing within the exit margin, while explained, and while its load is unknown.
        """
        active = tick.active_of(self.kind)
        if loads.is_broker_down:
            return Assessment(keep_firing=active)
        moved = changed_by_move(tick)
        # While leaders are not the preferred ones, the bands of what only leaders carry do not count.
        away = any(state.is_out_of_balance or state.unavailable for state in tick.balances or ())
        resources = [resource for resource in LOADS if not (away and resource in OF_LEADERS)]
        findings = []
        kept = {subject for subject in active if any(subject[1] == f"broker {broker}" for broker in moved)}
        for broker, states in loads.by_broker.items():
            own = [state for state in states if state.resource in resources]
            # A hot broker has an alert of its own, with which this one continues.
            if broker not in moved and not any(state.is_hot for state in states):
                out_of_band = sort_by_deviation([state for state in own if state.in_band is False])
                findings += [self._finding(broker, loads, out_of_band, tick)] if out_of_band else []
            if any(state.is_near_edge(tick.settings.exit_ratio) for state in own):
                kept.add((self.kind, f"broker {broker}"))
        return Assessment(findings, (kept | self.unread(loads, tick)) & active)

    def _finding(self, broker: int, loads: MinuteLoads, states: Sequence[BrokerLoadState], tick: RuleInputs) -> Finding:
        busy = any(s.is_above_band and s.capacity and (s.load or 0.0) > _HALF * s.capacity for s in states)
        return Finding(
            kind=self.kind,
            subject=f"broker {broker}",
            severity=Severity.WARNING if busy else Severity.INFO,
            summary=describe_bands(broker, states),
            evidence=evidence_of(broker, loads, states),
            recommendation=tick.recommender.balance_load(loads.uneven, tick.loads.advice, loads.tick_ms),
            hold_s=tick.settings.out_of_band_s,
            cause=UNEVEN,
            precedence=1,
            weight=abs(deviation(states[0])),
            continues=(UNEVEN,),
        )

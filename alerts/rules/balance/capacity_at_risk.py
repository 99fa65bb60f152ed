"""Rule ``capacity_at_risk``: the loss of one broker or rack would take another broker over its limit."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass

from headroom.alerts.evidence.evidence import Evidence
from headroom.alerts.finding import Finding
from headroom.alerts.rules.rule import Assessment, Rule, RuleInputs
from headroom.alerts.text.loads import load_text
from headroom.planning.balance.broker_loads.capacity_risk import CapacityRisk
from headroom.schemas.alerts import AlertKind, Severity

# A loss is the cause of nothing yet: one alert lists all that would be too much.
_CAUSE = "capacity at risk"
_TASKS = {"network_out": "send", "network_in": "receive", "disk": "store", "replicas": "have"}


@dataclass(frozen=True, kw_only=True)
class CapacityEvidence(Evidence):
    """Evidence on a loss that takes brokers over their limits.

    Attributes:
        lost: what would be lost.
        risks: brokers that would be over their limit, the one that exceeds it most first.
    """

    lost: str
    risks: Sequence[CapacityRisk]


class CapacityAtRisk(Rule):
    """After the loss of one broker or one rack, in-sync followers lead, and one of them sends more than its limit.

    The estimate comes from a model of all partitions, made every ``balance.propose_every_s``, and only where
    ``balance.network_out_capacity`` is set. A running move explains itself: it changes what a loss would do.
    """

    kind = AlertKind.CAPACITY_AT_RISK

    def evaluate(self, tick: RuleInputs) -> Assessment:
        """Return a finding for each loss; while the estimate is unknown or something moves, alerts keep firing."""
        risks = tick.loads.risks
        if risks is None or tick.has_moves:
            return Assessment(keep_firing=tick.active_of(self.kind))
        by_loss: dict[str, list[CapacityRisk]] = defaultdict(list)
        for risk in risks:
            by_loss[risk.lost].append(risk)
        return Assessment([self._finding(lost, risks_of_loss, tick) for lost, risks_of_loss in by_loss.items()])

    def _finding(self, lost: str, risks: Sequence[CapacityRisk], tick: RuleInputs) -> Finding:
        worst, *others = sorted(risks, key=lambda risk: (risk.limit - risk.load, risk.broker))
        return Finding(
            kind=self.kind,
            subject=f"loss of {lost}",
            severity=Severity.WARNING,
            summary=_summary(worst, len(others)),
            evidence=CapacityEvidence(broker_id=worst.broker, lost=lost, risks=(worst, *others)),
            recommendation=tick.recommender.keep_capacity(lost),
            hold_s=tick.settings.at_risk_s,
            cause=_CAUSE,
            weight=worst.load / worst.limit if worst.limit else 0.0,
        )


def _summary(worst: CapacityRisk, others: int) -> str:
    load, over, limit = (load_text(worst.resource, amount) for amount in (worst.load, worst.over, worst.limit))
    more = f", and {others} more broker(s) would be over theirs" if others else ""
    return (
        f"If {worst.lost} were lost, broker {worst.broker} would have to {_TASKS[worst.resource]} {load}: {over} above "
        f"its limit of {limit}{more}"
    )

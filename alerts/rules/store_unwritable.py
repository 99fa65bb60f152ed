"""Rule ``store_unwritable``: verdicts and alerts continue, but nothing is stored."""

from __future__ import annotations

from dataclasses import dataclass

from headroom.alerts.evidence.evidence import Evidence
from headroom.alerts.finding import Finding
from headroom.alerts.recommendations.recommendation import Action
from headroom.alerts.rules.rule import Assessment, Rule, RuleInputs
from headroom.schemas.alerts import AlertKind, Severity


@dataclass(frozen=True, kw_only=True)
class StoreTroubleEvidence(Evidence):
    """Evidence that the store cannot be written.

    Attributes:
        trouble: location that cannot be written, and the reason.
    """

    trouble: str


class StoreUnwritable(Rule):
    """The tables or their checkpoints cannot be written."""

    kind = AlertKind.STORE_UNWRITABLE

    def evaluate(self, tick: RuleInputs) -> Assessment:
        """Return a finding if the store cannot be written."""
        trouble = tick.store_trouble
        if trouble is None:
            return Assessment()
        return Assessment(
            [
                Finding(
                    kind=self.kind,
                    subject="store",
                    severity=Severity.CRITICAL,
                    summary=f"Alerts continue, but nothing is stored: {trouble}",
                    evidence=StoreTroubleEvidence(trouble=trouble),
                    recommendation=tick.recommender.no_throttle_change(
                        "make the place writable again: free space on its disk, its permissions, its mount; everything "
                        "then continues by itself",
                        Action.CHECK,
                    ),
                    hold_s=0.0,
                )
            ]
        )

    def evaluate_missing_ticks(self, inputs: RuleInputs) -> Assessment:
        """Return the same without ticks: the store is checked without them, so its alert may resolve."""
        return self.evaluate(inputs)

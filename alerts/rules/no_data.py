"""Rule ``no_data``: no verdict on one broker and role, or on a whole cluster because its ticks are missing."""

from __future__ import annotations

from headroom.alerts.evidence.throttle_evidence import ThrottleEvidence
from headroom.alerts.finding import Finding
from headroom.alerts.inputs.throttle_status import ThrottleStatus
from headroom.alerts.rules.causes import BrokerPrecedence, broker_cause, broker_causes
from headroom.alerts.rules.no_ticks import TICKS
from headroom.alerts.rules.rule import Assessment, Rule, RuleInputs
from headroom.schemas.alerts import AlertKind, Severity, Verdict


class NoData(Rule):
    """An input of a verdict is unknown; without ticks, all of them."""

    kind = AlertKind.NO_DATA

    def evaluate(self, tick: RuleInputs) -> Assessment:
        """Return a finding for each broker and role without a verdict.

        While incoming ticks are old ones from a backlog, the alert on missing ticks keeps firing.
        """
        unknown = [status for status in tick.statuses if status.verdict is Verdict.NO_DATA]
        return Assessment(
            [self._finding(status, tick) for status in unknown],
            {(self.kind, TICKS)} if tick.is_backlog else set(),
        )

    def evaluate_missing_ticks(self, inputs: RuleInputs) -> Assessment:
        """Return the finding that ticks are missing."""
        assert inputs.missing is not None, "called only if ticks are missing"
        return Assessment([inputs.missing.finding(inputs.recommender)], inputs.active_of(self.kind))

    def _finding(self, status: ThrottleStatus, tick: RuleInputs) -> Finding:
        settings = tick.settings
        return Finding(
            kind=self.kind,
            subject=status.subject,
            severity=Severity.WARNING,
            summary=f"No verdict on {status.subject}, which takes part in a move: {status.reason or 'unknown'}",
            evidence=ThrottleEvidence.of(status),
            recommendation=tick.recommender.find_unread(status.broker, status.alive),
            # A dead broker is a separate cause, and a restart takes longer than one failed read.
            hold_s=settings.no_data_s if status.alive else max(settings.no_data_s, settings.stalled_s),
            cause="no data" if status.alive else broker_cause(status.broker, alive=False),
            # A broker that has just started needs some time until it answers.
            continues=broker_causes(status.broker, status.alive),
            precedence=BrokerPrecedence.NO_METRICS,
        )

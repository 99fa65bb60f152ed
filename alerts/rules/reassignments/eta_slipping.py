"""Rule ``eta_slipping``: a reassignment is expected to finish much later than first expected."""

from __future__ import annotations

from dataclasses import dataclass

from headroom.alerts.evidence.evidence import Evidence
from headroom.alerts.finding import Finding
from headroom.alerts.rules.reassignments.eta_tracker import FirstEta
from headroom.alerts.rules.rule import Assessment, Rule, RuleInputs
from headroom.schemas.alerts import AlertKind, Severity
from headroom.schemas.text.amounts import clock_text, duration_text

# Near the end of a move, a fraction of the remaining time would be seconds.
_LEAST_SLIP_S = 60.0
_SUBJECT = "moves"


@dataclass(frozen=True, kw_only=True)
class LateFinishEvidence(Evidence):
    """Evidence that a move is expected to finish later than was expected first.

    Attributes:
        expected_since_ms: tick of the first expectation, epoch milliseconds.
        first_finish_ms: finish that was expected first, epoch milliseconds.
        finish_ms: finish that is expected now, epoch milliseconds.
        late_s: difference of the two, seconds.
    """

    expected_since_ms: int
    first_finish_ms: int
    finish_ms: int
    late_s: float


class EtaSlipping(Rule):
    """The move is expected to finish much later than was expected first."""

    kind = AlertKind.ETA_SLIPPING

    def evaluate(self, tick: RuleInputs) -> Assessment:
        """Return a finding if the expected finish is much later than the first expectation.

        Without an expected finish the alert keeps firing: another rule has a finding, or this is the first tick.
        """
        busy = [status for status in tick.statuses if status.load.limited_replicas + status.load.free_replicas]
        etas = [status.eta_s for status in busy if status.eta_s is not None]
        if not busy:
            tick.eta_tracker.end_move()
            return Assessment()
        if len(etas) < len(busy):
            return Assessment(keep_firing={(self.kind, _SUBJECT)})
        finish_ms = tick.tick_ms + max(etas) * 1000
        expected = tick.eta_tracker.first_eta(tick.tick_ms, finish_ms, busy)
        left_s = (expected.finish_ms - expected.made_ms) / 1000
        late_s = (finish_ms - expected.finish_ms) / 1000
        if late_s <= max(_LEAST_SLIP_S, tick.settings.slip_ratio * left_s):
            return Assessment()
        return Assessment([self._finding(expected, finish_ms, late_s, tick)])

    def _finding(self, expected: FirstEta, finish_ms: float, late_s: float, tick: RuleInputs) -> Finding:
        first, now = (clock_text(round(ms), tick.tick_ms) for ms in (expected.finish_ms, finish_ms))
        return Finding(
            kind=self.kind,
            subject=_SUBJECT,
            severity=Severity.INFO,
            summary=(
                f"The move is expected to finish at {now}, {duration_text(late_s)} later than was "
                f"expected first ({first})"
            ),
            evidence=LateFinishEvidence(
                expected_since_ms=expected.made_ms,
                first_finish_ms=round(expected.finish_ms),
                finish_ms=round(finish_ms),
                late_s=late_s,
            ),
            recommendation=tick.recommender.no_throttle_change(
                "compare what leaders write now with what they wrote at the start; a higher throttle shortens the rest"
            ),
            hold_s=tick.settings.hold_s,
        )

"""Rule ``leader_unthrottled``: a leader sends to new replicas without a limit although the move is throttled."""

from __future__ import annotations

from dataclasses import replace

from headroom.alerts.evidence.evidence import EvidenceCause
from headroom.alerts.evidence.throttle_evidence import ThrottleEvidence
from headroom.alerts.finding import Finding
from headroom.alerts.inputs.throttle_status import PartitionEvidence, ThrottleStatus
from headroom.alerts.recommendations.recommendation import Recommendation
from headroom.alerts.rules.rule import Assessment, Rule, RuleInputs
from headroom.planning.throttles.effect import rates_text
from headroom.schemas.alerts import AlertKind, Severity, Verdict
from headroom.schemas.keys import Role
from headroom.schemas.text.amounts import join_names


class LeaderUnthrottled(Rule):
    """A leader sends to new replicas without a limit although the move is throttled."""

    kind = AlertKind.LEADER_UNTHROTTLED

    def evaluate(self, tick: RuleInputs) -> Assessment:
        """Return a finding for each leader that sends without a limit while a throttle limits other copies.

        Either the leader throttled list does not contain the broker, as after a switch to a new replica, or the broker
        has no rate. While a throttle is too low or a verdict unknown, alerts keep firing.
        """
        leaders = [status for status in tick.statuses if status.role is Role.LEADER]
        findings = [
            self._finding(status, _unlimited_partitions(status), tick)
            for status in leaders
            if tick.has_limited_replicas and status.verdict is not Verdict.NO_DATA and _unlimited_partitions(status)
        ]
        keep_firing = leaders if tick.has_unknown_verdict or tick.too_low else []
        return Assessment(findings, {(self.kind, status.subject) for status in keep_firing})

    def _finding(self, status: ThrottleStatus, count: int, tick: RuleInputs) -> Finding:
        rateless = _has_no_rate(status) and status.limited_partitions > 0
        which = [p for p in status.partitions if p.moving and (not p.followers or rateless)]
        switched = [p for p in which if p.previous_leader is not None and p.leader == status.broker]
        return Finding(
            kind=self.kind,
            subject=status.subject,
            severity=Severity.INFO,
            summary=_summary(status, which, switched, count, rateless),
            evidence=replace(
                ThrottleEvidence.of(status),
                cause=EvidenceCause.NO_RATE if rateless else EvidenceCause.NOT_LISTED,
                switch_tick_ms=max((p.switch_tick_ms for p in switched if p.switch_tick_ms is not None), default=None),
            ),
            recommendation=(
                _set_rate(status.broker, tick)
                if rateless
                else tick.recommender.list_leader(status.broker, which, count)
            ),
            hold_s=tick.settings.hold_s,
            cause="unthrottled leader",
            weight=sum(p.write_bytes_per_s or 0.0 for p in which),
            affected=count,
        )


def _has_no_rate(status: ThrottleStatus) -> bool:
    return status.load.throttle_bytes_per_s is None


def _unlimited_partitions(status: ThrottleStatus) -> int:
    """Return how many moving partitions with unlimited out-of-sync replicas the broker leads."""
    return status.free_partitions + (status.limited_partitions if _has_no_rate(status) else 0)


def _summary(
    status: ThrottleStatus,
    which: list[PartitionEvidence],
    switched: list[PartitionEvidence],
    count: int,
    rateless: bool,
) -> str:
    why = "it has no rate" if rateless else f"the leader throttled list does not name it{_rates(status)}"
    since = f" since the leader switch of {join_names([p.name for p in switched])}" if switched else ""
    return (
        f"{status.subject.capitalize()} sends {join_names([p.name for p in which], count)} to new replicas without a "
        f"limit{since}: the move is throttled, but {why}"
    )


def _rates(status: ThrottleStatus) -> str:
    """Return the broker's rate, which does not count what is not listed, and what counts; empty without a rate."""
    rate = status.load.throttle_bytes_per_s
    if rate is None:
        return ""
    is_default = status.throttle_source == "default"
    return f" ({rates_text(rate, status.load.used_bytes_per_s, is_default)})"


def _set_rate(broker: int, tick: RuleInputs) -> Recommendation:
    """Return the recommendation that sets a rate for both roles of a broker."""
    loads = [status.load for status in tick.statuses]
    rates = [load.throttle_bytes_per_s for load in loads if load.throttle_bytes_per_s is not None]
    required = [load.required_bytes_per_s for load in loads if load.broker == broker]
    must = None if None in required else max(r for r in required if r is not None)
    return tick.recommender.set_rate(max(rates, default=None), broker, must)

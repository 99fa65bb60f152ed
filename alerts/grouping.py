"""Grouping of findings by root cause: one alert per cause lists the others."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace

from headroom.alerts.evidence.throttle_evidence import ThrottleEvidence
from headroom.alerts.finding import Finding, Subject
from headroom.schemas.alerts import AlertKind, Severity
from headroom.schemas.keys import BrokerRole
from headroom.schemas.text.amounts import join_names

# Cause of a throttle that is too low without a recent leader switch.
THROTTLE = "throttle"
# Kinds of a throttle that is too low.
THROTTLE_KINDS = frozenset({AlertKind.THROTTLE_BELOW_LEADER_WRITE, AlertKind.THROTTLE_BELOW_INBOUND})


@dataclass(frozen=True)
class Grouped:
    """The findings of a tick that get an alert.

    Attributes:
        findings: each with the findings that it represents.
        fire: findings that fire now, because one that they represent has lasted for its own pending time.
        superseded: findings whose alert fires for an earlier cause, while another alert has their current cause.
    """

    findings: list[Finding]
    fire: frozenset[Subject]
    superseded: frozenset[Subject]


@dataclass(frozen=True)
class AdvisedIncrease:
    """Throttle of one broker and role: the rate in force at the announcement, and the recommended rate."""

    from_bytes_per_s: float
    to_bytes_per_s: float


@dataclass(frozen=True)
class ActiveAlert:
    """A pending or firing alert as it was last announced.

    Attributes:
        is_firing: whether it has fired.
        cause: root cause in the last announcement; None if unknown.
        also: findings that the last announcement listed.
        severity: severity in the last announcement.
        raises: recommended increases, by broker and role.
    """

    is_firing: bool
    cause: str | None = None
    also: frozenset[Subject] = frozenset()
    severity: Severity = Severity.INFO
    raises: Mapping[BrokerRole, AdvisedIncrease] = field(default_factory=dict)

    def has_announced(self, other: Finding) -> bool:
        """Return whether the alert listed a finding of its cause, at the same or a higher severity."""
        return self._has_named(other) and other.severity.rank >= self.severity.rank

    def represents(self, other: Finding) -> bool:
        """Return whether the alert represents a finding of its cause, which then gets no alert of its own."""
        if (other.kind, other.subject) in self.also:
            return not self._is_lowered(other)
        # A finding with a new cause is news: an alert on one slow replica does not represent the broker's death.
        joins = other.joins and self.cause in (None, other.cause)
        return self.is_firing and (joins or self._advice_is_enough(other))

    def has_announced_rate(self, other: Finding) -> bool:
        """Return whether the alert listed another throttle that is too low, whatever its own cause is by now."""
        # One leader switch makes several throttles too low, and stays the cause of some for a tick longer.
        return self.is_firing and other.kind in THROTTLE_KINDS and self._has_named(other)

    def _has_named(self, other: Finding) -> bool:
        is_listed = (other.kind, other.subject) in self.also and not self._is_lowered(other)
        return (is_listed and self._has_cause_of(other)) or self._advice_is_enough(other)

    def _has_cause_of(self, other: Finding) -> bool:
        # A leader switch stops being the cause after the rate window, though the throttle is still as low as announced.
        return self.cause in (None, other.cause) or other.cause == THROTTLE

    def _advice_is_enough(self, other: Finding) -> bool:
        """Return whether the recommended increase is enough for another broker too."""
        advised, required = self._raise_of(other), _lasting_required_bytes_per_s(other)
        enough = advised is not None and required is not None and required <= advised.to_bytes_per_s
        return enough and self._has_cause_of(other) and not self._is_lowered(other)

    def _is_lowered(self, other: Finding) -> bool:
        """Return whether another broker's throttle was lowered after the announcement, which is news."""
        advised, in_force = self._raise_of(other), other.evidence.throttle_bytes_per_s
        return advised is not None and in_force is not None and in_force < advised.from_bytes_per_s

    def _raise_of(self, other: Finding) -> AdvisedIncrease | None:
        broker, role = other.evidence.broker_id, other.evidence.role
        if other.kind not in THROTTLE_KINDS or broker is None or role is None:
            return None
        return self.raises.get(BrokerRole(broker, role))


def _lasting_required_bytes_per_s(finding: Finding) -> float | None:
    """Return the rate that a throttle has to exceed, also once dead brokers are back; None if unknown."""
    evidence = finding.evidence
    if isinstance(evidence, ThrottleEvidence):
        return evidence.lasting_required_bytes_per_s
    return evidence.required_bytes_per_s


def group_findings(
    findings: Sequence[Finding],
    active: Mapping[Subject, ActiveAlert],
    due: Collection[Subject],
    keep_firing: Collection[Subject] = (),
) -> Grouped:
    """Return the findings that get an alert, each with the findings that it represents in ``also``.

    A finding whose alert is firing keeps that alert. If the cause is one broker, the alert continues with any other
    finding that this broker still causes. The remaining findings of a cause wait together under the pending alert.
    When one of them is due, the alert takes the first by precedence, then severity, then weight.

    Args:
        findings: findings of one cluster in one tick.
        active: pending and firing alerts.
        due: findings that have lasted for their pending time.
        keep_firing: subjects without a clear state: their alerts continue and represent what they listed.
    """
    active_kept = [alert for subject in keep_firing if (alert := active.get(subject)) is not None and alert.is_firing]
    findings = [f for f in findings if f.key in active or not any(alert.has_announced(f) for alert in active_kept)]
    findings = _join_active_groups(findings, active)
    grouped = [finding for finding in findings if not finding.cause]
    fire: set[Subject] = set()
    superseded: set[Subject] = set()
    ended = _ended_subjects(findings, active)
    for group in _by_cause(findings):
        firing = [f for f in group if (alert := active.get(f.key)) is not None and alert.is_firing]
        others = [f for f in group if f not in firing]
        represented = [f for f in others if any(active[one.key].represents(f) for one in firing)]
        waiting = sorted((f for f in others if f not in represented), key=_order)
        if firing:
            grouped += [_merge(firing[0], represented), *firing[1:]]
        elif (goes_on := ended.get(group[0].cause)) is not None:
            # The alert's own finding has ended, as a reassignment does, but the broker is still down or catching up.
            kept = [f for f in waiting if f.continues]
            waiting = [f for f in waiting if not f.continues]
            if kept:
                merged = _merge(kept[0], kept[1:])
                grouped.append(replace(merged, kind=goes_on[0], subject=goes_on[1], goes_on_with=merged.key))
        if waiting:
            is_due = any(f.key in due for f in waiting)
            pending = [f for f in waiting if f.key in active and not is_due]
            lead, *more = pending or waiting[:1]
            grouped += [_merge(lead, [f for f in waiting if f is not lead and f not in more]), *more]
            fire |= {lead.key} if is_due else set()
        stale = {f.key for f in firing if active[f.key].cause not in (None, f.cause)}
        if waiting or len(stale) < len(firing):
            superseded |= stale
    return Grouped(grouped, frozenset(fire), frozenset(superseded))


def _join_active_groups(findings: Sequence[Finding], active: Mapping[Subject, ActiveAlert]) -> list[Finding]:
    """Return the findings; those that an active alert of another cause continues with or has listed get that cause."""
    firing = {alert.cause for alert in active.values() if alert.is_firing and alert.cause}
    continued = [
        f if f.cause in firing else replace(f, cause=next((c for c in f.continues if c in firing), f.cause))
        for f in findings
    ]
    announcing = [(f, active[f.key]) for f in continued if f.kind in THROTTLE_KINDS and f.key in active]
    finding_keys = {f.key for f in findings}
    ended = [alert for key, alert in active.items() if key[0] in THROTTLE_KINDS and key not in finding_keys]

    def under_another(f: Finding) -> Finding:
        if f.key in active:
            return f
        cause = next((lead.cause for lead, alert in announcing if alert.has_announced_rate(f)), None)
        if cause is not None:
            return replace(f, cause=cause)
        # The alert's own throttle was raised, but not yet this one, which it listed.
        cause = next((alert.cause for alert in ended if alert.cause and alert.has_announced_rate(f)), None)
        return f if cause is None else replace(f, cause=cause, continues=(cause,))

    return [under_another(f) for f in continued]


def _ended_subjects(findings: Sequence[Finding], active: Mapping[Subject, ActiveAlert]) -> dict[str, Subject]:
    """Return by cause the firing alert whose own finding has ended."""
    finding_keys = {finding.key for finding in findings}
    over = {subject: alert for subject, alert in active.items() if alert.is_firing and subject not in finding_keys}
    return {alert.cause: subject for subject, alert in sorted(over.items(), reverse=True) if alert.cause}


def _by_cause(findings: Sequence[Finding]) -> list[list[Finding]]:
    groups: dict[str, list[Finding]] = defaultdict(list)
    for finding in findings:
        if finding.cause:
            groups[finding.cause].append(finding)
    return list(groups.values())


def _order(finding: Finding) -> tuple[int, int, float, str]:
    return finding.precedence, finding.severity.rank, -finding.weight, finding.subject


def _merge(lead: Finding, others: Sequence[Finding]) -> Finding:
    """Return the lead finding with the others listed, at the highest severity among them."""
    if not others:
        return lead
    ordered = sorted(others, key=_order)
    severity = min((one.severity for one in (lead, *others)), key=lambda severity: severity.rank)
    subjects = join_names([other.subject for other in ordered if other.subject != lead.subject])
    summary = f"{lead.summary}; of the same cause: {subjects}" if subjects else lead.summary
    return replace(lead, severity=severity, summary=summary, also=tuple(ordered))

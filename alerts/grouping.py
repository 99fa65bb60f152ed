"""One alert per cause: of findings that have the same one, one is told and names the others."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from alerts.rules.evidence import join_names
from schemas.alerts import AlertKind, Finding, Role, Severity

Subject = tuple[AlertKind, str]
BrokerRole = tuple[int | None, str | None]

# The cause of a rate that is too low without a leader switch of late.
THROTTLE = "throttle"
# What says of a role that its rate is too low.
THROTTLE_KIND = {Role.LEADER: AlertKind.THROTTLE_BELOW_LEADER_WRITE, Role.FOLLOWER: AlertKind.THROTTLE_BELOW_INBOUND}
THROTTLE_KINDS = frozenset(THROTTLE_KIND.values())


@dataclass(frozen=True)
class Grouped:
    """The findings of a tick that get an alert.

    Attributes:
        findings: each with those that it stands for.
        fire: those that fire now whatever their own time, for one that they stand for has lasted for its own.
        outdone: those whose alert fires for another cause than it has now, while another alert is about that one.
    """

    findings: list[Finding]
    fire: frozenset[Subject]
    outdone: frozenset[Subject]


@dataclass(frozen=True)
class AdvisedIncrease:
    """What an advice does to one rate: that in force when it was told, and that which it sets."""

    from_bytes_per_s: float
    to_bytes_per_s: float


@dataclass(frozen=True)
class ActiveAlert:
    """An alert that is pending or firing, or whose tick comes once more.

    Attributes:
        fires: whether it has fired.
        cause: what made it one with others when it was announced last; None: not known.
        also: the findings that it named then.
        severity: how grave it was then.
        raises: what its advice raises, by broker and role.
    """

    fires: bool
    cause: str | None = None
    also: frozenset[Subject] = frozenset()
    severity: Severity = Severity.INFO
    raises: Mapping[BrokerRole, AdvisedIncrease] = field(default_factory=dict)

    def has_told(self, other: Finding) -> bool:
        """Return whether it named another finding of its cause, and was as grave as that is."""
        return self._has_named(other) and other.severity.rank >= self.severity.rank

    def covers(self, other: Finding) -> bool:
        """Return whether it stands for another finding of its cause, which then gets no alert of its own."""
        if (other.kind, other.subject) in self.also:
            return not self._is_lowered(other)
        # What has another cause by now is news: an alert of one slow replica does not stand for the broker's death.
        joins = other.joins and self.cause in (None, other.cause)
        return self.fires and (joins or self._advice_is_enough(other))

    def has_told_rate(self, other: Finding) -> bool:
        """Return whether it is about another rate that is too low as well, whatever the cause of its own is by now.

        Of the rates that one switch makes too low, it is the cause of some a tick longer than of others.
        """
        return self.fires and other.kind in THROTTLE_KINDS and self._has_named(other)

    def _has_named(self, other: Finding) -> bool:
        join_names = (other.kind, other.subject) in self.also and not self._is_lowered(other)
        return (join_names and self._has_cause_of(other)) or self._advice_is_enough(other)

    def _has_cause_of(self, other: Finding) -> bool:
        # The leader switch that made a throttle too low is past in time; the throttle is as low as it was told to be.
        return self.cause in (None, other.cause) or other.cause == THROTTLE

    def _advice_is_enough(self, other: Finding) -> bool:
        """Return whether what it advised puts another broker's rate right too; a switch since is news in any case."""
        advised, required = self._raise_of(other), other.evidence.get("required_bytes_per_s")
        enough = advised is not None and required is not None and required <= advised.to_bytes_per_s
        return enough and self._has_cause_of(other) and not self._is_lowered(other)

    def _is_lowered(self, other: Finding) -> bool:
        """Return whether somebody lowered another broker's rate since it was told, which is news."""
        advised, in_force = self._raise_of(other), other.evidence.get("throttle_bytes_per_s")
        return advised is not None and in_force is not None and in_force < advised.from_bytes_per_s

    def _raise_of(self, other: Finding) -> AdvisedIncrease | None:
        if other.kind not in THROTTLE_KINDS:
            return None
        return self.raises.get((other.evidence.get("broker_id"), other.evidence.get("role")))


def group_findings(
    findings: Sequence[Finding],
    active: Mapping[Subject, ActiveAlert],
    due: Collection[Subject],
    held: Collection[Subject] = (),
) -> Grouped:
    """Return the findings that get an alert, each with those it stands for under ``also`` in its evidence.

    One whose alert fires already goes on, so that no alert ends while what it is about goes on. Where the cause is one
    broker's, it goes on with whatever else that broker still brings about. What no such alert stands for waits
    together, under the alert that is pending; as soon as one of it has lasted for its time, the alert is about the one
    that comes first: the lowest precedence, then the gravest, then the weightiest.

    Args:
        findings: of one cluster in one tick.
        active: alerts that are active.
        due: findings that have lasted for their time.
        held: what is neither wrong nor right: its alert goes on, and stands for what it named.
    """
    standing = [alert for subject in held if (alert := active.get(subject)) is not None and alert.fires]
    findings = [f for f in findings if _key(f) in active or not any(alert.has_told(f) for alert in standing)]
    findings = _adopted(findings, active)
    told = [finding for finding in findings if not finding.cause]
    fire: set[Subject] = set()
    outdone: set[Subject] = set()
    ended = _ended(findings, active)
    for group in _by_cause(findings):
        firing = [f for f in group if (alert := active.get(_key(f))) is not None and alert.fires]
        others = [f for f in group if f not in firing]
        covered = [f for f in others if any(active[_key(one)].covers(f) for one in firing)]
        waiting = sorted((f for f in others if f not in covered), key=_order)
        if firing:
            told += [_with(firing[0], covered), *firing[1:]]
        elif (goes_on := ended.get(group[0].cause)) is not None:
            # What it was about first has ended, as a move does; the broker is still down, or has yet to catch up.
            kept = [f for f in waiting if f.continues]
            waiting = [f for f in waiting if not f.continues]
            told += [_as(goes_on, _with(kept[0], kept[1:]))] if kept else []
        if waiting:
            is_due = any(_key(f) in due for f in waiting)
            pending = [f for f in waiting if _key(f) in active and not is_due]
            lead, *more = pending or waiting[:1]
            told += [_with(lead, [f for f in waiting if f is not lead and f not in more]), *more]
            fire |= {_key(lead)} if is_due else set()
        stale = {_key(f) for f in firing if active[_key(f)].cause not in (None, f.cause)}
        if waiting or len(stale) < len(firing):
            outdone |= stale
    return Grouped(told, frozenset(fire), frozenset(outdone))


def _adopted(findings: Sequence[Finding], active: Mapping[Subject, ActiveAlert]) -> list[Finding]:
    """Return the findings, those that an alert of another cause goes on with, or has told, under that cause."""
    firing = {alert.cause for alert in active.values() if alert.fires and alert.cause}
    going_on = [
        f if f.cause in firing else replace(f, cause=next((c for c in f.continues if c in firing), f.cause))
        for f in findings
    ]
    told_by = [(f, active[_key(f)]) for f in going_on if f.kind in THROTTLE_KINDS and _key(f) in active]
    found = {_key(f) for f in findings}
    ended = [alert for key, alert in active.items() if key[0] in THROTTLE_KINDS and key not in found]

    def under_another(f: Finding) -> Finding:
        if _key(f) in active:
            return f
        cause = next((lead.cause for lead, alert in told_by if alert.has_told_rate(f)), None)
        if cause is not None:
            return replace(f, cause=cause)
        # Its own rate has been raised, and this one, which it named, not yet.
        cause = next((alert.cause for alert in ended if alert.cause and alert.has_told_rate(f)), None)
        return f if cause is None else replace(f, cause=cause, continues=(cause,))

    return [under_another(f) for f in going_on]


def _ended(findings: Sequence[Finding], active: Mapping[Subject, ActiveAlert]) -> dict[str, Subject]:
    """Return, by cause, the alert that fires for it and whose own finding is there no more."""
    found = {_key(finding) for finding in findings}
    over = {subject: alert for subject, alert in active.items() if alert.fires and subject not in found}
    return {alert.cause: subject for subject, alert in sorted(over.items(), reverse=True) if alert.cause}


def _as(subject: Subject, finding: Finding) -> Finding:
    """Return a finding under another alert of its cause."""
    about = {"kind": finding.kind.value, "subject": finding.subject}
    return replace(finding, kind=subject[0], subject=subject[1], evidence={**finding.evidence, "goes_on_with": about})


def _by_cause(findings: Sequence[Finding]) -> list[list[Finding]]:
    groups: dict[str, list[Finding]] = defaultdict(list)
    for finding in findings:
        if finding.cause:
            groups[finding.cause].append(finding)
    return list(groups.values())


def _key(finding: Finding) -> Subject:
    return finding.kind, finding.subject


def _order(finding: Finding) -> tuple[int, int, float, str]:
    return finding.precedence, finding.severity.rank, -finding.weight, finding.subject


def _with(lead: Finding, others: Sequence[Finding]) -> Finding:
    """Return the finding that speaks for the others as well, as grave as the gravest of them."""
    if not others:
        return lead
    ordered = sorted(others, key=_order)
    severity = min((one.severity for one in (lead, *others)), key=lambda severity: severity.rank)
    whom = join_names([other.subject for other in ordered if other.subject != lead.subject])
    summary = f"{lead.summary}; of the same cause: {whom}" if whom else lead.summary
    evidence = {**lead.evidence, "also": [_short(other) for other in ordered]}
    return replace(lead, severity=severity, summary=summary, evidence=evidence)


def _short(finding: Finding) -> dict[str, Any]:
    numbers = ("broker_id", "role", "throttle_bytes_per_s", "in_sync_bytes_per_s", "required_bytes_per_s")
    return {
        "kind": finding.kind.value,
        "subject": finding.subject,
        "severity": finding.severity.value,
        **{name: finding.evidence.get(name) for name in numbers},
    }

"""Lifecycle of the alerts of a cluster (pending, firing, resolved): one alert per kind and subject.

The state is restored from ``alerts/events``. A tick that is not newer than the last one, or than the stored events,
changes nothing, so a micro-batch that runs again after a crash writes no event twice. Pending times that no event
contains are not stored: they start again after a restart.
"""

from __future__ import annotations

import hashlib
import json
import logging
import math
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass, replace

from headroom.alerts.announcement import NO_ESCALATION, Change, Escalation, announcement_of
from headroom.alerts.finding import Finding, Subject
from headroom.alerts.grouping import ActiveAlert, Grouped, group_findings
from headroom.alerts.rules.no_ticks import TICKS
from headroom.alerts.rules.rule import Assessment
from headroom.alerts.stored_event import evidence_of
from headroom.schemas.alerts import AlertEvent, AlertKind, AlertState, Severity

log = logging.getLogger(__name__)
# A change of equal severity is announced when it has lasted as long as an alert of its kind, within these bounds.
_SETTLE_S = (5.0, 30.0)
# An alert that fires again within this time is flapping: each repetition doubles the time it must stay clear, up to
# this limit.
FLAP_MS = 15 * 60 * 1000
# Clocks of two machines differ by less than this.
_CLOCK_SKEW_MS = 60_000
_KINDS, _STATES, _SEVERITIES = ({word.value for word in words} for words in (AlertKind, AlertState, Severity))

# Kind and subject.
Key = tuple[str, str]


@dataclass(frozen=True)
class Alert:
    """State of an alert after its last event.

    Attributes:
        event: the last event.
        since_ms: tick of the first event.
        evaluated_ms: last tick that evaluated the condition; earlier ticks change nothing any more.
        clear_since_ms: first tick of the current clear period; None if the last tick found the condition.
        changed_since_ms: first tick of the current period that differs from the announcement; None if none differs.
    """

    event: AlertEvent
    since_ms: int
    evaluated_ms: int
    clear_since_ms: int | None = None
    changed_since_ms: int | None = None

    @property
    def is_firing(self) -> bool:
        """Return whether the alert has fired and is not resolved."""
        return self.event.state == AlertState.FIRING.value


class Lifecycle:
    """Turns the assessment of each tick of a cluster into alert events.

    Args:
        cluster: name of the cluster.
        resolve_s: how long a condition must stay clear before its alert resolves, in seconds.
        clock_ms: returns the time that events are stamped with, epoch milliseconds.
        gap_after_s: time between two ticks from which on it is unknown what lasted in between, in seconds.
    """

    def __init__(
        self, cluster: str, resolve_s: float, clock_ms: Callable[[], int], gap_after_s: float = math.inf
    ) -> None:
        self._cluster = cluster
        self._resolve_ms = resolve_s * 1000
        self._gap_ms = gap_after_s * 1000
        self._clock_ms = clock_ms
        self._alerts: dict[Key, Alert] = {}
        # Pending alerts of before the start that no tick has found since.
        self._restored_pending: set[Key] = set()
        # By key and alert id: when it fired, within the last FLAP_MS.
        self._fired: dict[Key, dict[str, int]] = {}
        # Findings without a gap, with or without an alert of their own: ``hold_of``, and since which tick.
        self._found_since: dict[Key, tuple[str, int]] = {}
        # Tick that was applied last, or of a stored event; -1 before the first one.
        self._newest_ms = -1

    def restore(self, events: Iterable[AlertEvent]) -> None:
        """Restore alerts from stored events of the cluster, in any order.

        Args:
            events: first and last event of the latest alert of each subject, and recent firing events, without words
                that only a newer version knows.
        """
        for event in sorted(events, key=lambda e: (e.tick_ms, AlertState(e.state).rank)):
            key = (event.kind, event.subject)
            self._remember_firing(key, event)
            known = self._alerts.get(key)
            same = known is not None and known.event.alert_id == event.alert_id
            # An event from the future was written before the clock was set back.
            now_ms = self._clock_ms()
            evaluated_ms = now_ms if event.tick_ms - now_ms > _CLOCK_SKEW_MS else event.tick_ms
            if event.subject != TICKS:
                self._newest_ms = max(self._newest_ms, evaluated_ms)
            self._alerts[key] = Alert(event, known.since_ms if known and same else evaluated_ms, evaluated_ms)
        self._restored_pending = {
            key for key, alert in self._alerts.items() if alert.event.state == AlertState.PENDING.value
        }

    def active(self) -> list[AlertEvent]:
        """Return the last event of every alert that is pending or firing."""
        return [a.event for a in self._alerts.values() if a.event.state != AlertState.RESOLVED.value]

    def has_applied(self, tick_ms: int) -> bool:
        """Return whether a tick, or a later one, was applied before, or has stored events."""
        return tick_ms <= self._newest_ms

    def apply(self, tick_ms: int, assessment: Assessment) -> list[AlertEvent]:
        """Apply the assessment of one tick and return its events, oldest first; a repeated or late tick has none.

        Args:
            tick_ms: time of the tick, epoch milliseconds.
            assessment: result of the rules for this tick.
        """
        if self.has_applied(tick_ms):
            return []
        events = self._apply_atomically(tick_ms, assessment)
        self._newest_ms = tick_ms
        return events

    def apply_missing_ticks(self, at_ms: int, assessment: Assessment) -> list[AlertEvent]:
        """Apply the assessment of missing ticks and return its events; delayed ticks are still accepted later.

        Args:
            at_ms: the time that a tick would have now, epoch milliseconds.
            assessment: findings on the missing ticks.
        """
        return self._apply_atomically(at_ms, assessment)

    def _apply_atomically(self, tick_ms: int, assessment: Assessment) -> list[AlertEvent]:
        """Apply an assessment completely or not at all, so that a failure loses no event."""
        before = dict(self._alerts), dict(self._fired), dict(self._found_since), set(self._restored_pending)
        try:
            return self._apply_assessment(tick_ms, assessment)
        except Exception:
            self._alerts, self._fired, self._found_since, self._restored_pending = before
            raise

    def _apply_assessment(self, tick_ms: int, assessment: Assessment) -> list[AlertEvent]:
        events: list[AlertEvent] = []
        self._restart_pending_times(tick_ms, assessment.findings)
        keep_firing = {(kind.value, subject) for kind, subject in assessment.keep_firing}
        due = self._due(tick_ms, assessment.findings, keep_firing)
        active = self._active(assessment.findings)
        grouped = group_findings(assessment.findings, active, due, assessment.keep_firing)
        finding_keys: set[Key] = set()
        for finding in grouped.findings:
            key = (finding.kind.value, finding.subject)
            finding_keys.add(key)
            events.extend(self._on_found(key, tick_ms, finding, grouped, due))
        for key in [k for k in self._alerts if k not in finding_keys]:
            events.extend(self._on_not_found(key, tick_ms, key in keep_firing))
        return events

    def shift_clock(self, by_ms: int) -> None:
        """Shift all stored times, because the cluster's clock was set or its ticks have a gap.

        Args:
            by_ms: milliseconds to shift by; negative: back.
        """
        newest_ms = self._newest_ms

        def shift(at_ms: int) -> int:
            if at_ms <= newest_ms:
                return at_ms + by_ms
            # A time after the newest tick is from the missing-ticks alert. Ticks that follow are newer than that: those
            # of a clock that was set forward are anyway, those of one that was set back only if it moves before them.
            return at_ms if by_ms > 0 else (at_ms if newest_ms < 0 else newest_ms) + by_ms

        def shift_if_any(at_ms: int | None) -> int | None:
            return None if at_ms is None else shift(at_ms)

        for key, alert in self._alerts.items():
            self._alerts[key] = replace(
                alert,
                since_ms=shift(alert.since_ms),
                evaluated_ms=shift(alert.evaluated_ms),
                clear_since_ms=shift_if_any(alert.clear_since_ms),
                changed_since_ms=shift_if_any(alert.changed_since_ms),
            )
        for key, fired in self._fired.items():
            self._fired[key] = {alert_id: shift(at_ms) for alert_id, at_ms in fired.items()}
        for key, (hold_of, since_ms) in self._found_since.items():
            self._found_since[key] = (hold_of, shift(since_ms))
        if newest_ms >= 0:
            self._newest_ms = newest_ms + by_ms

    def on_first_tick(self, tick_ms: int) -> None:
        """Prepare for the first tick since the start.

        A missing-ticks alert before the first tick has the time of this machine's clock. If that clock is ahead of the
        collector's, ticks must not wait until they reach that time.
        """
        key = (AlertKind.NO_DATA.value, TICKS)
        alert = self._alerts.get(key)
        if alert is None or alert.event.state == AlertState.RESOLVED.value or alert.evaluated_ms < tick_ms:
            return
        if evidence_of(alert.event).is_before_first_tick:
            self._alerts[key] = replace(alert, evaluated_ms=tick_ms - 1)

    def resolve(self, tick_ms: int, why: str, kinds: Collection[AlertKind] | None = None) -> list[AlertEvent]:
        """Resolve alerts that no further tick can evaluate, and return the events.

        Args:
            tick_ms: time of the events, epoch milliseconds.
            why: reason, appended to each summary.
            kinds: alert kinds to resolve; None for all.
        """
        events = []
        for key, alert in self._alerts.items():
            is_of_these = kinds is None or alert.event.kind in {kind.value for kind in kinds}
            if is_of_these and alert.event.state != AlertState.RESOLVED.value:
                evaluated_ms = max(tick_ms, alert.evaluated_ms)
                at_ms = max(evaluated_ms, alert.event.tick_ms)
                event = replace(
                    alert.event,
                    state=AlertState.RESOLVED.value,
                    summary=f"{alert.event.summary}; {why}",
                    tick_ms=at_ms,
                    event_ms=self._clock_ms(),
                )
                events.append(event)
                self._alerts[key] = Alert(event, alert.since_ms, evaluated_ms)
        return events

    def _restart_pending_times(self, tick_ms: int, findings: Sequence[Finding]) -> None:
        """Let pending times start again that nobody watched: a running process would long have ended them."""
        for finding in findings:
            key = (finding.kind.value, finding.subject)
            if key not in self._restored_pending:
                continue
            self._restored_pending.discard(key)
            alert = self._alerts[key]
            is_pending = alert.event.state == AlertState.PENDING.value
            if is_pending and tick_ms - alert.since_ms > finding.hold_s * 1000 + self._gap_ms:
                self._alerts[key] = replace(alert, since_ms=tick_ms)

    def _due(self, tick_ms: int, findings: Sequence[Finding], keep_firing: Collection[Key]) -> set[Subject]:
        """Return the findings that have lasted for their pending time, and record since when each one exists."""
        keys = {(f.kind.value, f.subject) for f in findings}
        for key in [k for k in self._found_since if k not in keys and k not in keep_firing]:
            del self._found_since[key]
        due = set()
        for finding in findings:
            key = (finding.kind.value, finding.subject)
            alert = self._alerts.get(key)
            hold_of, since_ms = self._found_since.setdefault(key, (finding.hold_of, tick_ms))
            if hold_of != finding.hold_of:
                self._found_since[key] = (finding.hold_of, since_ms := tick_ms)
            if alert is not None and alert.event.state == AlertState.PENDING.value:
                since_ms = alert.since_ms
            if tick_ms - since_ms >= finding.hold_s * 1000:
                due.add(finding.key)
        return due

    def _active(self, findings: Sequence[Finding]) -> dict[Subject, ActiveAlert]:
        """Return firing alerts, and pending alerts that have a finding."""
        finding_keys = {(f.kind.value, f.subject) for f in findings}
        return {
            (AlertKind(kind), subject): _as_active(alert)
            for (kind, subject), alert in self._alerts.items()
            if alert.event.state != AlertState.RESOLVED.value and (alert.is_firing or (kind, subject) in finding_keys)
        }

    def _on_found(
        self, key: Key, tick_ms: int, finding: Finding, grouped: Grouped, due: Collection[Subject]
    ) -> Iterable[AlertEvent]:
        """Yield the events of a finding that gets an alert."""
        alert = self._alerts.get(key)
        if alert is None or alert.event.state == AlertState.RESOLVED.value:
            if alert is not None and tick_ms <= alert.evaluated_ms:
                return
            alert_id = hashlib.sha256("\x1f".join((self._cluster, *key, str(tick_ms))).encode()).hexdigest()[:16]
            event = self._event(key, alert_id, AlertState.PENDING, tick_ms, finding)
            alert = Alert(event, tick_ms, tick_ms)
            yield self._store(key, alert)
        elif tick_ms <= alert.evaluated_ms:
            return
        alert = replace(alert, evaluated_ms=tick_ms, clear_since_ms=None)
        escalation = NO_ESCALATION
        if alert.is_firing:
            announced = announcement_of(alert.event)
            change = Change.NONE if finding.key in grouped.superseded else announced.change(finding, due)
            alert = replace(alert, changed_since_ms=(alert.changed_since_ms or tick_ms) if change else None)
            fire = (
                announced.needs_higher_throttle(finding)
                or finding.severity.rank < Severity(alert.event.severity).rank
                or _is_change_settled(alert, tick_ms, finding)
            )
            escalates = fire and change is Change.ESCALATED
            escalation = announced.next_escalation(tick_ms, self._clock_ms()) if escalates else announced.escalation()
        else:
            fire = finding.key in grouped.fire or tick_ms - alert.since_ms >= finding.hold_s * 1000
        self._alerts[key] = alert
        if fire:
            event = self._event(key, alert.event.alert_id, AlertState.FIRING, tick_ms, finding, escalation)
            yield self._store(key, replace(alert, event=event, changed_since_ms=None))

    def _on_not_found(self, key: Key, tick_ms: int, keep_firing: bool) -> Iterable[AlertEvent]:
        alert = self._alerts[key]
        if alert.event.state == AlertState.RESOLVED.value or tick_ms <= alert.evaluated_ms:
            return
        if keep_firing:
            self._alerts[key] = replace(alert, clear_since_ms=None)
            return
        clear_since = tick_ms if alert.clear_since_ms is None else alert.clear_since_ms
        pending = alert.event.state == AlertState.PENDING.value
        if pending or tick_ms - clear_since >= self._clear_for_ms(key, tick_ms):
            at_ms = self._after_last(key, tick_ms)
            event = replace(alert.event, state=AlertState.RESOLVED.value, tick_ms=at_ms, event_ms=self._clock_ms())
            yield self._store(key, Alert(event, alert.since_ms, tick_ms))
        else:
            self._alerts[key] = replace(alert, evaluated_ms=tick_ms, clear_since_ms=clear_since)

    def _clear_for_ms(self, key: Key, tick_ms: int) -> float:
        """Return how long the condition must stay clear, in milliseconds; each repetition of the alert doubles it."""
        fired = self._fired.get(key, {})
        repeats = sum(tick_ms - since_ms <= FLAP_MS for since_ms in fired.values()) - 1
        # 20 doublings exceed FLAP_MS for any time above zero.
        return max(self._resolve_ms, min(self._resolve_ms * 2 ** min(max(0, repeats), 20), FLAP_MS))

    def _remember_firing(self, key: Key, event: AlertEvent) -> None:
        if event.state == AlertState.FIRING.value:
            recent = {i: ms for i, ms in self._fired.get(key, {}).items() if event.tick_ms - ms <= FLAP_MS}
            self._fired[key] = {event.alert_id: event.tick_ms} | recent

    def _store(self, key: Key, alert: Alert) -> AlertEvent:
        self._alerts[key] = alert
        self._remember_firing(key, alert.event)
        return alert.event

    def _event(
        self,
        key: Key,
        alert_id: str,
        state: AlertState,
        tick_ms: int,
        finding: Finding,
        escalation: Escalation = NO_ESCALATION,
    ) -> AlertEvent:
        return AlertEvent(
            alert_id=alert_id,
            kind=key[0],
            severity=finding.severity.value,
            state=state.value,
            cluster=self._cluster,
            subject=key[1],
            summary=finding.summary,
            evidence=json.dumps(finding.evidence_json() | escalation.to_json()),
            recommendation=json.dumps(finding.recommendation.to_json()),
            tick_ms=self._after_last(key, tick_ms),
            event_ms=self._clock_ms(),
        )

    def _after_last(self, key: Key, tick_ms: int) -> int:
        """Return the time of an event: its tick, or just after the last event if the clock was set back.

        Events of one alert must have increasing times, because they are read back in the order of their times.
        """
        last = self._alerts.get(key)
        return tick_ms if last is None or tick_ms >= last.event.tick_ms else last.event.tick_ms + 1


def known_events(events: Iterable[AlertEvent]) -> list[AlertEvent]:
    """Return the events whose kind, state and severity this version knows, and log the unknown words."""
    understood, unknown = [], set()
    for event in events:
        words = ((event.kind, _KINDS), (event.state, _STATES), (event.severity, _SEVERITIES))
        unknown_words = [word for word, known in words if word not in known]
        unknown.update(unknown_words)
        if not unknown_words:
            understood.append(event)
    if unknown:
        log.warning(
            "alerts of a newer version, which this one does not know, are left as they are: %s",
            ", ".join(sorted(unknown)),
        )
    return understood


def _as_active(alert: Alert) -> ActiveAlert:
    severity = Severity(alert.event.severity)
    if not alert.is_firing:
        return ActiveAlert(False, severity=severity)
    announced = announcement_of(alert.event)
    return ActiveAlert(True, announced.evidence.group, announced.also, severity, announced.raises)


def _is_change_settled(alert: Alert, tick_ms: int, finding: Finding) -> bool:
    """Return whether a change has lasted long enough to be announced."""
    least_s, most_s = _SETTLE_S
    since_ms = alert.changed_since_ms
    return since_ms is not None and tick_ms - since_ms >= min(max(finding.hold_s, least_s), most_s) * 1000

"""Pending, firing, resolved: one alert per cluster, kind and subject, the same whatever crashes or comes twice.

The state is what ``alerts/events`` says. A tick that is not later than an alert's last event changes nothing, so that a
batch that runs again after a crash gives no event twice.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from alerts.causes import Speaks, one_per_cause
from alerts.rules import Assessment
from schemas.findings import AlertEvent, Finding, Kind, Severity, State

# A firing alert is announced again when the throttle that would be enough has grown by more than this.
_UPDATE_RATIO = 1.15
# What fires again within this time keeps changing its mind: each time it has to be well for twice as long, up to the
# same time.
FLAP_MS = 15 * 60 * 1000
# An alert may be pending and fire in the same tick, and in the same millisecond.
_STEP = {State.PENDING.value: 0, State.FIRING.value: 1, State.RESOLVED.value: 2}

Key = tuple[str, str, str]


@dataclass(frozen=True)
class Alert:
    """An alert as its last event left it.

    Attributes:
        event: the last event.
        since_ms: tick of the first event.
        heard_ms: last tick that told whether it is wrong; earlier ones change nothing any more.
        clear_since_ms: first tick of those without a break that found nothing wrong; None: the last one did.
    """

    event: AlertEvent
    since_ms: int
    heard_ms: int
    clear_since_ms: int | None = None


class Lifecycle:
    """Turns what each tick says into events.

    Args:
        resolve_s: how long nothing may be wrong before an alert resolves.
        clock_ms: gives the time that events are stamped with.
    """

    def __init__(self, resolve_s: float, clock_ms: Callable[[], int]) -> None:
        self._resolve_ms = resolve_s * 1000
        self._clock_ms = clock_ms
        self._alerts: dict[Key, Alert] = {}
        # When alerts of a subject began to fire, by alert; those of the last FLAP_MS.
        self._fired: dict[Key, dict[str, int]] = {}

    def restore(self, events: Iterable[AlertEvent]) -> None:
        """Take up the alerts that stored events tell of, in any order: the first and last event of the latest alert
        of each subject, and what fired lately.
        """
        for event in sorted(events, key=lambda e: (e.tick_ms, _STEP[e.state])):
            key = (event.cluster, event.kind, event.subject)
            self._count(key, event)
            known = self._alerts.get(key)
            same = known is not None and known.event.alert_id == event.alert_id
            self._alerts[key] = Alert(event, known.since_ms if known and same else event.tick_ms, event.tick_ms)

    def active(self) -> list[AlertEvent]:
        """Return the last event of every alert that is pending or firing."""
        return [a.event for a in self._alerts.values() if a.event.state != State.RESOLVED.value]

    def observe(self, cluster: str, tick_ms: int, assessment: Assessment) -> list[AlertEvent]:
        """Return the events that one tick brings, oldest first.

        Args:
            cluster: name of the cluster.
            tick_ms: time of the tick, epoch milliseconds.
            assessment: what the tick says.
        """
        events: list[AlertEvent] = []
        wrong: set[Key] = set()
        due = self._due_causes(cluster, tick_ms, assessment.findings)
        for finding in one_per_cause(assessment.findings, lambda f: self._speaker(cluster, tick_ms, f, due)):
            key = (cluster, finding.kind.value, finding.subject)
            wrong.add(key)
            events.extend(self._found(key, tick_ms, finding, finding.cause in due))
        held = {(cluster, kind.value, subject) for kind, subject in assessment.held}
        for key in [k for k in self._alerts if k[0] == cluster and k not in wrong]:
            events.extend(self._not_found(key, tick_ms, key in held))
        return events

    def _due_causes(self, cluster: str, tick_ms: int, findings: Sequence[Finding]) -> dict[str, int]:
        """Return the causes of which a pending alert is to fire now, with the lowest precedence of their findings."""
        due = {f.cause for f in findings if f.cause and self._is_due((cluster, f.kind.value, f.subject), tick_ms, f)}
        return {cause: min(f.precedence for f in findings if f.cause == cause) for cause in due}

    def _is_due(self, key: Key, tick_ms: int, finding: Finding) -> bool:
        alert = self._alerts.get(key)
        if alert is None or alert.event.state != State.PENDING.value:
            return False
        return tick_ms > alert.heard_ms and tick_ms - alert.since_ms >= finding.hold_s * 1000

    def _speaker(self, cluster: str, tick_ms: int, finding: Finding, due: Mapping[str, int]) -> Speaks | None:
        """Return whom an alert stands for, that is active or was told of at this tick or later; None: it is not."""
        alert = self._alerts.get((cluster, finding.kind.value, finding.subject))
        if alert is None or (alert.event.state == State.RESOLVED.value and tick_ms > alert.event.tick_ms):
            return None
        if tick_ms <= alert.heard_ms:
            # The tick comes once more.
            return lambda other: True
        if alert.event.state == State.PENDING.value:
            # It has not been told yet, and will be with all that belongs to it: by what comes before it, if that has
            # come up since. Not sooner, or one that comes and goes would keep the others from ever being told.
            steps_back = finding.precedence > due.get(finding.cause, finding.precedence)
            return None if steps_back else lambda other: True
        also = {(one["kind"], one["subject"]) for one in json.loads(alert.event.evidence).get("also", [])}
        return lambda other: other.joins or (other.kind.value, other.subject) in also

    def _found(self, key: Key, tick_ms: int, finding: Finding, due: bool) -> Iterable[AlertEvent]:
        """Return the events of a finding that is told; ``due``: another one of its cause has lasted long enough."""
        alert = self._alerts.get(key)
        if alert is None or alert.event.state == State.RESOLVED.value:
            if alert is not None and tick_ms <= alert.heard_ms:
                return
            event = self._event(key, _alert_id(key, tick_ms), State.PENDING, tick_ms, finding)
            alert = Alert(event, tick_ms, tick_ms)
            yield self._keep(key, alert)
        elif tick_ms <= alert.heard_ms:
            return
        alert = replace(alert, heard_ms=tick_ms, clear_since_ms=None)
        self._alerts[key] = alert
        pending = alert.event.state == State.PENDING.value
        if (pending and (due or tick_ms - alert.since_ms >= finding.hold_s * 1000)) or (
            not pending and (_grown(alert.event, finding) or _graver(alert.event, finding))
        ):
            event = self._event(key, alert.event.alert_id, State.FIRING, tick_ms, finding)
            yield self._keep(key, replace(alert, event=event))

    def _not_found(self, key: Key, tick_ms: int, held: bool) -> Iterable[AlertEvent]:
        alert = self._alerts[key]
        if alert.event.state == State.RESOLVED.value or tick_ms <= alert.heard_ms:
            return
        if held:
            self._alerts[key] = replace(alert, clear_since_ms=None)
            return
        clear_since = tick_ms if alert.clear_since_ms is None else alert.clear_since_ms
        pending = alert.event.state == State.PENDING.value
        if pending or tick_ms - clear_since >= self._well_ms(key, tick_ms):
            event = replace(alert.event, state=State.RESOLVED.value, tick_ms=tick_ms, event_ms=self._clock_ms())
            yield self._keep(key, Alert(event, alert.since_ms, tick_ms))
        else:
            self._alerts[key] = replace(alert, heard_ms=tick_ms, clear_since_ms=clear_since)

    def _well_ms(self, key: Key, tick_ms: int) -> float:
        """Return how long nothing may be wrong before the alert resolves: the longer, the more often it came back."""
        fired = self._fired.get(key, {})
        came_back = sum(tick_ms - since_ms <= FLAP_MS for since_ms in fired.values()) - 1
        # More doublings are more than FLAP_MS for any time, or of none: still none.
        return max(self._resolve_ms, min(self._resolve_ms * 2 ** min(max(0, came_back), 20), FLAP_MS))

    def _count(self, key: Key, event: AlertEvent) -> None:
        if event.state == State.FIRING.value:
            young = {i: ms for i, ms in self._fired.get(key, {}).items() if event.tick_ms - ms <= FLAP_MS}
            self._fired[key] = {event.alert_id: event.tick_ms} | young

    def _keep(self, key: Key, alert: Alert) -> AlertEvent:
        self._alerts[key] = alert
        self._count(key, alert.event)
        return alert.event

    def _event(self, key: Key, alert_id: str, state: State, tick_ms: int, finding: Finding) -> AlertEvent:
        return AlertEvent(
            alert_id=alert_id,
            kind=key[1],
            severity=finding.severity.value,
            state=state.value,
            cluster=key[0],
            subject=key[2],
            summary=finding.summary,
            evidence=json.dumps(finding.evidence),
            recommendation=json.dumps(dict(finding.recommendation)),
            tick_ms=tick_ms,
            event_ms=self._clock_ms(),
        )


def _alert_id(key: Key, tick_ms: int) -> str:
    return hashlib.sha256("\x1f".join((*key, str(tick_ms))).encode()).hexdigest()[:16]


def _grown(event: AlertEvent, finding: Finding) -> bool:
    """Return whether the advice that was announced is no longer enough by a clear margin."""
    if finding.kind not in (Kind.THROTTLE_BELOW_LEADER_WRITE, Kind.THROTTLE_BELOW_INBOUND):
        return False
    before: dict[str, Any] = json.loads(event.recommendation)
    told, needed = before.get("throttle_bytes_per_s"), finding.recommendation.get("throttle_bytes_per_s")
    return bool(needed and (not told or needed > told * _UPDATE_RATIO))


def _graver(event: AlertEvent, finding: Finding) -> bool:
    """Return whether it has become graver than was announced."""
    return finding.severity.rank < Severity(event.severity).rank

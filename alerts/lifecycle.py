"""Pending, firing, resolved: one alert per cluster, kind and subject, the same whatever crashes or comes twice.

The state is what ``alerts/events`` says. A tick that is not later than one before, or than what events tell of, changes
nothing, so that a batch that runs again after a crash gives no event twice. Only how long something has lasted that no
event tells of is not kept: after a restart that time begins again.
"""

from __future__ import annotations

import hashlib
import json
import logging
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import IntEnum
from functools import lru_cache
from types import MappingProxyType
from typing import Any

from alerts.grouping import THROTTLE_KINDS, ActiveAlert, AdvisedIncrease, BrokerRole, Grouped, Subject, group_findings
from alerts.rules.no_ticks import TICKS
from alerts.rules.throttle_below_required import Assessment
from schemas.alerts import AlertEvent, AlertKind, AlertState, Finding, Severity

log = logging.getLogger(__name__)
# A firing alert is announced again when the throttle that would be enough has grown by more than this.
_UPDATE_RATIO = 1.15
# It is announced again when it is about this many times as many replicas as was announced, and at least so many more.
_SPREAD_RATIO, _SPREAD = 2, 5
# Causes in the evidence of which a person has to hear at once, whatever the alert was about before.
_GRAVE_CAUSES = ("broker_down", "destination_down", "destination_disk", "no_leader")
# A change that is no more severe is announced when it has lasted: as long as an alert of its kind, within these bounds.
_SETTLE_S = (5.0, 30.0)
# What fires again within this time keeps changing its mind: each time it has to be well for twice as long, up to the
# same time.
FLAP_MS = 15 * 60 * 1000
# Clocks of two machines are off from each other by less.
_AHEAD_MS = 60_000
# An alert may be pending and fire in the same tick, and in the same millisecond.
_STEP = {AlertState.PENDING.value: 0, AlertState.FIRING.value: 1, AlertState.RESOLVED.value: 2}
_KINDS, _SEVERITIES = {kind.value for kind in AlertKind}, {severity.value for severity in Severity}

Key = tuple[str, str, str]


@dataclass(frozen=True)
class Alert:
    """An alert as its last event left it.

    Attributes:
        event: the last event.
        since_ms: tick of the first event.
        heard_ms: last tick that told whether it is wrong; earlier ones change nothing any more.
        clear_since_ms: first tick of those without a break that found nothing wrong; None: the last one did.
        changed_since_ms: first tick of those without a break that say other than was announced; None: the last did not.
    """

    event: AlertEvent
    since_ms: int
    heard_ms: int
    clear_since_ms: int | None = None
    changed_since_ms: int | None = None

    @property
    def fires(self) -> bool:
        """Return whether it has fired and not ended."""
        return self.event.state == AlertState.FIRING.value


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
        # What is found without a break, whether or not it has an alert of its own: ``hold_of``, and since when.
        self._found_since: dict[Key, tuple[str, int]] = {}
        self._newest_ms: dict[str, int] = {}

    def restore(self, events: Iterable[AlertEvent]) -> None:
        """Take up the alerts that stored events tell of, in any order: the first and last event of the latest alert
        of each subject, and what fired lately. Those that only a newer version knows are left as they are.
        """
        for event in sorted(_understood(events), key=lambda e: (e.tick_ms, _STEP[e.state])):
            key = (event.cluster, event.kind, event.subject)
            self._count(key, event)
            known = self._alerts.get(key)
            same = known is not None and known.event.alert_id == event.alert_id
            # Of a time that is yet to come is what was told before the clock was set back.
            now_ms = self._clock_ms()
            heard_ms = now_ms if event.tick_ms - now_ms > _AHEAD_MS else event.tick_ms
            if event.subject != TICKS:
                self._newest_ms[event.cluster] = max(self._newest_ms.get(event.cluster, -1), heard_ms)
            self._alerts[key] = Alert(event, known.since_ms if known and same else heard_ms, heard_ms)

    def active(self) -> list[AlertEvent]:
        """Return the last event of every alert that is pending or firing."""
        return [a.event for a in self._alerts.values() if a.event.state != AlertState.RESOLVED.value]

    def observe(self, cluster: str, tick_ms: int, assessment: Assessment) -> list[AlertEvent]:
        """Return the events that one tick brings, oldest first; one that comes again, or late, brings none.

        Args:
            cluster: name of the cluster.
            tick_ms: time of the tick, epoch milliseconds.
            assessment: what the tick says.
        """
        if tick_ms <= self._newest_ms.get(cluster, -1):
            return []
        events = self._events(cluster, tick_ms, assessment)
        self._newest_ms[cluster] = tick_ms
        return events

    def silence(self, cluster: str, at_ms: int, assessment: Assessment) -> list[AlertEvent]:
        """Return the events of ticks that stay away; those of before may still come.

        Args:
            cluster: name of the cluster.
            at_ms: the time that a tick would have now, epoch milliseconds.
            assessment: what the silence says.
        """
        return self._events(cluster, at_ms, assessment)

    def _events(self, cluster: str, tick_ms: int, assessment: Assessment) -> list[AlertEvent]:
        """Return the events, all of them: one that was made and is then told to nobody would be lost."""
        before = dict(self._alerts), dict(self._fired), dict(self._found_since)
        try:
            return self._made(cluster, tick_ms, assessment)
        except Exception:
            self._alerts, self._fired, self._found_since = before
            raise

    def _made(self, cluster: str, tick_ms: int, assessment: Assessment) -> list[AlertEvent]:
        events: list[AlertEvent] = []
        down = assessment.held_for_down.items()
        as_it_is = assessment.held | {s for s, throttle in down if not self._asked_for_less(cluster, s, throttle)}
        held = {(cluster, kind.value, subject) for kind, subject in as_it_is}
        due = self._due(cluster, tick_ms, assessment.findings, held)
        active = self._active(cluster, assessment.findings)
        grouped = group_findings(assessment.findings, active, due, as_it_is)
        wrong: set[Key] = set()
        for finding in grouped.findings:
            key = (cluster, finding.kind.value, finding.subject)
            wrong.add(key)
            events.extend(self._found(key, tick_ms, finding, grouped, due))
        for key in [k for k in self._alerts if k[0] == cluster and k not in wrong]:
            events.extend(self._not_found(key, tick_ms, key in held))
        return events

    def move(self, cluster: str, by_ms: int) -> None:
        """Take up that the times of a cluster's ticks go on so many milliseconds later (less than 0: earlier), and that
        nothing lasted in between. What is later than its newest tick stays: it was told while ticks stayed away.
        """
        newest_ms = self._newest_ms.get(cluster, -1)

        def moved(at_ms: int) -> int:
            return at_ms if by_ms > 0 and at_ms > newest_ms else at_ms + by_ms

        def moved_if_any(at_ms: int | None) -> int | None:
            return None if at_ms is None else moved(at_ms)

        for key in [k for k in self._alerts if k[0] == cluster]:
            alert = self._alerts[key]
            self._alerts[key] = replace(
                alert,
                since_ms=moved(alert.since_ms),
                heard_ms=moved(alert.heard_ms),
                clear_since_ms=moved_if_any(alert.clear_since_ms),
                changed_since_ms=moved_if_any(alert.changed_since_ms),
            )
        for key in [k for k in self._fired if k[0] == cluster]:
            self._fired[key] = {alert_id: moved(at_ms) for alert_id, at_ms in self._fired[key].items()}
        for key, (hold_of, since_ms) in self._found_since.items():
            if key[0] == cluster:
                self._found_since[key] = (hold_of, moved(since_ms))
        if cluster in self._newest_ms:
            self._newest_ms[cluster] = newest_ms + by_ms

    def first_tick(self, cluster: str, tick_ms: int) -> None:
        """Take up the first tick of a cluster since the start: a silence that was told before it has the time of
        another clock, which may be ahead, and must not make ticks wait for it.
        """
        key = (cluster, AlertKind.NO_DATA.value, TICKS)
        alert = self._alerts.get(key)
        if alert is None or alert.event.state == AlertState.RESOLVED.value or alert.heard_ms < tick_ms:
            return
        if json.loads(alert.event.evidence).get("last_tick_ms", 0) is None:
            self._alerts[key] = replace(alert, heard_ms=tick_ms - 1)

    def end(self, cluster: str, tick_ms: int, why: str, kinds: Collection[AlertKind] | None = None) -> list[AlertEvent]:
        """Return the events that end alerts of a cluster of which no tick will say any more.

        Args:
            cluster: name of the cluster.
            tick_ms: the time, epoch milliseconds.
            why: what stands behind the summary of each.
            kinds: of these kinds; None: all.
        """
        events = []
        for key, alert in self._alerts.items():
            is_of_these = key[0] == cluster and (kinds is None or alert.event.kind in {kind.value for kind in kinds})
            if is_of_these and alert.event.state != AlertState.RESOLVED.value:
                heard_ms = max(tick_ms, alert.heard_ms)
                at_ms = max(heard_ms, alert.event.tick_ms)
                event = replace(
                    alert.event,
                    state=AlertState.RESOLVED.value,
                    summary=f"{alert.event.summary}; {why}",
                    tick_ms=at_ms,
                    event_ms=self._clock_ms(),
                )
                events.append(event)
                self._alerts[key] = Alert(event, alert.since_ms, heard_ms)
        return events

    def _due(self, cluster: str, tick_ms: int, findings: Sequence[Finding], held: Collection[Key]) -> set[Subject]:
        """Return the findings that have lasted for their time, and note since when each is found."""
        keys = {(cluster, f.kind.value, f.subject) for f in findings}
        for key in [k for k in self._found_since if k[0] == cluster and k not in keys and k not in held]:
            del self._found_since[key]
        due = set()
        for finding in findings:
            key = (cluster, finding.kind.value, finding.subject)
            alert = self._alerts.get(key)
            hold_of, since_ms = self._found_since.setdefault(key, (finding.hold_of, tick_ms))
            if hold_of != finding.hold_of:
                self._found_since[key] = (finding.hold_of, since_ms := tick_ms)
            if alert is not None and alert.event.state == AlertState.PENDING.value:
                since_ms = alert.since_ms
            if tick_ms - since_ms >= finding.hold_s * 1000:
                due.add((finding.kind, finding.subject))
        return due

    def _asked_for_less(self, cluster: str, subject: Subject, throttle_bytes_per_s: float) -> bool:
        """Return whether a throttle is more than an alert said had to be exceeded: then it was put right."""
        alert = self._alerts.get((cluster, subject[0].value, subject[1]))
        required = None if alert is None else _announced(alert.event).required_bytes_per_s
        return required is not None and throttle_bytes_per_s > required

    def _active(self, cluster: str, findings: Sequence[Finding]) -> dict[Subject, ActiveAlert]:
        """Return the alerts that fire, and those of findings that are pending."""
        found = {(cluster, f.kind.value, f.subject) for f in findings}
        return {
            (AlertKind(key[1]), key[2]): _as_active(alert)
            for key, alert in self._alerts.items()
            if key[0] == cluster and alert.event.state != AlertState.RESOLVED.value and (alert.fires or key in found)
        }

    def _found(
        self, key: Key, tick_ms: int, finding: Finding, grouped: Grouped, due: Collection[Subject]
    ) -> Iterable[AlertEvent]:
        """Return the events of a finding that gets an alert."""
        alert = self._alerts.get(key)
        if alert is None or alert.event.state == AlertState.RESOLVED.value:
            if alert is not None and tick_ms <= alert.heard_ms:
                return
            event = self._event(key, _alert_id(key, tick_ms), AlertState.PENDING, tick_ms, finding)
            alert = Alert(event, tick_ms, tick_ms)
            yield self._keep(key, alert)
        elif tick_ms <= alert.heard_ms:
            return
        alert = replace(alert, heard_ms=tick_ms, clear_since_ms=None)
        subject = (finding.kind, finding.subject)
        extra: dict[str, int] = {}
        if alert.fires:
            change = _Change.NONE if subject in grouped.outdone else _change(alert.event, finding, due)
            alert = replace(alert, changed_since_ms=(alert.changed_since_ms or tick_ms) if change else None)
            fire = _grown(alert.event, finding) or _graver(alert.event, finding) or _settled(alert, tick_ms, finding)
            extra = _escalation(alert.event, tick_ms if fire and change is _Change.ESCALATED else None)
        else:
            fire = subject in grouped.fire or tick_ms - alert.since_ms >= finding.hold_s * 1000
        self._alerts[key] = alert
        if fire:
            event = self._event(key, alert.event.alert_id, AlertState.FIRING, tick_ms, finding, extra)
            yield self._keep(key, replace(alert, event=event, changed_since_ms=None))

    def _not_found(self, key: Key, tick_ms: int, held: bool) -> Iterable[AlertEvent]:
        alert = self._alerts[key]
        if alert.event.state == AlertState.RESOLVED.value or tick_ms <= alert.heard_ms:
            return
        if held:
            self._alerts[key] = replace(alert, clear_since_ms=None)
            return
        clear_since = tick_ms if alert.clear_since_ms is None else alert.clear_since_ms
        pending = alert.event.state == AlertState.PENDING.value
        if pending or tick_ms - clear_since >= self._well_ms(key, tick_ms):
            at_ms = self._after_last(key, tick_ms)
            event = replace(alert.event, state=AlertState.RESOLVED.value, tick_ms=at_ms, event_ms=self._clock_ms())
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
        if event.state == AlertState.FIRING.value:
            young = {i: ms for i, ms in self._fired.get(key, {}).items() if event.tick_ms - ms <= FLAP_MS}
            self._fired[key] = {event.alert_id: event.tick_ms} | young

    def _keep(self, key: Key, alert: Alert) -> AlertEvent:
        self._alerts[key] = alert
        self._count(key, alert.event)
        return alert.event

    def _event(
        self,
        key: Key,
        alert_id: str,
        state: AlertState,
        tick_ms: int,
        finding: Finding,
        extra: Mapping[str, int] = MappingProxyType({}),
    ) -> AlertEvent:
        own = {"affected": finding.affected or None, "group": finding.cause or None, **extra}
        evidence = {**finding.evidence, **{name: value for name, value in own.items() if value is not None}}
        return AlertEvent(
            alert_id=alert_id,
            kind=key[1],
            severity=finding.severity.value,
            state=state.value,
            cluster=key[0],
            subject=key[2],
            summary=finding.summary,
            evidence=json.dumps(evidence),
            recommendation=json.dumps(dict(finding.recommendation)),
            tick_ms=self._after_last(key, tick_ms),
            event_ms=self._clock_ms(),
        )

    def _after_last(self, key: Key, tick_ms: int) -> int:
        """Return the time of an event: that of its tick, or, after the clock was set back, just after the last event.

        By their times the events of an alert are read back in their order.
        """
        last = self._alerts.get(key)
        return tick_ms if last is None or tick_ms >= last.event.tick_ms else last.event.tick_ms + 1


def _understood(events: Iterable[AlertEvent]) -> list[AlertEvent]:
    """Return the events whose words this version knows, and log those of the others."""
    understood, unknown = [], set()
    for event in events:
        words = ((event.kind, _KINDS), (event.state, _STEP.keys()), (event.severity, _SEVERITIES))
        strange = [word for word, known in words if word not in known]
        unknown.update(strange)
        if not strange:
            understood.append(event)
    if unknown:
        log.warning(
            "alerts of a newer version, which this one does not know, are left as they are: %s",
            ", ".join(sorted(unknown)),
        )
    return understood


def _as_active(alert: Alert) -> ActiveAlert:
    announced = _announced(alert.event) if alert.fires else _Announced()
    severity = Severity(alert.event.severity)
    return ActiveAlert(alert.fires, announced.cause, announced.also, severity, announced.raises)


def _alert_id(key: Key, tick_ms: int) -> str:
    return hashlib.sha256("\x1f".join((*key, str(tick_ms))).encode()).hexdigest()[:16]


@dataclass(frozen=True)
class _Announced:
    """What an alert said when it was announced last.

    Attributes:
        cause: what made it one with others; None: not known, or nothing.
        also: the findings that it named.
        brokers: brokers that it named, or whose rate its advice raises.
        why: the cause that its evidence gives; None: none.
        affected: how many replicas it was about; None: not told.
        action: what it advised.
        goes_on_with: kind of the finding that it went on with; None: it was about its own.
        raises: what its advice raises, by broker and role.
        required_bytes_per_s: what a throttle that is too low had to exceed; None: not known, or about no throttle.
    """

    cause: str | None = None
    also: frozenset[Subject] = frozenset()
    brokers: frozenset[int] = frozenset()
    why: str | None = None
    affected: int | None = None
    action: str | None = None
    goes_on_with: str | None = None
    raises: Mapping[BrokerRole, AdvisedIncrease] = field(default_factory=dict)
    required_bytes_per_s: float | None = None


@lru_cache(maxsize=1000)
def _announced(event: AlertEvent) -> _Announced:
    evidence, recommendation = json.loads(event.evidence), json.loads(event.recommendation)
    also = evidence.get("also", [])
    raises = _raises(recommendation)
    # What it has gone on with it has named as much as those beside it.
    named = [*also, *filter(None, [evidence.get("goes_on_with")])]
    named_brokers = {one.get("broker_id") for one in (evidence, *also)} | {broker for broker, _ in raises}
    return _Announced(
        cause=evidence.get("group"),
        also=frozenset((AlertKind(one["kind"]), one["subject"]) for one in named if one["kind"] in _KINDS),
        brokers=frozenset(broker for broker in named_brokers if broker is not None),
        why=evidence.get("cause"),
        affected=evidence.get("affected"),
        action=recommendation.get("action"),
        goes_on_with=_about(evidence),
        raises=raises,
        required_bytes_per_s=evidence.get("required_bytes_per_s"),
    )


def _raises(recommendation: Mapping[str, Any]) -> dict[BrokerRole, AdvisedIncrease]:
    """Return what an advice raises, by broker and role."""
    return {
        (one["broker_id"], one["role"]): AdvisedIncrease(in_force, advised)
        for one in recommendation.get("per_broker") or ()
        if (advised := one.get("recommended_bytes_per_s")) is not None
        and advised > (in_force := one.get("throttle_bytes_per_s") or 0.0)
    }


def _about(evidence: Mapping[str, Any]) -> str | None:
    kind: str | None = evidence.get("goes_on_with", {}).get("kind")
    return kind


class _Change(IntEnum):
    """How what is found differs from what was announced: not; in cause or advice; or so that it is another matter."""

    NONE = 0
    UPDATED = 1
    ESCALATED = 2


def _change(event: AlertEvent, finding: Finding, due: Collection[Subject]) -> _Change:
    before, action = _announced(event), finding.recommendation.get("action")
    spread = finding.affected - (before.affected or 0)
    why = finding.evidence.get("cause")
    more = before.affected is not None and spread >= max(_SPREAD, (_SPREAD_RATIO - 1) * before.affected)
    joined = {
        one["broker_id"]
        for one in finding.evidence.get("also", [])
        if one["broker_id"] is not None and (AlertKind(one["kind"]), one["subject"]) in due
    }
    is_graver = why in _GRAVE_CAUSES and before.why not in _GRAVE_CAUSES
    if is_graver or more or not joined <= before.brokers:
        return _Change.ESCALATED
    # An advice that is not known just now has not become another.
    is_other = why not in (None, before.why) or action not in (None, "none", before.action)
    is_other = is_other or _about(finding.evidence) != before.goes_on_with
    return _Change.UPDATED if is_other else _Change.NONE


def _escalation(event: AlertEvent, escalated_tick_ms: int | None) -> dict[str, int]:
    """Return how often an alert has become another matter, and when last; nothing: never."""
    before = json.loads(event.evidence)
    known = {name: before[name] for name in ("escalation", "escalated_tick_ms") if name in before}
    if escalated_tick_ms is None:
        return known
    return {"escalation": known.get("escalation", 0) + 1, "escalated_tick_ms": escalated_tick_ms}


def _settled(alert: Alert, tick_ms: int, finding: Finding) -> bool:
    """Return whether a change has lasted long enough to be announced."""
    least_s, most_s = _SETTLE_S
    since_ms = alert.changed_since_ms
    return since_ms is not None and tick_ms - since_ms >= min(max(finding.hold_s, least_s), most_s) * 1000


def _graver(event: AlertEvent, finding: Finding) -> bool:
    """Return whether it has become graver than was announced."""
    return finding.severity.rank < Severity(event.severity).rank


def _grown(event: AlertEvent, finding: Finding) -> bool:
    """Return whether the advice that was announced is no longer enough by a clear margin."""
    if finding.kind not in THROTTLE_KINDS:
        return False
    before: dict[str, Any] = json.loads(event.recommendation)
    told, needed = before.get("throttle_bytes_per_s"), finding.recommendation.get("throttle_bytes_per_s")
    return bool(needed and (not told or needed > told * _UPDATE_RATIO))

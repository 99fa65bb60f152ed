"""Acknowledge alerts, and create, list and end silences: what the commands do, without their output."""

from __future__ import annotations

import secrets
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import TypeVar

import click

from headroom.alerts.delivery.suppression import Silence, SuppressionAction, SuppressionRecord, Suppressions
from headroom.schemas.alerts import AlertEvent, AlertState
from headroom.schemas.config import Settings
from headroom.schemas.environment import user_name
from headroom.schemas.errors import HeadroomError
from headroom.schemas.tables import ALERT_EVENTS
from headroom.schemas.text.amounts import moment_text
from headroom.streaming.clock import now_ms
from headroom.streaming.delta.locations import require_present
from headroom.streaming.delta.query import table_url
from headroom.streaming.tables.current_alerts import CurrentAlert, read_current_alerts
from headroom.streaming.tables.suppression_rows import append_suppression, read_suppressions

T = TypeVar("T")

# 9999-12-31T23:59:59Z, the last second that has a date.
_LAST_MS = 253_402_300_799_000


@dataclass(frozen=True)
class SilenceRequest:
    """A silence as the operator asks for it.

    Attributes:
        cluster: only alerts of this cluster; of all clusters if None.
        kind: only alerts of this kind; of all kinds if None.
        subject: only alerts on this subject, in which ``*`` matches any text; on all subjects if None.
        duration_s: length of the silence, in seconds.
        starts_ms: start, in epoch milliseconds; now if None.
        note: reason.
        by: author; the login name if None.
    """

    cluster: str | None
    kind: str | None
    subject: str | None
    duration_s: float
    starts_ms: int | None
    note: str
    by: str | None


@dataclass(frozen=True)
class Acknowledged:
    """An acknowledgement that was stored, with the newest event of its alert."""

    record: SuppressionRecord
    event: AlertEvent


@dataclass(frozen=True)
class CreatedSilence:
    """A silence that was stored.

    Attributes:
        silence: the silence.
        at_ms: time of the request, in epoch milliseconds.
        firing: newest event of each alert that fires at that time and matches.
    """

    silence: Silence
    at_ms: int
    firing: list[AlertEvent]


@dataclass(frozen=True)
class SilenceList:
    """Silences to show.

    Attributes:
        shown: the silences, by start.
        at_ms: time of the request, in epoch milliseconds.
        total: number of all silences ever created, shown or not.
    """

    shown: list[Silence]
    at_ms: int
    total: int


@dataclass(frozen=True)
class EndedSilence:
    """A silence that was ended or cancelled.

    Attributes:
        before: the silence as it was.
        at_ms: time of the request, in epoch milliseconds.
        ended_ms: its end now, in epoch milliseconds.
    """

    before: Silence
    at_ms: int
    ended_ms: int


def acknowledge(settings: Settings, alert_id: str, note: str, by: str | None) -> Acknowledged:
    """Store an acknowledgement of the active alert whose id begins with ``alert_id``.

    Raises:
        HeadroomError: there is no such alert, or more than one; or a table cannot be read or written.
    """
    event = _active_alert(read_current_alerts(settings) or [], alert_id).event
    record = replace(
        _new_record(SuppressionAction.ACK, by, note),
        cluster=event.cluster,
        kind=event.kind,
        subject=event.subject,
        alert_id=event.alert_id,
        severity=event.severity,
    )
    append_suppression(settings, record)
    return Acknowledged(record, event)


def create_silence(settings: Settings, request: SilenceRequest) -> CreatedSilence:
    """Store a silence.

    Raises:
        click.UsageError: it would be over already, or end after the last date that there is.
        HeadroomError: no watch has used the store yet, or a table cannot be read or written.
    """
    at_ms = now_ms()
    begins_ms = at_ms if request.starts_ms is None else request.starts_ms
    ends_ms = begins_ms + round(request.duration_s * 1000)
    if ends_ms > _LAST_MS:
        raise click.UsageError("It would end after the year 9999. Give an earlier --starts.")
    if ends_ms <= at_ms:
        raise click.UsageError(
            f"It would be over: it ends {moment_text(ends_ms)}. Give a later --starts or a longer --for."
        )
    record = replace(
        _new_record(SuppressionAction.SILENCE, request.by, request.note),
        cluster=request.cluster,
        kind=request.kind,
        subject=request.subject,
        # A silence cannot begin in the past: earlier notifications have been sent already.
        starts_ms=max(begins_ms, at_ms),
        ends_ms=ends_ms,
    )
    (created,) = Suppressions.of([record]).silences
    alerts = read_current_alerts(settings)
    if alerts is None:
        raise HeadroomError(
            table_url(settings.store.path, ALERT_EVENTS.path),
            "is not there, so no watch would see the silence",
            "Correct store.path, or start `headroom watch` first, which makes it.",
        )
    firing = [a.event for a in alerts if a.event.state == AlertState.FIRING.value and created.matches(a.event)]
    append_suppression(settings, record)
    return CreatedSilence(created, at_ms, firing)


def list_silences(settings: Settings, *, with_ended: bool) -> SilenceList:
    """Return active and planned silences, and those that have ended if asked for.

    Raises:
        HeadroomError: the store does not exist, or the table cannot be read.
    """
    require_present(settings.store.path)
    silences, at_ms = read_suppressions(settings).silences, now_ms()
    shown = [silence for silence in silences if with_ended or silence.ends_ms > at_ms]
    return SilenceList(sorted(shown, key=lambda s: (s.starts_ms, s.record.mark_id)), at_ms, len(silences))


def end_silence(settings: Settings, silence_id: str, by: str | None) -> EndedSilence:
    """End the silence whose id begins with ``silence_id``, or cancel it if it is only planned.

    Raises:
        HeadroomError: there is no such silence, or more than one; or the table cannot be read or written.
    """
    at_ms = now_ms()
    current = _find_silence(read_suppressions(settings).silences, silence_id, at_ms)
    record = replace(_new_record(SuppressionAction.UNSILENCE, by, ""), mark_id=current.record.mark_id)
    append_suppression(settings, record)
    return EndedSilence(current, at_ms, record.mark_ms)


def _new_record(action: SuppressionAction, by: str | None, note: str) -> SuppressionRecord:
    return SuppressionRecord(
        mark_id=secrets.token_hex(8),
        action=action.value,
        cluster=None,
        kind=None,
        subject=None,
        alert_id=None,
        severity=None,
        starts_ms=None,
        ends_ms=None,
        by=by or _user_name(),
        note=note,
        mark_ms=now_ms(),
    )


def _user_name() -> str:
    user = user_name()
    if user is None:
        raise HeadroomError("--by", "is needed, for this user has no name", "Give it: --by NAME.")
    return user


def _active_alert(alerts: Sequence[CurrentAlert], alert_id: str) -> CurrentAlert:
    """Return the active alert whose id begins with ``alert_id``.

    Raises:
        HeadroomError: there is none, or more than one.
    """
    subject, remedy = f"alert {alert_id}", "See `headroom alerts` for the ids of active alerts."
    matching = _with_prefix(alerts, alert_id, lambda alert: alert.event.alert_id)
    active = [alert for alert in matching if alert.is_active]
    if not active and matching:
        raise HeadroomError(subject, "is resolved, so there is nothing to acknowledge", remedy)
    return _only_one(active, subject, remedy, lambda alert: alert.event.alert_id)


def _find_silence(silences: Sequence[Silence], silence_id: str, at_ms: int) -> Silence:
    """Return the silence that has not ended and whose id begins with ``silence_id``.

    Raises:
        HeadroomError: there is none, or more than one.
    """
    subject, remedy = f"silence {silence_id}", "See `headroom alerts silences` for the ids of active silences."
    matching = _with_prefix(silences, silence_id, lambda silence: silence.record.mark_id)
    not_ended = [silence for silence in matching if silence.ends_ms > at_ms]
    if not not_ended and matching:
        raise HeadroomError(subject, f"has ended at {moment_text(matching[-1].ends_ms)}", remedy)
    return _only_one(not_ended, subject, remedy, lambda silence: silence.record.mark_id)


def _with_prefix(candidates: Sequence[T], prefix: str, id_of: Callable[[T], str]) -> list[T]:
    # An empty prefix would match everything.
    return [one for one in candidates if prefix and id_of(one).startswith(prefix)]


def _only_one(matches: Sequence[T], subject: str, remedy: str, id_of: Callable[[T], str]) -> T:
    if not matches:
        raise HeadroomError(subject, "is not there", remedy)
    if len(matches) > 1:
        ids = ", ".join(sorted(id_of(one) for one in matches))
        raise HeadroomError(subject, f"may be any of {ids}", "Give more of the id.")
    return matches[0]

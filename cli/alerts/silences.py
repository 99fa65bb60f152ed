"""``headroom alerts ack|silence|silences|unsilence``: acknowledgements and silences, kept in ``alerts/marks``."""

from __future__ import annotations

import getpass
import secrets
from collections.abc import Callable, Sequence
from dataclasses import asdict, replace
from typing import Any, TypeVar

import click

from alerts.delivery.suppression import Silence, SuppressionAction, SuppressionRecord, Suppressions
from alerts.text.formatting import moment
from cli.common.options import config_option, format_option
from cli.common.output import duration, echo, print_json, print_table
from cli.common.parameters import Duration, Moment
from cli.config.load import read_settings
from schemas.alerts import AlertEvent, AlertKind, AlertState
from schemas.errors import HeadroomError
from streaming.tables.current_alerts import CurrentAlert, read_current_alerts
from streaming.tables.suppression_rows import append_suppression, now_ms, read_suppressions

T = TypeVar("T")

_LONGEST_S = 366 * 86_400.0
# 9999-12-31T23:59:59Z, the last second that has a date.
_LAST_MS = 253_402_300_799_000

by_option = click.option("--by", metavar="NAME", help="Author; default: the login name.")


@click.command()
@click.argument("alert_id")
@click.option("--note", default="", metavar="TEXT", help="Remark for other operators.")
@by_option
@config_option
@format_option
def ack(alert_id: str, note: str, by: str | None, config: str | None, output_format: str) -> None:
    """Acknowledge an alert: an operator is aware of it. ALERT_ID is an id from `headroom alerts`, or its beginning.

    Receivers get no further update of the alert until its severity rises. They still get its resolution. The
    acknowledgement ends with the alert.

    \b
    Example:  headroom alerts ack 46ddbd3ca4b9fd00
              headroom alerts ack 46dd --note "raising the throttle" --by anna
    """  # noqa: D301
    settings = read_settings(config)
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
    if output_format == "json":
        print_json(asdict(record))
        return
    echo(f"Acknowledged by {record.by}: {_describe_event(event)}.")
    echo("Receivers get no update of it until its severity rises; they still get its resolution.")


@click.command(short_help="Silence alerts for a period.")
@click.option("--cluster", metavar="NAME", help="Alerts of this cluster.")
@click.option("--kind", type=click.Choice([kind.value for kind in AlertKind]), help="Alerts of this kind.")
@click.option("--subject", metavar="TEXT", help='Alerts on this subject; * matches any text: "broker 2 as *".')
@click.option(
    "--for",
    "seconds",
    type=Duration(_LONGEST_S),
    required=True,
    metavar="DURATION",
    help="Duration: 90s, 30m, 2h, 1h30m, 2d.",
)
@click.option(
    "--starts",
    "starts_ms",
    type=Moment(),
    metavar="TIME",
    help="Start, such as 2026-11-22T22:00Z; UTC if no zone is given. Default: now.",
)
@click.option("--note", required=True, metavar="TEXT", help="Reason.")
@by_option
@config_option
@format_option
def silence(
    cluster: str | None,
    kind: str | None,
    subject: str | None,
    seconds: float,
    starts_ms: int | None,
    note: str,
    by: str | None,
    config: str | None,
    output_format: str,
) -> None:
    """Silence alerts for a period that starts now or at --starts: receivers are not notified of matching alerts.

    Give at least one of --cluster, --kind and --subject; an alert has to match all that are given. If an alert still
    fires when the silence ends, receivers are notified then. An alert that fires and resolves during the silence is
    never sent. `headroom alerts` shows silenced alerts as usual.

    \b
    Example:  headroom alerts silence --cluster orders --for 2h --note "disks are replaced"
              headroom alerts silence --subject "broker 2 as *" --for 30m --note "broker 2 restarts"
              headroom alerts silence --kind no_data --starts 2026-11-22T22:00Z --for 4h --note "agents are updated"
    """  # noqa: D301
    if cluster is None and kind is None and subject is None:
        raise click.UsageError("Give at least one of --cluster, --kind and --subject.")
    settings, at_ms = read_settings(config), now_ms()
    begins_ms = at_ms if starts_ms is None else starts_ms
    ends_ms = begins_ms + round(seconds * 1000)
    if ends_ms > _LAST_MS:
        raise click.UsageError("It would end after the year 9999. Give an earlier --starts.")
    if ends_ms <= at_ms:
        raise click.UsageError(f"It would be over: it ends {moment(ends_ms)}. Give a later --starts or a longer --for.")
    record = replace(
        _new_record(SuppressionAction.SILENCE, by, note),
        cluster=cluster,
        kind=kind,
        subject=subject,
        # A silence cannot begin in the past: earlier notifications have been sent already.
        starts_ms=max(begins_ms, at_ms),
        ends_ms=ends_ms,
    )
    (created,) = Suppressions.of([record]).silences
    alerts = read_current_alerts(settings) or []
    firing = [a.event for a in alerts if a.event.state == AlertState.FIRING.value and created.matches(a.event)]
    append_suppression(settings, record)
    if output_format == "json":
        print_json({**_as_json(created, at_ms), "covers": [event.alert_id for event in firing]})
        return
    begins = "now" if created.starts_ms <= at_ms else moment(created.starts_ms)
    echo(f"Silence {record.mark_id}, from {begins} until {moment(ends_ms)}: {_matchers(record)}.")
    matches = "matches" if created.starts_ms <= at_ms else "would match, if they still fire then,"
    echo(f"It {matches} {len(firing)} of the alerts that fire now{':' if firing else '.'}")
    for event in firing:
        echo(f"  {_describe_event(event)}")


@click.command()
@click.option("--all", "show_all", is_flag=True, help="Also show silences that have ended.")
@config_option
@format_option
def silences(show_all: bool, config: str | None, output_format: str) -> None:
    """Show active and planned silences. The windows of [[alerts.maintenance]] are not listed; see headroom.toml.

    \b
    Example:  headroom alerts silences
              headroom alerts silences --all --format json
    """  # noqa: D301
    suppressions, at_ms = read_suppressions(read_settings(config)), now_ms()
    shown = sorted(
        (s for s in suppressions.silences if show_all or s.ends_ms > at_ms),
        key=lambda s: (s.starts_ms, s.record.mark_id),
    )
    if output_format == "json":
        print_json([_as_json(silence, at_ms) for silence in shown])
    elif shown:
        header = ("id", "state", "alerts", "starts", "ends", "by", "note")
        print_table("", header, [_row(silence, at_ms) for silence in shown])
    elif suppressions.silences:
        echo(f"No silence is active or planned; {len(suppressions.silences)} in all have ended (--all shows them).")
    else:
        echo("No silence was ever created.")


@click.command()
@click.argument("silence_id")
@by_option
@config_option
@format_option
def unsilence(silence_id: str, by: str | None, config: str | None, output_format: str) -> None:
    """End an active silence or cancel a planned one. SILENCE_ID is an id from `headroom alerts silences`, or its
    beginning.

    Within seconds, receivers are notified of the alerts that it matched and that still fire.

    \b
    Example:  headroom alerts unsilence 8a41c0ffee123456
    """  # noqa: D301
    settings, at_ms = read_settings(config), now_ms()
    current = _find_silence(read_suppressions(settings).silences, silence_id, at_ms)
    record = replace(_new_record(SuppressionAction.UNSILENCE, by, ""), mark_id=current.record.mark_id)
    append_suppression(settings, record)
    if output_format == "json":
        print_json(_as_json(replace(current, ends_ms=record.mark_ms), record.mark_ms))
        return
    done = "Cancelled" if current.starts_ms > at_ms else "Ended"
    echo(f"{done} silence {record.mark_id}: {_matchers(current.record)}. It was until {moment(current.ends_ms)}.")


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
        by=by or _login_name(),
        note=note,
        mark_ms=now_ms(),
    )


def _login_name() -> str:
    try:
        return getpass.getuser()
    # The user id has no name, as in containers. Which of the two errors is raised depends on the version of Python.
    except (OSError, KeyError):
        raise HeadroomError("--by", "is needed, for this user has no name", "Give it: --by NAME.") from None


def _active_alert(found: Sequence[CurrentAlert], alert_id: str) -> CurrentAlert:
    """Return the active alert whose id begins with ``alert_id``.

    Raises:
        HeadroomError: there is none, or more than one.
    """
    subject, remedy = f"alert {alert_id}", "See `headroom alerts` for the ids of active alerts."
    matching = _with_prefix(found, alert_id, lambda alert: alert.event.alert_id)
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
        raise HeadroomError(subject, f"has ended at {moment(matching[-1].ends_ms)}", remedy)
    return _only_one(not_ended, subject, remedy, lambda silence: silence.record.mark_id)


def _with_prefix(found: Sequence[T], prefix: str, id_of: Callable[[T], str]) -> list[T]:
    # An empty prefix would match everything.
    return [one for one in found if prefix and id_of(one).startswith(prefix)]


def _only_one(found: Sequence[T], subject: str, remedy: str, id_of: Callable[[T], str]) -> T:
    if not found:
        raise HeadroomError(subject, "is not there", remedy)
    if len(found) > 1:
        ids = ", ".join(sorted(id_of(one) for one in found))
        raise HeadroomError(subject, f"may be any of {ids}", "Give more of the id.")
    return found[0]


def _describe_event(event: AlertEvent) -> str:
    return f"{event.alert_id} {event.severity} {event.kind}, cluster {event.cluster}, {event.subject}"


def _matchers(record: SuppressionRecord) -> str:
    matchers = {"cluster": record.cluster, "kind": record.kind, "subject": record.subject}
    return ", ".join(f"{name} {value}" for name, value in matchers.items() if value is not None)


def _state(silence: Silence, at_ms: int) -> str:
    if silence.ends_ms <= at_ms:
        return "ended"
    return "planned" if silence.starts_ms > at_ms else "holds"


def _as_json(silence: Silence, at_ms: int) -> dict[str, Any]:
    record = silence.record
    matchers = {name: getattr(record, name) for name in ("mark_id", "cluster", "kind", "subject")}
    times = {"starts_ms": silence.starts_ms, "ends_ms": silence.ends_ms}
    author = {"by": record.by, "note": record.note, "mark_ms": record.mark_ms}
    return {**matchers, "state": _state(silence, at_ms), **times, **author}


def _row(silence: Silence, at_ms: int) -> tuple[str, ...]:
    record, state = silence.record, _state(silence, at_ms)
    remaining = f" (in {duration((silence.ends_ms - at_ms) / 1000)})" if state == "holds" else ""
    ends = f"{moment(silence.ends_ms)}{remaining}"
    return record.mark_id, state, _matchers(record), moment(silence.starts_ms), ends, record.by, record.note

"""``headroom alerts ack|silence|silences|unsilence``: what people say of alerts, kept in ``alerts/marks``."""

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

by_option = click.option("--by", metavar="NAME", help="Who says so; default: the login name.")


@click.command()
@click.argument("alert_id")
@click.option("--note", default="", metavar="TEXT", help="What others should know.")
@by_option
@config_option
@format_option
def ack(alert_id: str, note: str, by: str | None, config: str | None, output_format: str) -> None:
    """Acknowledge an alert: somebody knows of it. ALERT_ID is an id that `headroom alerts` shows, or its beginning.

    Receivers get no more updates of the alert until its severity rises, but still get its end. The acknowledgement
    ends with the alert.

    \b
    Example:  headroom alerts ack 46ddbd3ca4b9fd00
              headroom alerts ack 46dd --note "raising the throttle" --by anna
    """  # noqa: D301
    settings = read_settings(config)
    event = _standing(read_current_alerts(settings) or [], alert_id).event
    mark = replace(
        _mark(SuppressionAction.ACK, by, note),
        cluster=event.cluster,
        kind=event.kind,
        subject=event.subject,
        alert_id=event.alert_id,
        severity=event.severity,
    )
    append_suppression(settings, mark)
    if output_format == "json":
        print_json(asdict(mark))
        return
    echo(f"Acknowledged by {mark.by}: {_told(event)}.")
    echo("Receivers hear no update of it until its severity rises, and hear of its end.")


@click.command(short_help="Keep some alerts from receivers for a time.")
@click.option("--cluster", metavar="NAME", help="Alerts of this cluster.")
@click.option("--kind", type=click.Choice([kind.value for kind in AlertKind]), help="Alerts of this kind.")
@click.option("--subject", metavar="TEXT", help='Alerts on this subject; * stands for any text: "broker 2 as *".')
@click.option(
    "--for",
    "seconds",
    type=Duration(_LONGEST_S),
    required=True,
    metavar="DURATION",
    help="How long: 90s, 30m, 2h, 1h30m, 2d.",
)
@click.option(
    "--starts",
    "starts_ms",
    type=Moment(),
    metavar="TIME",
    help="When it begins, such as 2026-11-22T22:00Z; without a zone it is UTC. Default: now.",
)
@click.option("--note", required=True, metavar="TEXT", help="Why.")
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
    """Tell receivers nothing of some alerts for a time, from now or from a later moment: a maintenance window.

    Say which alerts by at least one of --cluster, --kind and --subject; an alert has to match all that are given. An
    alert that still fires when the silence ends is told then; one that begins and ends during the silence is not told
    at all. `headroom alerts` goes on showing all of them.

    \b
    Example:  headroom alerts silence --cluster orders --for 2h --note "disks are replaced"
              headroom alerts silence --subject "broker 2 as *" --for 30m --note "broker 2 restarts"
              headroom alerts silence --kind no_data --starts 2026-11-22T22:00Z --for 4h --note "agents are updated"
    """  # noqa: D301
    if cluster is None and kind is None and subject is None:
        raise click.UsageError("Say which alerts: give at least one of --cluster, --kind and --subject.")
    settings, at_ms = read_settings(config), now_ms()
    begins_ms = at_ms if starts_ms is None else starts_ms
    ends_ms = begins_ms + round(seconds * 1000)
    if ends_ms > _LAST_MS:
        raise click.UsageError("It would end after the year 9999. Give an earlier --starts.")
    if ends_ms <= at_ms:
        raise click.UsageError(f"It would be over: it ends {moment(ends_ms)}. Give a later --starts or a longer --for.")
    mark = replace(
        _mark(SuppressionAction.SILENCE, by, note),
        cluster=cluster,
        kind=kind,
        subject=subject,
        # Not before it is said: what was told by then was told.
        starts_ms=max(begins_ms, at_ms),
        ends_ms=ends_ms,
    )
    (made,) = Suppressions.of([mark]).silences
    found = read_current_alerts(settings) or []
    firing = [s.event for s in found if s.event.state == AlertState.FIRING.value and made.covers(s.event)]
    append_suppression(settings, mark)
    if output_format == "json":
        print_json({**_as_json(made, at_ms), "covers": [event.alert_id for event in firing]})
        return
    begins = "now" if made.starts_ms <= at_ms else moment(made.starts_ms)
    echo(f"Silence {mark.mark_id}, from {begins} until {moment(ends_ms)}: {_matchers(mark)}.")
    covers = "covers" if made.starts_ms <= at_ms else "would cover, if they still fire then,"
    echo(f"It {covers} {len(firing)} of the alerts that fire now{':' if firing else '.'}")
    for event in firing:
        echo(f"  {_told(event)}")


@click.command()
@click.option("--all", "show_all", is_flag=True, help="Show those that have ended too.")
@config_option
@format_option
def silences(show_all: bool, config: str | None, output_format: str) -> None:
    """Show the silences that hold or are planned. The windows of [[alerts.maintenance]] stand in headroom.toml.

    \b
    Example:  headroom alerts silences
              headroom alerts silences --all --format json
    """  # noqa: D301
    marks, at_ms = read_suppressions(read_settings(config)), now_ms()
    shown = sorted(
        (s for s in marks.silences if show_all or s.ends_ms > at_ms), key=lambda s: (s.starts_ms, s.mark.mark_id)
    )
    if output_format == "json":
        print_json([_as_json(silence, at_ms) for silence in shown])
    elif shown:
        header = ("id", "state", "alerts", "starts", "ends", "by", "note")
        print_table("", header, [_row(silence, at_ms) for silence in shown])
    elif marks.silences:
        echo(f"No silence holds or is planned; {len(marks.silences)} in all have ended (--all shows them).")
    else:
        echo("There was never a silence.")


@click.command()
@click.argument("silence_id")
@by_option
@config_option
@format_option
def unsilence(silence_id: str, by: str | None, config: str | None, output_format: str) -> None:
    """End a silence now, or call off a planned one. SILENCE_ID is an id that `headroom alerts silences` shows, or its
    beginning.

    Receivers are told within seconds of the alerts that it covered and that still fire.

    \b
    Example:  headroom alerts unsilence 8a41c0ffee123456
    """  # noqa: D301
    settings, at_ms = read_settings(config), now_ms()
    made = _silence(read_suppressions(settings).silences, silence_id, at_ms)
    mark = replace(_mark(SuppressionAction.UNSILENCE, by, ""), mark_id=made.mark.mark_id)
    append_suppression(settings, mark)
    if output_format == "json":
        print_json(_as_json(replace(made, ends_ms=mark.mark_ms), mark.mark_ms))
        return
    what = "Called off" if made.starts_ms > at_ms else "Ended"
    echo(f"{what} silence {mark.mark_id}: {_matchers(made.mark)}. It was until {moment(made.ends_ms)}.")


def _mark(action: SuppressionAction, by: str | None, note: str) -> SuppressionRecord:
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
    # A user that is a number alone, as in containers; which of the two depends on the version of Python.
    except (OSError, KeyError):
        raise HeadroomError("--by", "is needed, for this user has no name", "Give it: --by NAME.") from None


def _standing(found: Sequence[CurrentAlert], alert_id: str) -> CurrentAlert:
    """Return the one alert that stands and whose id begins so.

    Raises:
        HeadroomError: there is none, or more than one.
    """
    subject, remedy = f"alert {alert_id}", "See `headroom alerts` for the ids of those that stand."
    begins = _beginning(found, alert_id, lambda alert: alert.event.alert_id)
    standing = [alert for alert in begins if alert.stands]
    if not standing and begins:
        raise HeadroomError(subject, "is resolved, so there is nothing to acknowledge", remedy)
    return _one(standing, subject, remedy, lambda alert: alert.event.alert_id)


def _silence(made: Sequence[Silence], silence_id: str, at_ms: int) -> Silence:
    """Return the one silence that has not ended and whose id begins so.

    Raises:
        HeadroomError: there is none, or more than one.
    """
    subject, remedy = f"silence {silence_id}", "See `headroom alerts silences` for the ids of those that hold."
    begins = _beginning(made, silence_id, lambda silence: silence.mark.mark_id)
    cached_frames = [silence for silence in begins if silence.ends_ms > at_ms]
    if not cached_frames and begins:
        raise HeadroomError(subject, f"has ended at {moment(begins[-1].ends_ms)}", remedy)
    return _one(cached_frames, subject, remedy, lambda silence: silence.mark.mark_id)


def _beginning(found: Sequence[T], beginning: str, id_of: Callable[[T], str]) -> list[T]:
    return [one for one in found if beginning and id_of(one).startswith(beginning)]


def _one(found: Sequence[T], subject: str, remedy: str, id_of: Callable[[T], str]) -> T:
    if not found:
        raise HeadroomError(subject, "is not there", remedy)
    if len(found) > 1:
        ids = ", ".join(sorted(id_of(one) for one in found))
        raise HeadroomError(subject, f"may be any of {ids}", "Give more of the id.")
    return found[0]


def _told(event: AlertEvent) -> str:
    return f"{event.alert_id} {event.severity} {event.kind}, cluster {event.cluster}, {event.subject}"


def _matchers(mark: SuppressionRecord) -> str:
    named = {"cluster": mark.cluster, "kind": mark.kind, "subject": mark.subject}
    return ", ".join(f"{name} {value}" for name, value in named.items() if value is not None)


def _state(silence: Silence, at_ms: int) -> str:
    if silence.ends_ms <= at_ms:
        return "ended"
    return "planned" if silence.starts_ms > at_ms else "holds"


def _as_json(silence: Silence, at_ms: int) -> dict[str, Any]:
    mark = silence.mark
    told = {name: getattr(mark, name) for name in ("mark_id", "cluster", "kind", "subject")}
    times = {"starts_ms": silence.starts_ms, "ends_ms": silence.ends_ms}
    said = {"by": mark.by, "note": mark.note, "mark_ms": mark.mark_ms}
    return {**told, "state": _state(silence, at_ms), **times, **said}


def _row(silence: Silence, at_ms: int) -> tuple[str, ...]:
    mark, state = silence.mark, _state(silence, at_ms)
    rest = f" (in {duration((silence.ends_ms - at_ms) / 1000)})" if state == "holds" else ""
    ends = f"{moment(silence.ends_ms)}{rest}"
    return mark.mark_id, state, _matchers(mark), moment(silence.starts_ms), ends, mark.by, mark.note

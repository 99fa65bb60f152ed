"""Output of acknowledgements and silences, as text and as JSON."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Any

from headroom.alerts.delivery.suppression import Silence, SuppressionRecord
from headroom.cli.alerts.suppressing import Acknowledged, CreatedSilence, EndedSilence, SilenceList
from headroom.cli.common.output import echo, print_table
from headroom.schemas.alerts import AlertEvent
from headroom.schemas.text.amounts import duration_text, moment_text

# Subject of alerts on a broker as a whole.
_BROKER = re.compile(r"broker \d+")


def print_acknowledged(done: Acknowledged) -> None:
    """Print an acknowledgement, and what it means for receivers."""
    echo(f"Acknowledged by {done.record.by}: {_describe_event(done.event)}.")
    echo("Receivers get no update of it until its severity rises or it escalates; they still get its resolution.")


def print_created(created: CreatedSilence) -> None:
    """Print a new silence, and the alerts that fire now and match."""
    silence, record, firing = created.silence, created.silence.record, created.firing
    now = silence.starts_ms <= created.at_ms
    begins = "now" if now else moment_text(silence.starts_ms)
    echo(f"Silence {record.mark_id}, from {begins} until {moment_text(silence.ends_ms)}: {_matchers(record)}.")
    matches = "matches" if now else "would match, if they still fire then,"
    echo(f"It {matches} {len(firing)} of the alerts that fire now{':' if firing else '.'}")
    for event in firing:
        echo(f"  {_describe_event(event)}")
    if record.subject is not None and _BROKER.fullmatch(record.subject):
        # Who is about to restart a broker would be called for its throttles.
        echo(f'Alerts on its throttles have other subjects, and are matched by --subject "{record.subject} as *".')


def created_json(created: CreatedSilence) -> dict[str, Any]:
    """Return a new silence as a JSON object; ``covers`` are the ids of the alerts that fire now and match."""
    return {**_silence_json(created.silence, created.at_ms), "covers": [event.alert_id for event in created.firing]}


def print_silences(silences: SilenceList) -> None:
    """Print silences as a table, or why there are none to show."""
    if silences.shown:
        header = ("id", "state", "alerts", "starts", "ends", "by", "note")
        print_table("", header, [_row(silence, silences.at_ms) for silence in silences.shown])
    elif silences.total:
        echo(f"No silence is active or planned; {silences.total} in all have ended (--all shows them).")
    else:
        echo("No silence was ever created.")


def silences_json(silences: SilenceList) -> list[dict[str, Any]]:
    """Return silences as a JSON array; ``state`` is planned, holds or ended."""
    return [_silence_json(silence, silences.at_ms) for silence in silences.shown]


def print_ended(ended: EndedSilence) -> None:
    """Print which silence was ended or cancelled, and until when it was."""
    silence, record = ended.before, ended.before.record
    done = "Cancelled" if silence.starts_ms > ended.at_ms else "Ended"
    echo(f"{done} silence {record.mark_id}: {_matchers(record)}. It was until {moment_text(silence.ends_ms)}.")


def ended_json(ended: EndedSilence) -> dict[str, Any]:
    """Return the silence as a JSON object, with its new end."""
    return _silence_json(replace(ended.before, ends_ms=ended.ended_ms), ended.ended_ms)


def _describe_event(event: AlertEvent) -> str:
    return f"{event.alert_id} {event.severity} {event.kind}, cluster {event.cluster}, {event.subject}"


def _matchers(record: SuppressionRecord) -> str:
    matchers = {"cluster": record.cluster, "kind": record.kind, "subject": record.subject}
    return ", ".join(f"{name} {value}" for name, value in matchers.items() if value is not None)


def _state(silence: Silence, at_ms: int) -> str:
    if silence.ends_ms <= at_ms:
        return "ended"
    return "planned" if silence.starts_ms > at_ms else "holds"


def _silence_json(silence: Silence, at_ms: int) -> dict[str, Any]:
    record = silence.record
    matchers = {name: getattr(record, name) for name in ("mark_id", "cluster", "kind", "subject")}
    times = {"starts_ms": silence.starts_ms, "ends_ms": silence.ends_ms}
    author = {"by": record.by, "note": record.note, "mark_ms": record.mark_ms}
    return {**matchers, "state": _state(silence, at_ms), **times, **author}


def _row(silence: Silence, at_ms: int) -> tuple[str, ...]:
    record, state = silence.record, _state(silence, at_ms)
    remaining = f" (in {duration_text((silence.ends_ms - at_ms) / 1000)})" if state == "holds" else ""
    ends = f"{moment_text(silence.ends_ms)}{remaining}"
    return record.mark_id, state, _matchers(record), moment_text(silence.starts_ms), ends, record.by, record.note

"""What receivers of alerts have not got, from ``alerts/events`` and ``alerts/deliveries``, without Spark."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

from alerts.delivery.delivery_log import Backlog, event_order
from alerts.delivery.queue import DeliveryQueue
from alerts.text.formatting import clock
from cli.common.output import echo, print_json, print_table
from schemas.alerts import AlertEvent
from schemas.config import Settings
from schemas.tables import ALERT_DELIVERIES, ALERT_EVENTS
from streaming.delta.query_table import query_all
from streaming.tables.suppression_rows import now_ms, read_suppressions
from streaming.tables.undelivered import backlog_from, events_sql, steps_sql, without_deliveries


@dataclass(frozen=True)
class Undelivered:
    """An event that a receiver has not got.

    Attributes:
        receiver: its name.
        event: the event.
        attempts: attempts so far.
        answer: what was last said, or why nothing was heard; empty: nothing was tried.
    """

    receiver: str
    event: AlertEvent
    attempts: int
    answer: str


def undelivered(settings: Settings) -> list[Undelivered]:
    """Return what each receiver has not got, in the order of the events, without what a silence keeps back.

    Raises:
        HeadroomError: a table cannot be read.
    """
    names = settings.notify.receivers()
    if not names:
        return []
    backlog, marks, at_ms = _backlog(settings, names), read_suppressions(settings), now_ms()
    found = []
    for name in names:
        # As the watch would take it up if it started now.
        lane = DeliveryQueue(name, settings.notify, lambda: 0.0)
        lane.mark(marks)
        lane.restore(backlog)
        lane.muted()
        owed = sorted(lane.owed(at_ms), key=lambda one: event_order(one.event))
        found += [Undelivered(name, one.event, one.attempts, one.answer) for one in owed]
    return found


def _backlog(settings: Settings, names: list[str]) -> Backlog:
    both = {"events": ALERT_EVENTS.path, "deliveries": ALERT_DELIVERIES.path}
    steps = query_all(settings.store.path, both, steps_sql(names))
    if steps is None:
        alone = {"events": ALERT_EVENTS.path}
        events = query_all(settings.store.path, alone, without_deliveries(events_sql(names)))
    else:
        events = query_all(settings.store.path, both, events_sql(names))
    return backlog_from(events or [], steps or [])


def show_undelivered(settings: Settings, output_format: str, kind: str | None) -> None:
    """Print what each receiver has not got.

    Args:
        settings: all settings.
        output_format: text or json.
        kind: alerts of this kind only; None: of all.

    Raises:
        HeadroomError: a table cannot be read.
    """
    found = [one for one in undelivered(settings) if kind in (None, one.event.kind)]
    if output_format == "json":
        print_json([_as_json(one) for one in found])
    elif found:
        print_table("", ("receiver", "event", "alert", "attempts", "last answer"), [_row(one) for one in found])
    elif settings.notify.receivers():
        echo(f"Every receiver has every event: {', '.join(settings.notify.receivers())}.")
    else:
        echo("No receiver of alerts is configured; the sections [notify] and [notify.*] name them.")


def _as_json(one: Undelivered) -> dict[str, Any]:
    event = asdict(one.event)
    told = {name: event[name] for name in ("alert_id", "state", "kind", "severity", "cluster", "subject", "tick_ms")}
    return {"receiver": one.receiver, **told, "attempts": one.attempts, "answer": one.answer}


def _row(one: Undelivered) -> tuple[str, ...]:
    event = one.event
    what = f"{event.state} {clock(event.tick_ms)}"
    who = f"{event.alert_id} {event.kind}, {event.cluster}, {event.subject}"
    return one.receiver, what, who, str(one.attempts), one.answer or "not tried yet"

"""Undelivered alert events, from ``alerts/events`` and ``alerts/deliveries``, without Spark."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

from headroom.alerts.delivery.delivery_log import Backlog, event_order
from headroom.alerts.delivery.queue import DeliveryQueue
from headroom.cli.common.output import echo, print_table
from headroom.schemas.alerts import AlertEvent
from headroom.schemas.config import Settings
from headroom.schemas.tables import ALERT_DELIVERIES, ALERT_EVENTS
from headroom.schemas.text.amounts import clock_text
from headroom.streaming.clock import now_ms
from headroom.streaming.delta.query_table import query_all
from headroom.streaming.tables.suppression_rows import read_suppressions
from headroom.streaming.tables.undelivered import (
    attempts_sql,
    backlog_from,
    events_sql,
    receivers_sql,
    without_deliveries,
)


@dataclass(frozen=True)
class Undelivered:
    """An event that a receiver has not accepted yet.

    Attributes:
        receiver: name of the receiver.
        event: the event.
        attempts: number of delivery attempts so far.
        answer: the receiver's last response, or the last connection error; empty before the first attempt.
    """

    receiver: str
    event: AlertEvent
    attempts: int
    answer: str


def read_undelivered(settings: Settings) -> list[Undelivered] | None:
    """Return each receiver's undelivered events in event order, without silenced ones; None if no event is stored.

    Raises:
        HeadroomError: a table cannot be read.
    """
    names = settings.notify.receivers()
    if not names:
        return []
    backlog = _backlog(settings, names)
    if backlog is None:
        return None
    suppressions, at_ms = read_suppressions(settings), now_ms()
    undelivered = []
    for name in names:
        # The same queue that a watch would restore if it started now.
        queue = DeliveryQueue(name, settings.notify, lambda: 0.0)
        queue.update_suppressions(suppressions)
        queue.restore(backlog)
        queue.take_muted()
        pending = sorted(queue.undelivered_events(at_ms), key=lambda one: event_order(one.event))
        undelivered += [Undelivered(name, one.event, one.attempts, one.answer) for one in pending]
    return undelivered


def _backlog(settings: Settings, names: list[str]) -> Backlog | None:
    """Return what the tables have of deliveries to some receivers; None if the table of events does not exist."""
    tables = {"events": ALERT_EVENTS.path, "deliveries": ALERT_DELIVERIES.path}
    attempts = query_all(settings.store.path, tables, attempts_sql(names))
    if attempts is None:
        # No attempt was made yet, so that the table of deliveries does not exist.
        events_only = {"events": ALERT_EVENTS.path}
        events = query_all(settings.store.path, events_only, without_deliveries(events_sql(names)))
        return None if events is None else backlog_from(events, [], [])
    events = query_all(settings.store.path, tables, events_sql(names))
    receivers = query_all(settings.store.path, tables, receivers_sql())
    return None if events is None else backlog_from(events, attempts, receivers or [])


def print_undelivered(settings: Settings, undelivered: Sequence[Undelivered], others: int = 0) -> None:
    """Print the undelivered events as a table, or why there are none.

    Args:
        settings: all settings.
        undelivered: the undelivered events to show.
        others: number of undelivered events that are not shown, because their alerts are of another kind.
    """
    if undelivered:
        print_table("", ("receiver", "event", "alert", "attempts", "last answer"), [_row(one) for one in undelivered])
    elif others:
        echo(f"No event of this kind is undelivered; {others} of other kinds are (shown without --kind).")
    elif settings.notify.receivers():
        echo(f"Every receiver has every event: {', '.join(settings.notify.receivers())}.")
    else:
        echo("No receiver of alerts is configured; the sections [notify] and [notify.*] name them.")


def undelivered_json(undelivered: Sequence[Undelivered]) -> list[dict[str, Any]]:
    """Return the undelivered events as a JSON array."""
    return [_as_json(one) for one in undelivered]


def _as_json(one: Undelivered) -> dict[str, Any]:
    event = asdict(one.event)
    columns = ("alert_id", "state", "kind", "severity", "cluster", "subject", "tick_ms")
    shown = {name: event[name] for name in columns}
    return {"receiver": one.receiver, **shown, "attempts": one.attempts, "answer": one.answer}


def _row(one: Undelivered) -> tuple[str, ...]:
    event = one.event
    change = f"{event.state} {clock_text(event.tick_ms)}"
    alert = f"{event.alert_id} {event.kind}, {event.cluster}, {event.subject}"
    return one.receiver, change, alert, str(one.attempts), one.answer or "not tried yet"

"""The events that a watch stored, and how often they announce what was known."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence

from cli.tables import query
from schemas.findings import AlertEvent, Kind, Severity, State
from schemas.tables import ALERT_EVENTS

News = Callable[[AlertEvent, AlertEvent], bool]


def stored_events(store: str) -> list[AlertEvent]:
    """Return the rows of ``alerts/events``; none while there is no such table.

    Raises:
        HeadroomError: the table is there but cannot be read.
    """
    rows = query(store, ALERT_EVENTS.path, "SELECT * FROM data") or []
    return [AlertEvent(**{name: row[name] for name in AlertEvent.__dataclass_fields__}) for row in rows]


def announced_again(events: Sequence[AlertEvent], starved: int, is_news: News = lambda before, now: False) -> int:
    """Return how often was announced what was known: an alert of a cause that has one, or one that is no worse.

    Args:
        events: all that receivers are to be notified of, in order.
        starved: how often a leader was made to starve.
        is_news: whether an announcement of an alert is news after an earlier one, although the alert is no worse.
    """
    fired = [event for event in events if event.state == State.FIRING.value]
    alerts = {event.alert_id for event in fired if event.kind == Kind.THROTTLE_BELOW_LEADER_WRITE.value}
    again, known = max(0, len(alerts) - starved), dict[str, AlertEvent]()
    for event in fired:
        before = known.get(event.alert_id)
        again += before is not None and not _is_worse(before, event) and not is_news(before, event)
        known[event.alert_id] = event
    return again


def _is_worse(before: AlertEvent, now: AlertEvent) -> bool:
    """Return whether an alert has become graver, or needs a greater throttle than it did."""
    (rank, throttle), (rank_now, throttle_now) = _gravity(before), _gravity(now)
    return rank_now < rank or throttle_now > throttle


def _gravity(event: AlertEvent) -> tuple[int, float]:
    return Severity(event.severity).rank, json.loads(event.recommendation).get("throttle_bytes_per_s") or 0.0

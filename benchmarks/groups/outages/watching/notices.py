"""Alert events of a watch, from its table and its output, and their notifications at the receivers."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from alerts.announcement import announcement_of
from alerts.delivery.delivery_log import event_key, notifiable
from benchmarks.fixtures.receivers.alert_events import announced_again, stored_events
from benchmarks.fixtures.receivers.receiver_process import Receivers
from benchmarks.fixtures.receivers.recording_receivers import lost_and_doubled
from benchmarks.groups.outages.watching.live import LiveWatch
from schemas.alerts import AlertEvent, AlertKind, AlertState
from schemas.errors import HeadroomError

_FIRED = AlertState.FIRING.value
_RESOLVED = AlertState.RESOLVED.value


@dataclass(frozen=True)
class Count:
    """Notifications so far.

    Attributes:
        keys: keys of all events for receivers.
        lost: number of events that a receiver does not show.
        doubled: number of events that a person sees twice.
    """

    keys: frozenset[str]
    lost: int
    doubled: int


class Notifications:
    """Events of one store, from its table and from the output of its watches. Either may be unavailable.

    Args:
        store: folder of the tables.
        live: the watch.
        receivers: receivers of its notifications.
    """

    def __init__(self, store: str, live: LiveWatch, receivers: Receivers) -> None:
        self._store = store
        self._live = live
        self._receivers = receivers

    def events(self) -> list[AlertEvent]:
        """Return the events for receivers, in order."""
        stored: list[AlertEvent] = []
        # While the table cannot be read, only the output counts.
        with suppress(HeadroomError):
            stored = stored_events(self._store)
        shown = [line.event for line in self._live.lines()]
        # A stored event replaces the printed one with the same key.
        return notifiable({event_key(event): event for event in [*shown, *stored]}.values())

    def unstored(self) -> int:
        """Return the number of printed events that are not in the table.

        Raises:
            HeadroomError: the table cannot be read.
        """
        stored = {event_key(event) for event in stored_events(self._store)}
        return len({event_key(line.event) for line in self._live.lines()} - stored)

    def alerts(self, subject: str) -> set[str]:
        """Return the ids of the alerts about a leader's rate that fired."""
        return {event.alert_id for event in self._events_of(subject) if event.state == _FIRED}

    def resolved(self, subject: str) -> set[str]:
        """Return the ids of those that have resolved."""
        return {event.alert_id for event in self._events_of(subject) if event.state == _RESOLVED}

    def _events_of(self, subject: str) -> list[AlertEvent]:
        kind = AlertKind.THROTTLE_BELOW_LEADER_WRITE.value
        return [event for event in self.events() if event.kind == kind and event.subject == subject]

    def count(self, starved: int) -> Count:
        """Return the notifications so far.

        Args:
            starved: number of times a leader was throttled too low.
        """
        events = self.events()
        lost, shown_twice = lost_and_doubled(events, self._receivers.shown())
        return Count(frozenset(map(event_key, events)), lost, shown_twice + announced_again(events, starved, is_news))

    def missing(self) -> list[str]:
        """Return receiver and key of every event that a receiver does not show."""
        keys = {event_key(event) for event in self.events()}
        return [
            f"{name} {key}" for name, counts in self._receivers.shown().items() for key in sorted(keys - counts.keys())
        ]


def is_news(before: AlertEvent, now: AlertEvent) -> bool:
    """Return whether the situation or the advice has changed: a broker died, or one of the rates was raised."""
    return _state_of_alert(before) != _state_of_alert(now)


def _state_of_alert(event: AlertEvent) -> tuple[Any, ...]:
    evidence: Mapping[str, Any] = json.loads(event.evidence)
    goes_on_with = (evidence.get("goes_on_with") or {}).get("kind")
    state = evidence.get("cause"), evidence.get("group"), evidence.get("escalation"), goes_on_with
    announced = announcement_of(event)
    return *state, announced.recommendation.action, frozenset(announced.raises)


def critical(events: Sequence[AlertEvent], known: frozenset[str]) -> list[AlertEvent]:
    """Return the first critical announcement of each alert among new events.

    Args:
        events: events in order.
        known: keys of the events that are not new.
    """
    found: dict[str, AlertEvent] = {}
    for event in events:
        if event.state == _FIRED and event.severity == "critical" and event_key(event) not in known:
            found.setdefault(event.alert_id, event)
    return list(found.values())

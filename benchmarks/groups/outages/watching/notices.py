"""What a watch says of alerts, by its table and by its terminal, and what its receivers show of that."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from alerts.delivery.delivery_log import event_key, notifiable
from benchmarks.fixtures.receivers.alert_events import announced_again, stored_events
from benchmarks.fixtures.receivers.receiver_process import Receivers
from benchmarks.fixtures.receivers.recording_receivers import lost_and_doubled
from benchmarks.groups.outages.watching.live import LiveWatch
from schemas.alerts import AlertEvent, AlertKind, AlertState
from schemas.errors import HeadroomError

# What an announcement adds where it could not be kept yet is no part of the event.
_FIRED = AlertState.FIRING.value
_RESOLVED = AlertState.RESOLVED.value


@dataclass(frozen=True)
class Count:
    """What receivers were notified of so far.

    Attributes:
        keys: of all events that they are to be notified of.
        lost: how many of these a receiver does not show.
        doubled: how many a person sees twice.
    """

    keys: frozenset[str]
    lost: int
    doubled: int


class Notifications:
    """The events of one store, wherever they are seen: the table may be away, and a terminal ends with its watch.

    Args:
        store: folder of the tables.
        live: the watch.
        receivers: whom it notifies.
    """

    def __init__(self, store: str, live: LiveWatch, receivers: Receivers) -> None:
        self._store = store
        self._live = live
        self._receivers = receivers

    def events(self) -> list[AlertEvent]:
        """Return the events that receivers are to be notified of, in order."""
        stored: list[AlertEvent] = []
        # While the table cannot be read the terminal alone counts.
        with suppress(HeadroomError):
            stored = stored_events(self._store)
        shown = [line.event for line in self._live.lines()]
        return notifiable({event_key(event): event for event in [*shown, *stored]}.values())

    def unstored(self) -> int:
        """Return how many events the terminal showed that the table does not have.

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
        """Return what receivers were notified of so far.

        Args:
            starved: how often a leader was made to starve.
        """
        events = self.events()
        lost, shown_twice = lost_and_doubled(events, self._receivers.shown())
        return Count(frozenset(map(event_key, events)), lost, shown_twice + announced_again(events, starved, is_news))

    def missing(self) -> list[str]:
        """Return receiver and key of every event that a receiver does not show."""
        keys = {event_key(event) for event in self.events()}
        return [f"{name} {key}" for name, seen in self._receivers.shown().items() for key in sorted(keys - seen.keys())]


def is_news(before: AlertEvent, now: AlertEvent) -> bool:
    """Return whether an alert has become another matter since it was announced, as when its broker died."""
    return _state_of_alert(before) != _state_of_alert(now)


def _state_of_alert(event: AlertEvent) -> tuple[Any, ...]:
    evidence: Mapping[str, Any] = json.loads(event.evidence)
    goes_on_with = (evidence.get("goes_on_with") or {}).get("kind")
    action = json.loads(event.recommendation).get("action")
    return evidence.get("cause"), evidence.get("group"), evidence.get("escalation"), goes_on_with, action


def critical(events: Sequence[AlertEvent], known: frozenset[str]) -> list[AlertEvent]:
    """Return the first critical announcement of each alert that has one, of those whose events are new.

    Args:
        events: in order.
        known: keys of the events that are not new.
    """
    found: dict[str, AlertEvent] = {}
    for event in events:
        if event.state == _FIRED and event.severity == "critical" and event_key(event) not in known:
            found.setdefault(event.alert_id, event)
    return list(found.values())

"""Log of delivery attempts, and the delivery status that follows from it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Protocol

from headroom.schemas.alerts import AlertEvent, AlertState


class AttemptState(str, Enum):
    """State of a delivery attempt."""

    SENDING = "sending"
    DELIVERED = "delivered"
    FAILED = "failed"
    DROPPED = "dropped"
    SILENCED = "silenced"


# Final states: an event with one of these needs no further attempt.
SETTLED = (AttemptState.DELIVERED.value, AttemptState.DROPPED.value, AttemptState.SILENCED.value)


@dataclass(frozen=True)
class DeliveryAttempt:
    """One step in the delivery of an event to a receiver: a row of ``alerts/deliveries``."""

    receiver: str
    event_key: str
    alert_id: str
    cluster: str
    state: str
    attempt: int
    answer: str
    reference: str
    delivery_ms: int


@dataclass(frozen=True)
class Backlog:
    """Stored events and delivery attempts of alerts that fire or have undelivered events.

    Attributes:
        events: every event of these alerts, except pending ones.
        records: every attempt to deliver them.
        receivers: names of all receivers with a stored attempt, also of other alerts; None if unknown. A receiver that
            is not among them is new.
    """

    events: Sequence[AlertEvent] = ()
    records: Sequence[DeliveryAttempt] = ()
    receivers: frozenset[str] | None = None


class DeliveryLog(Protocol):
    """Storage of delivery attempts; several threads use it concurrently."""

    def append(self, records: Sequence[DeliveryAttempt]) -> None:
        """Append records; they are durable when this returns."""

    def backlog(self, receivers: Sequence[str]) -> Backlog:
        """Return the stored alerts that fire or have events not delivered to one of these receivers."""


@dataclass
class DeliveryStatus:
    """Delivery status of one event and one receiver.

    Attributes:
        settled: whether no further attempt is needed.
        silenced: whether a silence or an acknowledgement suppressed it.
        attempts: number of attempts so far.
        answer: last answer of the receiver.
        reference: data that later messages on the alert need, JSON.
    """

    settled: bool = False
    silenced: bool = False
    attempts: int = 0
    answer: str = ""
    reference: str = ""


def event_key(event: AlertEvent) -> str:
    """Return the permanent key of an event: ``alert_id/tick_ms/state``."""
    return f"{event.alert_id}/{event.tick_ms}/{event.state}"


def delivery_status(receiver: str, records: Iterable[DeliveryAttempt]) -> dict[str, DeliveryStatus]:
    """Return the delivery status by event key for one receiver; the records may be in any order."""
    statuses: dict[str, DeliveryStatus] = {}
    for record in sorted((s for s in records if s.receiver == receiver), key=lambda s: (s.delivery_ms, s.attempt)):
        known = statuses.setdefault(record.event_key, DeliveryStatus())
        known.settled = known.settled or record.state in SETTLED
        known.silenced = known.silenced or record.state == AttemptState.SILENCED.value
        known.attempts = max(known.attempts, record.attempt)
        known.answer = record.answer or known.answer
        known.reference = record.reference or known.reference
    return statuses


def event_order(event: AlertEvent) -> tuple[int, bool]:
    """Return the sort key of events: time, and resolved events last within a tick."""
    return event.tick_ms, event.state == AlertState.RESOLVED.value


def notifiable(events: Iterable[AlertEvent]) -> list[AlertEvent]:
    """Return the events that receivers are notified of, in order: firing, and resolved after firing."""
    ordered = sorted(events, key=event_order)
    fired = {e.alert_id for e in ordered if e.state == AlertState.FIRING.value}
    return [e for e in ordered if e.state != AlertState.PENDING.value and e.alert_id in fired]

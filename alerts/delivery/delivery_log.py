"""The log of deliveries: what was about to be sent, what arrived, what did not, and what is therefore still owed."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Protocol

from schemas.alerts import AlertEvent, AlertState


class AttemptState(str, Enum):
    """What a step of a delivery says."""

    SENDING = "sending"
    DELIVERED = "delivered"
    FAILED = "failed"
    DROPPED = "dropped"
    SILENCED = "silenced"


# Nothing more is to be done for an event after one of these.
SETTLED = (AttemptState.DELIVERED.value, AttemptState.DROPPED.value, AttemptState.SILENCED.value)


@dataclass(frozen=True)
class DeliveryAttempt:
    """One step in the delivery of one event to one receiver: a row of ``alerts/deliveries``, whose table tells more."""

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
    """What the tables say of alerts that fire, or of which a receiver is still owed an event.

    Attributes:
        events: every event of these alerts but the pending ones.
        records: every step of their deliveries.
    """

    events: Sequence[AlertEvent] = ()
    records: Sequence[DeliveryAttempt] = ()


class DeliveryLog(Protocol):
    """Where steps are kept; used by several threads at once."""

    def append(self, records: Sequence[DeliveryAttempt]) -> None:
        """Keep steps; they are durable when this returns."""

    def backlog(self, receivers: Sequence[str]) -> Backlog:
        """Return what is kept of alerts that fire, or of which one of these receivers is still owed an event."""


@dataclass
class DeliveryStatus:
    """What the steps say of one event and one receiver.

    Attributes:
        settled: whether nothing more is to be done.
        silenced: whether that is so because of a silence or an acknowledgement.
        attempts: attempts so far.
        answer: what was last said.
        reference: what later messages need.
    """

    settled: bool = False
    silenced: bool = False
    attempts: int = 0
    answer: str = ""
    reference: str = ""


def event_key(event: AlertEvent) -> str:
    """Return what an event is known by for ever: ``alert_id/tick_ms/state``."""
    return f"{event.alert_id}/{event.tick_ms}/{event.state}"


def delivery_status(receiver: str, records: Iterable[DeliveryAttempt]) -> dict[str, DeliveryStatus]:
    """Return by event key what the steps say of one receiver; they may come in any order."""
    found: dict[str, DeliveryStatus] = {}
    for record in sorted((s for s in records if s.receiver == receiver), key=lambda s: (s.delivery_ms, s.attempt)):
        known = found.setdefault(record.event_key, DeliveryStatus())
        known.settled = known.settled or record.state in SETTLED
        known.silenced = known.silenced or record.state == AttemptState.SILENCED.value
        known.attempts = max(known.attempts, record.attempt)
        known.answer = record.answer or known.answer
        known.reference = record.reference or known.reference
    return found


def event_order(event: AlertEvent) -> tuple[int, bool]:
    """Return what events are sorted by."""
    return event.tick_ms, event.state == AlertState.RESOLVED.value


def notifiable(events: Iterable[AlertEvent]) -> list[AlertEvent]:
    """Return the events that receivers are told of, in order: what fires, and the end of what has fired."""
    ordered = sorted(events, key=event_order)
    fired = {e.alert_id for e in ordered if e.state == AlertState.FIRING.value}
    return [e for e in ordered if e.state != AlertState.PENDING.value and e.alert_id in fired]

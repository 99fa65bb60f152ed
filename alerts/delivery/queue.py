"""Delivery queue of one receiver: undelivered events and their due times. Pure, with the time as an argument.

Events of one alert are delivered in order, so a failed event delays the later ones of its alert, but no other alert. A
``Retry-After`` of the receiver delays all alerts.

Which events wait for the end of a suppression, and which are never sent, is decided by
``alerts.delivery.notification_policy``.
"""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace

from headroom.alerts.delivery.delivery_log import Backlog, delivery_status, event_key, event_order, notifiable
from headroom.alerts.delivery.notification_policy import NotificationPolicy, PendingEvent
from headroom.alerts.delivery.receiver import DeliveryError, Receipt
from headroom.alerts.delivery.suppression import Suppressions
from headroom.schemas.alerts import AlertEvent, AlertState, Severity
from headroom.schemas.config import NotifySettings

# Most alerts in one digest; more would exceed the size of a message.
_DIGEST_MOST = 100


@dataclass(frozen=True)
class DeliveryBatch:
    """Events to deliver now: one event, or the first events of several alerts as a digest.

    Attributes:
        pending: events.
        before: reference of the last delivery for the alert; empty for a digest.
    """

    pending: Sequence[PendingEvent]
    before: str = ""

    @property
    def may_have_arrived(self) -> bool:
        """Return whether an earlier attempt may have arrived."""
        return any(one.may_have_arrived for one in self.pending)


class DeliveryQueue:
    """Delivery queue of one receiver.

    Args:
        receiver: name of the receiver.
        settings: section ``[notify]``, with the retry behaviour.
        jitter: returns a number from 0 to 1, so that events that fail together are not retried together.
        digest_after: number of alerts that may start together without a digest; None for no digests.
    """

    def __init__(
        self, receiver: str, settings: NotifySettings, jitter: Callable[[], float], digest_after: int | None = None
    ) -> None:
        self.receiver = receiver
        self._settings = settings
        self._jitter = jitter
        self._digest_after = digest_after
        self._queues: dict[str, deque[PendingEvent]] = {}
        self._policy = NotificationPolicy(least_severity=Severity(settings.least_severity))
        # By id, alerts that have fired and are not resolved: last delivered event, and its reference.
        self._fired: dict[str, AlertEvent | None] = {}
        self._references: dict[str, str] = {}
        # By alert, the keys of all accepted events, because an event may be added twice.
        self._known_keys: dict[str, set[str]] = defaultdict(set)
        self._wait_until_ms: dict[str, int] = {}
        self._retry_after_ms = 0
        # Events of alerts that were over before the receiver was configured.
        self._of_the_past: list[PendingEvent] = []

    def update_suppressions(self, suppressions: Suppressions) -> None:
        """Set the silences, maintenance windows and acknowledgements in force."""
        self._policy = replace(self._policy, suppressions=suppressions)

    def undelivered_events(self, now_ms: int) -> list[PendingEvent]:
        """Return undelivered events, without those that wait for the end of a suppression."""
        return [p for i, queue in self._queues.items() if self._suppressed_until_ms(i, now_ms) is None for p in queue]

    def restore(self, backlog: Backlog) -> None:
        """Restore the queue from the stored backlog, before any event is added.

        A new receiver is notified of alerts that still fire. It would take those of the past for current ones.
        """
        known = delivery_status(self.receiver, backlog.records)
        is_new = backlog.receivers is not None and self.receiver not in backlog.receivers
        over = {e.alert_id for e in backlog.events if is_new and e.state == AlertState.RESOLVED.value}
        for event in notifiable(backlog.events):
            if event.alert_id in over:
                self._of_the_past.append(PendingEvent(event))
                continue
            record = known.get(event_key(event))
            if record is not None and record.reference:
                self._references[event.alert_id] = record.reference
            if record is not None and record.settled:
                self._known_keys[event.alert_id].add(event_key(event))
                self._fire(event)
                self._note_outcome(event, not record.silenced)
            elif record is not None:
                self._enqueue(PendingEvent(event, record.attempts, True, record.answer))
            else:
                self._enqueue(PendingEvent(event))

    def add(self, events: Iterable[AlertEvent]) -> None:
        """Add events, except pending ones and resolutions of alerts that have never fired."""
        for event in sorted(events, key=event_order):
            if event.state != AlertState.PENDING.value:
                self._enqueue(PendingEvent(event))

    def _enqueue(self, pending: PendingEvent) -> None:
        event, key = pending.event, event_key(pending.event)
        self._fire(event)
        if event.alert_id in self._fired and key not in self._known_keys[event.alert_id]:
            self._known_keys[event.alert_id].add(key)
            self._queues.setdefault(event.alert_id, deque()).append(pending)

    def _fire(self, event: AlertEvent) -> None:
        if event.state == AlertState.FIRING.value:
            self._fired.setdefault(event.alert_id, None)

    def notified_alerts(self) -> list[tuple[AlertEvent, str]]:
        """Return the last delivered event of each firing alert, with its reference."""
        return [(event, self._references.get(alert_id, "")) for alert_id, event in self._fired.items() if event]

    def due(self, now_ms: int) -> DeliveryBatch | None:
        """Return the events to deliver now; None if there are none."""
        if now_ms < self._retry_after_ms:
            return None
        ready = [i for i in self._queues if self._due_ms(i, now_ms) <= now_ms]
        if not ready:
            return None
        beginnings = [i for i in ready if not self._is_notified(i) and self._references.get(i, "") == ""]
        if self._digest_after is not None and len(beginnings) > self._digest_after:
            return DeliveryBatch([self._queues[i][0] for i in beginnings[:_DIGEST_MOST]])
        return DeliveryBatch([self._queues[ready[0]][0]], self._references.get(ready[0], ""))

    def next_ms(self, now_ms: int) -> int | None:
        """Return when the next event becomes due or may be dropped, epoch milliseconds; None if the queue is empty."""
        times = [self._due_ms(i, now_ms) for i in self._queues]
        return max(self._retry_after_ms, min(times)) if times else None

    def _due_ms(self, alert_id: str, now_ms: int) -> int:
        return max(self._wait_until_ms.get(alert_id, 0), self._suppressed_until_ms(alert_id, now_ms) or 0)

    def _suppressed_until_ms(self, alert_id: str, now_ms: int) -> int | None:
        return self._policy.wait_until_ms(self._queues[alert_id], self._is_notified(alert_id), now_ms)

    def _is_notified(self, alert_id: str) -> bool:
        """Return whether the receiver was notified of an alert."""
        return self._fired.get(alert_id) is not None

    def record_delivery(self, pending: PendingEvent, receipt: Receipt) -> str:
        """Record a delivery, and return the reference for later events of the alert."""
        alert_id = pending.event.alert_id
        if receipt.reference:
            self._references[alert_id] = receipt.reference
        reference = self._references.get(alert_id, "")
        self._remove(pending)
        return reference

    def record_failure(self, batch: DeliveryBatch, error: DeliveryError, now_ms: int) -> None:
        """Record a failed attempt and schedule the next one; the events of a digest stay together."""
        for pending in batch.pending:
            pending.attempts += 1
            pending.may_have_arrived = pending.may_have_arrived or not error.unsent
            pending.answer = error.answer
        wait_s = self._backoff_s(max(one.attempts for one in batch.pending))
        for pending in batch.pending:
            self._wait_until_ms[pending.event.alert_id] = now_ms + round(wait_s * 1000)
        if error.retry_after_s is not None:
            self._retry_after_ms = max(self._retry_after_ms, now_ms + round(error.retry_after_s * 1000))

    def shift(self, step_ms: int) -> None:
        """Shift all due times after this machine's clock was set by ``step_ms`` milliseconds."""
        self._wait_until_ms = {alert_id: at_ms + step_ms for alert_id, at_ms in self._wait_until_ms.items()}
        self._retry_after_ms += step_ms

    def _backoff_s(self, attempts: int) -> float:
        doublings = min(attempts - 1, 30)
        wait_s = min(self._settings.retry_max_s, self._settings.retry_s * 2**doublings)
        # Jitter: between half of the wait and all of it.
        return wait_s * (0.5 + 0.5 * self._jitter())

    def take_expired(self, now_ms: int) -> list[PendingEvent]:
        """Remove and return the events of alerts that resolved longer than ``give_up_s`` ago."""
        before_ms = now_ms - self._settings.give_up_s * 1000
        ends = [queue[-1].event for queue in self._queues.values()]
        gone = [e.alert_id for e in ends if e.state == AlertState.RESOLVED.value and e.event_ms < before_ms]
        expired = [pending for alert_id in gone for pending in self._queues[alert_id]]
        for pending in expired:
            self._remove(pending)
        return expired

    def take_muted(self) -> list[PendingEvent]:
        """Remove and return the events that are never sent.

        They are suppressed or acknowledged, or of alerts that were over before the receiver was configured.
        """
        of_the_past, self._of_the_past = self._of_the_past, []
        muted = [
            p for i, queue in self._queues.items() for p in self._policy.events_to_drop(queue, self._is_notified(i))
        ]
        for pending in muted:
            self._remove(pending, notified=False)
        return [*of_the_past, *muted]

    def _remove(self, pending: PendingEvent, notified: bool = True) -> None:
        alert_id = pending.event.alert_id
        self._queues[alert_id].remove(pending)
        # A muted event does not change when the receiver may be contacted again.
        if notified or not self._queues[alert_id]:
            self._wait_until_ms.pop(alert_id, None)
        if not self._queues[alert_id]:
            del self._queues[alert_id]
        self._note_outcome(pending.event, notified)

    def _note_outcome(self, event: AlertEvent, notified: bool) -> None:
        if event.state == AlertState.RESOLVED.value:
            self._fired.pop(event.alert_id, None)
            self._references.pop(event.alert_id, None)
            self._known_keys.pop(event.alert_id, None)
        elif notified:
            self._fired[event.alert_id] = event

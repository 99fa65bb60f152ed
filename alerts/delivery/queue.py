"""What one receiver is still to be told, and when: pure, with the time as an argument.

Events of one alert go in order, so an alert whose first event fails waits with all of them; other alerts do not. What a
receiver said of its pace holds for all.

An alert that is covered, by a silence or a maintenance window, waits with its events until the cover ends. What then
need not be told is settled by the times of the events, not by the time now: so it comes to the same after a crash. What
may have arrived already is told to its end, covered or not.
"""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from alerts.delivery.delivery_log import Backlog, delivery_status, event_key, event_order, notifiable
from alerts.delivery.receiver import DeliveryError, Receipt
from alerts.delivery.suppression import DAY_MS, Suppressions
from schemas.alerts import AlertEvent, AlertState, Severity
from schemas.config import NotifySettings

# What one digest names; more would outgrow a message.
_DIGEST_MOST = 100
# As good as never: an alert that is not grave enough waits for its end, or until it is graver.
_NEVER_MS = 31 * DAY_MS


@dataclass
class PendingEvent:
    """An event that is still to be told.

    Attributes:
        event: event.
        attempts: attempts so far.
        may_have_arrived: whether one of them may have arrived.
        answer: what was last said.
    """

    event: AlertEvent
    attempts: int = 0
    may_have_arrived: bool = False
    answer: str = ""


@dataclass(frozen=True)
class DeliveryBatch:
    """What is to be told now: one event, or the beginnings of several alerts together.

    Attributes:
        pending: the events.
        before: reference of what the receiver was told of the alert before; of several: empty.
    """

    pending: Sequence[PendingEvent]
    before: str = ""

    @property
    def may_have_arrived(self) -> bool:
        """Return whether an earlier attempt may have arrived."""
        return any(one.may_have_arrived for one in self.pending)


class DeliveryQueue:
    """The queue of one receiver.

    Args:
        receiver: its name.
        settings: how hard it is tried.
        jitter: gives a number from 0 to 1, so that many that fail together do not come back together.
        digest_after: how many alerts may begin at once before they are told of together; None: always one by one.
    """

    def __init__(
        self, receiver: str, settings: NotifySettings, jitter: Callable[[], float], digest_after: int | None = None
    ) -> None:
        self.receiver = receiver
        self._settings = settings
        self._jitter = jitter
        self._digest_after = digest_after
        self._queues: dict[str, deque[PendingEvent]] = {}
        self._suppressions = Suppressions()
        self._least = Severity(settings.least_severity)
        # Alerts that have fired and are not resolved; by id what was last told of them, and its reference.
        self._fired: dict[str, AlertEvent | None] = {}
        self._references: dict[str, str] = {}
        # By alert the events that were ever taken, for one may be handed over twice.
        self._known_keys: dict[str, set[str]] = defaultdict(set)
        self._wait_until_ms: dict[str, int] = {}
        self._retry_after_ms = 0

    def update_suppressions(self, suppressions: Suppressions) -> None:
        """Take what holds from now on of silences, windows and acknowledgements."""
        self._suppressions = suppressions

    def undelivered(self, now_ms: int) -> list[PendingEvent]:
        """Return the events that the receiver has not got, without those that wait for the end of a cover."""
        return [p for queue in self._queues.values() if self._suppressed_until_ms(queue, now_ms) is None for p in queue]

    def restore(self, backlog: Backlog) -> None:
        """Take up what the tables say; before anything is added."""
        known = delivery_status(self.receiver, backlog.records)
        for event in notifiable(backlog.events):
            record = known.get(event_key(event))
            if record is not None and record.reference:
                self._references[event.alert_id] = record.reference
            if record is not None and record.settled:
                self._known_keys[event.alert_id].add(event_key(event))
                self._fire(event)
                self._settled(event, not record.silenced)
            elif record is not None:
                self._enqueue(PendingEvent(event, record.attempts, True, record.answer))
            else:
                self._enqueue(PendingEvent(event))

    def add(self, events: Iterable[AlertEvent]) -> None:
        """Take events; what is pending is told to nobody, nor the end of what has never fired."""
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
        """Return the last event that the receiver has got of each alert that fires for it, with the reference."""
        return [(event, self._references.get(alert_id, "")) for alert_id, event in self._fired.items() if event]

    def due(self, now_ms: int) -> DeliveryBatch | None:
        """Return what is to be told now; None: nothing is."""
        if now_ms < self._retry_after_ms:
            return None
        ready = [i for i in self._queues if self._due_ms(i, now_ms) <= now_ms]
        if not ready:
            return None
        beginnings = [i for i in ready if self._fired.get(i) is None and self._references.get(i, "") == ""]
        if self._digest_after is not None and len(beginnings) > self._digest_after:
            return DeliveryBatch([self._queues[i][0] for i in beginnings[:_DIGEST_MOST]])
        return DeliveryBatch([self._queues[ready[0]][0]], self._references.get(ready[0], ""))

    def next_ms(self, now_ms: int) -> int | None:
        """Return when the next event becomes due or may be dropped, epoch milliseconds; None: there is none."""
        times = [self._due_ms(i, now_ms) for i in self._queues]
        return max(self._retry_after_ms, min(times)) if times else None

    def _due_ms(self, alert_id: str, now_ms: int) -> int:
        return max(self._wait_until_ms.get(alert_id, 0), self._suppressed_until_ms(self._queues[alert_id], now_ms) or 0)

    def _suppressed_until_ms(self, queue: Sequence[PendingEvent], now_ms: int) -> int | None:
        """Return until when an alert waits for the end of its cover; None: it does not."""
        last = queue[-1].event
        if queue[0].may_have_arrived or (last.state == AlertState.RESOLVED.value and self._is_notified(last)):
            return None
        return (
            now_ms + _NEVER_MS
            if self._below_least_severity(last)
            else self._suppressions.suppressed_until_ms(last, now_ms)
        )

    def _below_least_severity(self, event: AlertEvent) -> bool:
        """Return whether an event's alert is not grave enough to be told of, unless it becomes graver."""
        return Severity(event.severity).rank > self._least.rank

    def _is_suppressed(self, event: AlertEvent) -> bool:
        """Return whether nobody was to be told of an alert when an event of it came."""
        return self._below_least_severity(event) or self._suppressions.is_suppressed(event, event.event_ms)

    def _is_notified(self, event: AlertEvent) -> bool:
        """Return whether the receiver has heard of an event's alert."""
        return self._fired.get(event.alert_id) is not None

    def delivered(self, pending: PendingEvent, receipt: Receipt) -> str:
        """Take note that the receiver has an event, and return the reference that holds from now on."""
        alert_id = pending.event.alert_id
        if receipt.reference:
            self._references[alert_id] = receipt.reference
        reference = self._references.get(alert_id, "")
        self._remove(pending)
        return reference

    def failed(self, batch: DeliveryBatch, error: DeliveryError, now_ms: int) -> None:
        """Take note that an attempt failed: when the next one is due, of several events for all at the same time."""
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
        """Move all times of waiting along with the clock of this machine, which was set by so many milliseconds."""
        self._wait_until_ms = {alert_id: at_ms + step_ms for alert_id, at_ms in self._wait_until_ms.items()}
        self._retry_after_ms += step_ms

    def _backoff_s(self, attempts: int) -> float:
        doublings = min(attempts - 1, 30)
        wait_s = min(self._settings.retry_max_s, self._settings.retry_s * 2**doublings)
        # From half of it to all of it.
        return wait_s * (0.5 + 0.5 * self._jitter())

    def take_expired(self, now_ms: int) -> list[PendingEvent]:
        """Return, and forget, the events of alerts that were resolved so long ago that nobody wants to hear of them."""
        before_ms = now_ms - self._settings.give_up_s * 1000
        ends = [queue[-1].event for queue in self._queues.values()]
        gone = [e.alert_id for e in ends if e.state == AlertState.RESOLVED.value and e.event_ms < before_ms]
        expired = [pending for alert_id in gone for pending in self._queues[alert_id]]
        for pending in expired:
            self._remove(pending)
        return expired

    def take_muted(self) -> list[PendingEvent]:
        """Return, and forget, the events that need not be told any more.

        These are updates of an acknowledged alert; both ends of an alert that came to its end while it was covered,
        before the receiver heard of it; and while it was covered, all but the newest that tells that it fires.
        """
        muted = [pending for queue in self._queues.values() for pending in self._muted(queue)]
        for pending in muted:
            self._remove(pending, notified=False)
        return muted

    def _muted(self, queue: Sequence[PendingEvent]) -> list[PendingEvent]:
        last = queue[-1].event
        heard = queue[0].may_have_arrived or self._is_notified(last)
        ended_covered = last.state == AlertState.RESOLVED.value and self._is_suppressed(last)
        newest = next((p for p in reversed(queue) if p.event.state == AlertState.FIRING.value), None)

        def is_muted(one: PendingEvent) -> bool:
            if one.may_have_arrived:
                return False
            if one.event.state == AlertState.RESOLVED.value:
                return ended_covered and not heard
            return (
                ended_covered
                or (heard and self._suppressions.acknowledgement(one.event) is not None)
                or (one is not newest and self._is_suppressed(one.event))
            )

        return [one for one in queue if is_muted(one)]

    def _remove(self, pending: PendingEvent, notified: bool = True) -> None:
        alert_id = pending.event.alert_id
        self._queues[alert_id].remove(pending)
        # What is muted says nothing of when the receiver may be asked again.
        if notified or not self._queues[alert_id]:
            self._wait_until_ms.pop(alert_id, None)
        if not self._queues[alert_id]:
            del self._queues[alert_id]
        self._settled(pending.event, notified)

    def _settled(self, event: AlertEvent, notified: bool) -> None:
        if event.state == AlertState.RESOLVED.value:
            self._fired.pop(event.alert_id, None)
            self._references.pop(event.alert_id, None)
            self._known_keys.pop(event.alert_id, None)
        elif notified:
            self._fired[event.alert_id] = event

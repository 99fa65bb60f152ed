"""Which events of an alert a receiver is notified of, and when: severity, silences, windows and acknowledgements. Pure.

Whether an event is dropped follows from the times of events and suppressions alone, so that a crash changes nothing.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from headroom.alerts.delivery.suppression import DAY_MS, Suppressions
from headroom.schemas.alerts import AlertEvent, AlertState, Severity

# Practically never: an alert below the least severity waits until it resolves or becomes more severe.
_NEVER_MS = 31 * DAY_MS


@dataclass
class PendingEvent:
    """An undelivered event.

    Attributes:
        event: event.
        attempts: number of attempts so far.
        may_have_arrived: whether one of them may have arrived.
        answer: last answer of the receiver.
    """

    event: AlertEvent
    attempts: int = 0
    may_have_arrived: bool = False
    answer: str = ""

    @property
    def is_resolution(self) -> bool:
        """Return whether the event resolves its alert."""
        return self.event.state == AlertState.RESOLVED.value


@dataclass(frozen=True)
class NotificationPolicy:
    """Decides for the undelivered events of one alert: send, wait, or drop.

    An alert is suppressed by a silence, by a maintenance window, or because its severity is below the least one.

    | an alert | receivers get |
    |---|---|
    | fires during the suppression, and still fires when it ends | one notification at its end, with the state then |
    | fires and resolves during the suppression | nothing |
    | was already sent, and changes during the suppression | the newest change when it ends |
    | was already sent, and resolves during the suppression | the resolution at once |
    | fires during the suppression, and resolves after it | both |
    | was already sent, and changes while it is acknowledged | nothing, unless it becomes more severe or escalates |

    An event that may have arrived already is never dropped, and its alert does not wait: the receiver may show it.

    Attributes:
        suppressions: silences, maintenance windows and acknowledgements in force.
        least_severity: least severity that receivers are notified of.
    """

    suppressions: Suppressions = field(default_factory=Suppressions)
    least_severity: Severity = Severity.INFO

    def wait_until_ms(self, queue: Sequence[PendingEvent], is_notified: bool, now_ms: int) -> int | None:
        """Return when the first event of an alert may be sent, epoch milliseconds; None: now.

        Args:
            queue: undelivered events of the alert, oldest first; not empty.
            is_notified: whether the receiver was notified of the alert.
            now_ms: current time, epoch milliseconds.
        """
        last = queue[-1]
        if queue[0].may_have_arrived or (last.is_resolution and is_notified):
            return None
        if self._is_below_least_severity(last.event):
            return now_ms + _NEVER_MS
        return self.suppressions.suppressed_until_ms(last.event, now_ms)

    def events_to_drop(self, queue: Sequence[PendingEvent], is_notified: bool) -> list[PendingEvent]:
        """Return the events of an alert that are never sent.

        Args:
            queue: undelivered events of the alert, oldest first; not empty.
            is_notified: whether the receiver was notified of the alert.
        """
        is_notified = is_notified or queue[0].may_have_arrived
        if queue[-1].is_resolution and self._was_suppressed(queue[-1].event):
            dropped = [one for one in queue if not (one.is_resolution and is_notified)]
        else:
            newest = next((one for one in reversed(queue) if not one.is_resolution), None)
            dropped = [one for one in queue if not one.is_resolution and self._is_update(one, newest, is_notified)]
        return [one for one in dropped if not one.may_have_arrived]

    def _is_update(self, one: PendingEvent, newest: PendingEvent | None, is_notified: bool) -> bool:
        """Return whether a firing event says nothing that the receiver has to know: a later one does, or it knows."""
        acknowledged = is_notified and self.suppressions.acknowledgement(one.event) is not None
        return acknowledged or (one is not newest and self._was_suppressed(one.event))

    def _was_suppressed(self, event: AlertEvent) -> bool:
        """Return whether an event was suppressed at its own time."""
        return self._is_below_least_severity(event) or self.suppressions.is_suppressed(event, event.event_ms)

    def _is_below_least_severity(self, event: AlertEvent) -> bool:
        return Severity.of(event.severity).rank > self.least_severity.rank

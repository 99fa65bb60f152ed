"""Journal of the delivery attempts of one receiver, which keeps what the delivery log cannot take yet."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence

from headroom.alerts.delivery.delivery_log import AttemptState, DeliveryAttempt, DeliveryLog, event_key
from headroom.alerts.delivery.notification_policy import PendingEvent
from headroom.alerts.delivery.receiver import error_text
from headroom.schemas.errors import ENDINGS

log = logging.getLogger(__name__)


class AttemptJournal:
    """Writes attempts to the delivery log, in order.

    Args:
        receiver: name of the receiver.
        delivery_log: log of delivery attempts.
        clock_ms: returns the current time, epoch milliseconds.
    """

    def __init__(self, receiver: str, delivery_log: DeliveryLog, clock_ms: Callable[[], int]) -> None:
        self._receiver = receiver
        self._log = delivery_log
        self._clock_ms = clock_ms
        # Attempts that could not be written yet; they are appended with the next one.
        self._unwritten: list[DeliveryAttempt] = []
        self._without_store = False

    @property
    def has_unwritten(self) -> bool:
        """Return whether attempts wait to be written."""
        return bool(self._unwritten)

    def go_without_store(self, without: bool) -> None:
        """Set whether the delivery log cannot be written."""
        self._without_store = without

    def attempt(
        self, one: PendingEvent, state: AttemptState, attempt: int, answer: str = "", reference: str = ""
    ) -> DeliveryAttempt:
        """Return the record of an attempt.

        Args:
            one: event.
            state: state of the attempt.
            attempt: number of the attempt.
            answer: answer of the receiver.
            reference: data that later messages on the alert need.
        """
        return DeliveryAttempt(
            receiver=self._receiver,
            event_key=event_key(one.event),
            alert_id=one.event.alert_id,
            cluster=one.event.cluster,
            state=state.value,
            attempt=attempt,
            answer=answer,
            reference=reference,
            delivery_ms=self._clock_ms(),
        )

    def append(self, attempts: Sequence[DeliveryAttempt]) -> None:
        """Write attempts, after those that wait; an attempt to send must be written before it is made."""
        if self._without_store:
            # Otherwise an alert on a full disk would not be sent. After a crash such an event is sent twice.
            self._unwritten.extend(attempts)
            return
        self._log.append([*self._unwritten, *attempts])
        self._unwritten.clear()

    def append_outcome(self, attempts: Sequence[DeliveryAttempt]) -> None:
        """Write an outcome now, or with the next attempt; without it the next start has to check for arrival."""
        try:
            self.append(attempts)
        except ENDINGS:
            raise
        except BaseException as error:
            self._unwritten.extend(attempts)
            log.warning("the outcome of a delivery could not be recorded yet: %s", error_text(error))

"""Delivery thread of one receiver: sends due events and records each attempt in the delivery log."""

from __future__ import annotations

import logging
import random
import threading
from collections.abc import Callable, Sequence

from headroom.alerts.delivery.attempt_journal import AttemptJournal
from headroom.alerts.delivery.delivery_log import AttemptState, Backlog, DeliveryLog, event_key
from headroom.alerts.delivery.notification_policy import PendingEvent
from headroom.alerts.delivery.queue import DeliveryBatch, DeliveryQueue
from headroom.alerts.delivery.receiver import (
    DeliveryError,
    DigestReceiver,
    Receipt,
    Receiver,
    ResendingReceiver,
    error_text,
)
from headroom.alerts.delivery.steady_clock import SteadyClock
from headroom.alerts.delivery.suppression import Suppressions
from headroom.schemas.alerts import AlertEvent
from headroom.schemas.config import NotifySettings
from headroom.schemas.errors import ENDINGS, HeadroomError

log = logging.getLogger(__name__)

# Longest wait, because nothing wakes the thread for events that expire.
_LONGEST_WAIT_S = 30.0
# Pause after an unexpected error.
_PAUSE_S = 1.0


class Resender:
    """Sends firing alerts again at the receiver's interval, if the receiver resolves those that are not sent again.

    Args:
        receiver: receiver.
        clock_ms: returns the current time, epoch milliseconds.
    """

    def __init__(self, receiver: Receiver, clock_ms: Callable[[], int]) -> None:
        self._receiver = receiver if isinstance(receiver, ResendingReceiver) else None
        self._clock_ms = clock_ms
        self._resent_ms = clock_ms()
        self._last_error = ""

    def restore(self, alerts: Sequence[tuple[AlertEvent, str]]) -> None:
        """Restore the alerts sent before a restart: the last event of each, and its reference."""
        if self._receiver is not None:
            self._receiver.restore(alerts)

    def forget(self, alert_id: str) -> None:
        """Stop sending an alert whose resolution could not be delivered."""
        if self._receiver is not None:
            self._receiver.forget(alert_id)

    def shift(self, step_ms: int) -> None:
        """Shift the next time after this machine's clock was set by ``step_ms`` milliseconds."""
        self._resent_ms += step_ms

    def next_ms(self) -> int | None:
        """Return when alerts are sent again, epoch milliseconds; None if the receiver does not need it."""
        return None if self._receiver is None else self._resent_ms + round(self._receiver.resend_in_s * 1000)

    def is_due(self, now_ms: int) -> bool:
        """Return whether alerts have to be sent again."""
        next_ms = self.next_ms()
        return next_ms is not None and now_ms >= next_ms

    def resend_if_due(self) -> None:
        """Send all firing alerts again, if it is time."""
        if self._receiver is None or not self.is_due(self._clock_ms()):
            return
        error_now = ""
        try:
            self._receiver.resend()
        except Exception as error:
            error_now = error_text(error)
        # Logged once, because the error repeats every few seconds.
        if error_now and error_now != self._last_error:
            log.warning("firing alerts could not be re-sent to %s: %s", self._receiver.name, error_now)
        self._last_error = error_now
        self._resent_ms = self._clock_ms()


class Worker:
    """Delivers events to one receiver on its own thread.

    Args:
        receiver: receiver.
        delivery_log: log of delivery attempts.
        settings: section ``[notify]``, with the retry behaviour.
        clock_ms: returns the current time, epoch milliseconds.
        elapsed_ms: returns monotonic milliseconds.
    """

    def __init__(
        self,
        receiver: Receiver,
        delivery_log: DeliveryLog,
        settings: NotifySettings,
        clock_ms: Callable[[], int],
        elapsed_ms: Callable[[], int],
    ) -> None:
        digest_after = receiver.digest_after if isinstance(receiver, DigestReceiver) else None
        self.receiver = receiver
        self.last_delivery_ms: int | None = None
        self._queue = DeliveryQueue(receiver.name, settings, random.random, digest_after)
        self._journal = AttemptJournal(receiver.name, delivery_log, clock_ms)
        self._clock_ms = clock_ms
        self._clock = SteadyClock(clock_ms, elapsed_ms)
        self._resender = Resender(receiver, self._clock.now_ms)
        self._last_error = ""
        self._write_now = False
        self._stopping = False
        self._changed = threading.Condition()
        self._thread = threading.Thread(target=self._run, name=f"delivery to {receiver.name}", daemon=True)

    @property
    def undelivered_count(self) -> int:
        """Return the number of undelivered events, without those that wait for the end of a silence."""
        with self._changed:
            return len(self._queue.undelivered_events(self._clock.now_ms()))

    def start(self, backlog: Backlog) -> None:
        """Resume undelivered events from the backlog, and start the thread."""
        self._queue.restore(backlog)
        self._resender.restore(self._queue.notified_alerts())
        self._thread.start()

    def add(self, events: Sequence[AlertEvent]) -> None:
        """Add events to the queue and return immediately."""
        with self._changed:
            self._queue.add(events)
            self._changed.notify()

    def update_suppressions(self, suppressions: Suppressions) -> None:
        """Set the silences and acknowledgements in force and return immediately."""
        with self._changed:
            self._queue.update_suppressions(suppressions)
            self._changed.notify()

    def go_without_store(self, without: bool) -> None:
        """Set whether the delivery log cannot be written; events are then sent, and records written later."""
        with self._changed:
            self._journal.go_without_store(without)
            self._write_now = not without
            self._changed.notify()

    def ask_to_stop(self) -> None:
        """Ask the thread to stop after the current attempt."""
        with self._changed:
            self._stopping = True
            self._changed.notify()

    def join(self, timeout_s: float) -> None:
        """Wait for the current attempt; if it hangs, the next start checks whether it has arrived."""
        self._thread.join(timeout_s)

    def _run(self) -> None:
        while not self._stopping:
            try:
                self._run_once()
                self._last_error = ""
            except ENDINGS:
                raise
            # A dead thread would end all notifications of this receiver unnoticed.
            except BaseException as error:
                self._log_and_pause(error)

    def _log_and_pause(self, error: BaseException) -> None:
        """Log an unexpected error, once while it repeats, and pause."""
        error_name = type(error).__name__
        if error_name != self._last_error:
            # Without its text, which may hold a secret.
            log.error("the delivery to %s failed, and goes on: %s", self.receiver.name, error_text(error))
        self._last_error = error_name
        with self._changed:
            if not self._stopping:
                self._changed.wait(_PAUSE_S)

    def _run_once(self) -> None:
        with self._changed:
            if self._stopping:
                return
            self._follow_clock_steps()
            now_ms = self._clock.now_ms()
            muted = self._queue.take_muted()
            expired = self._queue.take_expired(now_ms)
            batch = self._queue.due(now_ms)
            write_now, self._write_now = self._write_now, False
            if not (muted or expired or batch or write_now or self._resender.is_due(now_ms)):
                self._changed.wait(self._wait_s(now_ms))
                return
        self._settle(muted, AttemptState.SILENCED)
        self._drop(expired)
        if batch is not None:
            self._send(batch)
        elif write_now and self._journal.has_unwritten:
            self._journal.append_outcome([])
        self._resender.resend_if_due()

    def _follow_clock_steps(self) -> None:
        """Shift due times if this machine's clock was set, so that waits keep their length."""
        step_ms = self._clock.step_ms()
        if step_ms:
            self._queue.shift(step_ms)
            self._resender.shift(step_ms)

    def _wait_s(self, now_ms: int) -> float:
        times = (self._queue.next_ms(now_ms), self._resender.next_ms())
        next_ms = min((t for t in times if t is not None), default=None)
        longest_s = _LONGEST_WAIT_S if next_ms is None else (next_ms - now_ms) / 1000
        return max(0.001, min(_LONGEST_WAIT_S, longest_s))

    def _send(self, batch: DeliveryBatch) -> None:
        """Send due events; a record is written before the attempt and another one with its outcome."""
        try:
            self._journal.append(
                [self._journal.attempt(p, AttemptState.SENDING, p.attempts + 1) for p in batch.pending]
            )
        except ENDINGS:
            raise
        except BaseException as error:
            self._record_failure(
                batch, DeliveryError(f"not sent: the table of deliveries: {error_text(error)}", unsent=True)
            )
            return
        try:
            receipts = self._deliver(batch)
        except Exception as error:
            # A HeadroomError is raised before anything is sent.
            other = DeliveryError(error_text(error), unsent=isinstance(error, HeadroomError))
            self._record_failure(batch, error if isinstance(error, DeliveryError) else other)
            return
        self._record_delivery(batch, receipts)

    def _deliver(self, batch: DeliveryBatch) -> list[Receipt]:
        if len(batch.pending) > 1 and isinstance(self.receiver, DigestReceiver):
            return self.receiver.deliver_together([one.event for one in batch.pending], batch.may_have_arrived)
        return [self.receiver.deliver(batch.pending[0].event, batch.before, batch.may_have_arrived)]

    def _record_delivery(self, batch: DeliveryBatch, receipts: Sequence[Receipt]) -> None:
        records = []
        with self._changed:
            for one, receipt in zip(batch.pending, receipts, strict=True):
                reference = self._queue.record_delivery(one, receipt)
                attempt = one.attempts + 1
                records.append(self._journal.attempt(one, AttemptState.DELIVERED, attempt, receipt.answer, reference))
        self.last_delivery_ms = self._clock_ms()
        self._journal.append_outcome(records)

    def _record_failure(self, batch: DeliveryBatch, error: DeliveryError) -> None:
        with self._changed:
            self._queue.record_failure(batch, error, self._clock.now_ms())
        if batch.pending[0].attempts == 1:
            log.warning("delivery to %s failed and will be retried: %s", self.receiver.name, error.answer)
        self._journal.append_outcome(
            [self._journal.attempt(one, AttemptState.FAILED, one.attempts, error.answer) for one in batch.pending]
        )

    def _drop(self, expired: Sequence[PendingEvent]) -> None:
        for one in expired:
            log.error(
                "%s was not notified of %s, which resolved too long ago; given up after %d attempt(s): %s",
                self.receiver.name,
                event_key(one.event),
                one.attempts,
                one.answer or "none was made",
            )
            self._resender.forget(one.event.alert_id)
        self._settle(expired, AttemptState.DROPPED)

    def _settle(self, pending: Sequence[PendingEvent], state: AttemptState) -> None:
        if pending:
            self._journal.append_outcome(
                [self._journal.attempt(one, state, one.attempts, one.answer) for one in pending]
            )

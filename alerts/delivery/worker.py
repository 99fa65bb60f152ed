"""The thread of one receiver: takes what is due, tells it, and keeps each step in the log."""

from __future__ import annotations

import logging
import random
import threading
from collections.abc import Callable, Sequence

from alerts.delivery.clock_steps import SetClock
from alerts.delivery.delivery_log import AttemptState, Backlog, DeliveryAttempt, DeliveryLog, event_key
from alerts.delivery.queue import DeliveryBatch, DeliveryQueue, PendingEvent
from alerts.delivery.receiver import DeliveryError, DigestReceiver, Receipt, Receiver, ResendingReceiver
from alerts.delivery.suppression import Suppressions
from schemas.alerts import AlertEvent
from schemas.config import NotifySettings
from schemas.errors import ENDINGS, HeadroomError

log = logging.getLogger(__name__)

# Nothing wakes it for what becomes too old.
_LONGEST_WAIT_S = 30.0
# After a turn that failed.
_PAUSE_S = 1.0


class Worker:
    """Tells one receiver, on a thread of its own.

    Args:
        receiver: who is told.
        delivery_log: where steps are kept.
        settings: how hard it is tried.
        clock_ms: gives the time now, epoch milliseconds.
        elapsed_ms: gives milliseconds since some moment, whatever the clock is set to.
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
        self._log = delivery_log
        self._clock_ms = clock_ms
        self._set_clock = SetClock(clock_ms, elapsed_ms)
        self._resent_ms = clock_ms()
        self._last_resend_error = self._last_error = ""
        # What could not be kept yet: that it was delivered is known here, and is kept with the next step.
        self._unwritten: list[DeliveryAttempt] = []
        self._without_store = self._write_now = False
        self._stopping = False
        self._changed = threading.Condition()
        self._thread = threading.Thread(target=self._run, name=f"delivery to {receiver.name}", daemon=True)

    @property
    def undelivered(self) -> int:
        """Return how many events the receiver has not got, without those that wait for the end of a silence."""
        with self._changed:
            return len(self._queue.undelivered(self._clock_ms()))

    def start(self, backlog: Backlog) -> None:
        """Take up what is owed from before, and start."""
        self._queue.restore(backlog)
        if isinstance(self.receiver, ResendingReceiver):
            self.receiver.restore(self._queue.notified_alerts())
        self._thread.start()

    def add(self, events: Sequence[AlertEvent]) -> None:
        """Take events, and return at once."""
        with self._changed:
            self._queue.add(events)
            self._changed.notify()

    def update_suppressions(self, suppressions: Suppressions) -> None:
        """Take what holds from now on of silences and acknowledgements, and return at once."""
        with self._changed:
            self._queue.update_suppressions(suppressions)
            self._changed.notify()

    def go_without_store(self, without: bool) -> None:
        """Take whether steps cannot be kept just now: it is told all the same then, and they are kept later."""
        with self._changed:
            self._without_store, self._write_now = without, not without
            self._changed.notify()

    def ask_to_stop(self) -> None:
        """Begin nothing more."""
        with self._changed:
            self._stopping = True
            self._changed.notify()

    def join(self, timeout_s: float) -> None:
        """Wait for what is under way; if it hangs, it is left, and the next start looks whether it has arrived."""
        self._thread.join(timeout_s)

    def _run(self) -> None:
        while not self._stopping:
            try:
                self._run_once()
                self._last_error = ""
            except ENDINGS:
                raise
            # Nobody would tell this receiver anything any more, and nobody would notice.
            except BaseException as error:
                self._log_and_pause(error)

    def _log_and_pause(self, error: BaseException) -> None:
        """Log a turn that failed, once while it fails in the same way, and wait a moment."""
        error_name = type(error).__name__
        if error_name != self._last_error:
            # Without its text, which may hold a secret.
            log.error("the delivery to %s failed, and goes on: %s", self.receiver.name, _error_text(error))
        self._last_error = error_name
        with self._changed:
            if not self._stopping:
                self._changed.wait(_PAUSE_S)

    def _run_once(self) -> None:
        with self._changed:
            if self._stopping:
                return
            self._follow_clock_steps()
            now_ms = self._clock_ms()
            muted = self._queue.take_muted()
            expired = self._queue.take_expired(now_ms)
            batch = self._queue.due(now_ms)
            write_now, self._write_now = self._write_now, False
            if not (muted or expired or batch or write_now or self._resend_due(now_ms)):
                self._changed.wait(self._wait_s(now_ms))
                return
        self._settle(muted, AttemptState.SILENCED)
        self._drop(expired)
        if batch is not None:
            self._send(batch)
        elif write_now and self._unwritten:
            self._record_outcome([])
        self._resend()

    def _follow_clock_steps(self) -> None:
        """Wait for as long as was meant where the clock of this machine has been set meanwhile."""
        step_ms = self._set_clock.step_ms()
        if step_ms:
            self._queue.shift(step_ms)
            self._resent_ms += step_ms

    def _wait_s(self, now_ms: int) -> float:
        times = [self._queue.next_ms(now_ms)]
        if isinstance(self.receiver, ResendingReceiver):
            times.append(self._resend_ms(self.receiver))
        next_ms = min((t for t in times if t is not None), default=None)
        longest_s = _LONGEST_WAIT_S if next_ms is None else (next_ms - now_ms) / 1000
        return max(0.001, min(_LONGEST_WAIT_S, longest_s))

    def _send(self, batch: DeliveryBatch) -> None:
        """Tell what is due: that it is about to be sent is kept before, and how it went after."""
        try:
            self._append([self._record(one, AttemptState.SENDING, attempt=one.attempts + 1) for one in batch.pending])
        except ENDINGS:
            raise
        except BaseException as error:
            self._failed(batch, DeliveryError(f"not sent: the table of deliveries: {_error_text(error)}", unsent=True))
            return
        try:
            receipts = self._deliver(batch)
        except Exception as error:
            # An error of ours comes before anything is sent.
            other = DeliveryError(_error_text(error), unsent=isinstance(error, HeadroomError))
            self._failed(batch, error if isinstance(error, DeliveryError) else other)
            return
        self._delivered(batch, receipts)

    def _deliver(self, batch: DeliveryBatch) -> list[Receipt]:
        if len(batch.pending) > 1 and isinstance(self.receiver, DigestReceiver):
            return self.receiver.deliver_together([one.event for one in batch.pending], batch.may_have_arrived)
        return [self.receiver.deliver(batch.pending[0].event, batch.before, batch.may_have_arrived)]

    def _delivered(self, batch: DeliveryBatch, receipts: Sequence[Receipt]) -> None:
        records = []
        with self._changed:
            for one, receipt in zip(batch.pending, receipts, strict=True):
                reference = self._queue.delivered(one, receipt)
                attempt = one.attempts + 1
                records.append(self._record(one, AttemptState.DELIVERED, attempt, receipt.answer, reference))
        self.last_delivery_ms = self._clock_ms()
        self._record_outcome(records)

    def _failed(self, batch: DeliveryBatch, error: DeliveryError) -> None:
        with self._changed:
            self._queue.failed(batch, error, self._clock_ms())
        if batch.pending[0].attempts == 1:
            log.warning("%s could not be told, and is tried again: %s", self.receiver.name, error.answer)
        self._record_outcome(
            [self._record(one, AttemptState.FAILED, one.attempts, error.answer) for one in batch.pending]
        )

    def _drop(self, expired: Sequence[PendingEvent]) -> None:
        for one in expired:
            log.error(
                "%s was never told of %s, which was resolved long ago; given up after %d attempt(s): %s",
                self.receiver.name,
                event_key(one.event),
                one.attempts,
                one.answer or "none was made",
            )
            if isinstance(self.receiver, ResendingReceiver):
                self.receiver.forget(one.event.alert_id)
        self._settle(expired, AttemptState.DROPPED)

    def _settle(self, pending: Sequence[PendingEvent], state: AttemptState) -> None:
        if pending:
            self._record_outcome([self._record(one, state, one.attempts, one.answer) for one in pending])

    def _record(
        self, one: PendingEvent, state: AttemptState, attempt: int, answer: str = "", reference: str = ""
    ) -> DeliveryAttempt:
        event = one.event
        return DeliveryAttempt(
            receiver=self.receiver.name,
            event_key=event_key(event),
            alert_id=event.alert_id,
            cluster=event.cluster,
            state=state.value,
            attempt=attempt,
            answer=answer,
            reference=reference,
            delivery_ms=self._clock_ms(),
        )

    def _append(self, records: Sequence[DeliveryAttempt]) -> None:
        if self._without_store:
            # Nobody would hear of the fault that fills the disk. After a crash it is told once more.
            self._unwritten.extend(records)
            return
        waiting = [*self._unwritten, *records]
        self._log.append(waiting)
        self._unwritten.clear()

    def _record_outcome(self, records: Sequence[DeliveryAttempt]) -> None:
        """Keep an outcome now, or else with the next step; without it the next start would look for what arrived."""
        try:
            self._append(records)
        except ENDINGS:
            raise
        except BaseException as error:
            self._unwritten.extend(records)
            log.warning("what became of a delivery could not be kept yet: %s", _error_text(error))

    def _resend_ms(self, receiver: ResendingReceiver) -> int:
        return self._resent_ms + round(receiver.resend_in_s * 1000)

    def _resend_due(self, now_ms: int) -> bool:
        return isinstance(self.receiver, ResendingReceiver) and now_ms >= self._resend_ms(self.receiver)

    def _resend(self) -> None:
        if not isinstance(self.receiver, ResendingReceiver) or not self._resend_due(self._clock_ms()):
            return
        resend_error = ""
        try:
            self.receiver.resend()
        except Exception as error:
            resend_error = _error_text(error)
        # It comes back every few seconds while it lasts.
        if resend_error and resend_error != self._last_resend_error:
            log.warning("%s could not be told anew of what fires: %s", self.receiver.name, resend_error)
        self._last_resend_error = resend_error
        self._resent_ms = self._clock_ms()


def _error_text(error: BaseException) -> str:
    """Return what an error says; of one that is not ours only what it is, for its text may hold a secret."""
    return str(error) if isinstance(error, (DeliveryError, HeadroomError)) else type(error).__name__

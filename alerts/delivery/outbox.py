"""Transactional outbox: delivers every event once to every receiver, across crashes and outages.

Each receiver has its own queue and thread, so that none delays another or the alert path. Events are stored before they
are handed over; a start resumes all events without a stored outcome.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from headroom.alerts.delivery.delivery_log import DeliveryLog
from headroom.alerts.delivery.receiver import Receiver
from headroom.alerts.delivery.suppression import Suppressions
from headroom.alerts.delivery.worker import Worker
from headroom.schemas.alerts import AlertEvent
from headroom.schemas.config import NotifySettings

_STOP_S = 3.0


@dataclass(frozen=True)
class DeliveryFigures:
    """Delivery state of one receiver.

    Attributes:
        receiver: name of the receiver.
        undelivered: number of undelivered events, without those that wait for the end of a silence.
        last_delivery_ms: time of the last delivery, epoch milliseconds; None if there was none since the start.
    """

    receiver: str
    undelivered: int
    last_delivery_ms: int | None


class Outbox:
    """Delivers events to all receivers.

    Args:
        receivers: receivers.
        delivery_log: log of delivery attempts.
        settings: section ``[notify]``, with the retry behaviour.
        clock_ms: returns the current time, epoch milliseconds.
        elapsed_ms: returns monotonic milliseconds.
    """

    def __init__(
        self,
        receivers: Sequence[Receiver],
        delivery_log: DeliveryLog,
        settings: NotifySettings,
        clock_ms: Callable[[], int],
        elapsed_ms: Callable[[], int] = lambda: time.monotonic_ns() // 1_000_000,
    ) -> None:
        self._log = delivery_log
        self._workers = [Worker(receiver, delivery_log, settings, clock_ms, elapsed_ms) for receiver in receivers]
        self._started = False

    def start(self) -> None:
        """Resume undelivered events and start the threads; call it before the first event. A second call does nothing.

        Raises:
            HeadroomError: the tables cannot be read.
        """
        if self._started:
            return
        backlog = self._log.backlog([worker.receiver.name for worker in self._workers])
        for worker in self._workers:
            worker.start(backlog)
        self._started = True

    def add(self, events: Sequence[AlertEvent]) -> None:
        """Add durable events to all queues and return immediately."""
        for worker in self._workers:
            worker.add(events)

    def update_suppressions(self, suppressions: Suppressions) -> None:
        """Set the silences and acknowledgements in force and return immediately; also before the start."""
        for worker in self._workers:
            worker.update_suppressions(suppressions)

    def go_without_store(self, without: bool) -> None:
        """Set whether the delivery log cannot be written; receivers are then notified without it."""
        for worker in self._workers:
            worker.go_without_store(without)

    def stop(self) -> None:
        """Stop all threads; the next start resumes undelivered events."""
        if not self._started:
            return
        for worker in self._workers:
            worker.ask_to_stop()
        end_s = time.monotonic() + _STOP_S
        for worker in self._workers:
            worker.join(max(0.0, end_s - time.monotonic()))

    def figures(self) -> list[DeliveryFigures]:
        """Return the delivery state of each receiver."""
        return [DeliveryFigures(w.receiver.name, w.undelivered_count, w.last_delivery_ms) for w in self._workers]

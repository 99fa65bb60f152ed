"""The outbox: every receiver hears of every event, once, whatever crashes, hangs or is away.

Each receiver has a queue and a thread of its own, so that none delays another, nor the one who hands over events. What
is to be told stands in the tables before; a start takes up all that has no outcome there.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from alerts.delivery.delivery_log import DeliveryLog
from alerts.delivery.receiver import Receiver
from alerts.delivery.suppression import Suppressions
from alerts.delivery.worker import Worker
from schemas.alerts import AlertEvent
from schemas.config import NotifySettings

_STOP_S = 3.0


@dataclass(frozen=True)
class DeliveryFigures:
    """How the delivery to one receiver stands.

    Attributes:
        receiver: its name.
        undelivered: events that it has not got, without those that wait for the end of a silence.
        last_delivery_ms: when it last got one, epoch milliseconds; None: not since the start.
    """

    receiver: str
    undelivered: int
    last_delivery_ms: int | None


class Outbox:
    """Tells all receivers.

    Args:
        receivers: who is told.
        delivery_log: where steps are kept.
        settings: how hard it is tried.
        clock_ms: gives the time now, epoch milliseconds.
        elapsed_ms: gives milliseconds since some moment, whatever the clock is set to.
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
        """Take up what is owed from before, and start; before the first event is handed over.

        Raises:
            HeadroomError: the tables cannot be read.
        """
        backlog = self._log.backlog([worker.receiver.name for worker in self._workers])
        for worker in self._workers:
            worker.start(backlog)
        self._started = True

    def put(self, events: Sequence[AlertEvent]) -> None:
        """Take events that are durable, and return at once."""
        for worker in self._workers:
            worker.add(events)

    def update_suppressions(self, suppressions: Suppressions) -> None:
        """Take what holds from now on of silences and acknowledgements, and return at once; also before the start."""
        for worker in self._workers:
            worker.update_suppressions(suppressions)

    def go_without_store(self, without: bool) -> None:
        """Take whether steps cannot be kept just now: receivers are told all the same then."""
        for worker in self._workers:
            worker.go_without_store(without)

    def stop(self) -> None:
        """Stop; what is not delivered then is taken up at the next start."""
        if not self._started:
            return
        for worker in self._workers:
            worker.ask_to_stop()
        end_s = time.monotonic() + _STOP_S
        for worker in self._workers:
            worker.join(max(0.0, end_s - time.monotonic()))

    def figures(self) -> list[DeliveryFigures]:
        """Return how the delivery to each receiver stands."""
        return [DeliveryFigures(w.receiver.name, w.undelivered, w.last_delivery_ms) for w in self._workers]

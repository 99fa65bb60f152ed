"""What a pipeline passes on to the one that replaces it, because the tables could not take it."""

from __future__ import annotations

from dataclasses import dataclass

from headroom.alerts.delivery.outbox import Outbox
from headroom.alerts.engine import AlertEngine
from headroom.streaming.jobs.alert_path import PathState
from headroom.streaming.store.delivery_table import DeliveryTable


@dataclass(frozen=True)
class Handover:
    """State of alerts and of their delivery.

    Without it, after the end of a JVM on a full disk, the same alerts would be announced as new ones.

    Attributes:
        engine: state of all alerts.
        path: state of the alert path.
        outbox: delivery to receivers, which continues meanwhile; None if there are no receivers.
        deliveries: table in which the outbox records its attempts; None if there are no receivers.
    """

    engine: AlertEngine
    path: PathState
    outbox: Outbox | None
    deliveries: DeliveryTable | None

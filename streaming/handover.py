"""What a pipeline passes on to the one that replaces it, because the tables could not take it."""

from __future__ import annotations

from dataclasses import dataclass

from alerts.delivery.outbox import Outbox
from alerts.engine import AlertEngine
from streaming.jobs.alert_path import PathState


@dataclass(frozen=True)
class Handover:
    """State of alerts and of their delivery.

    Without it, after the end of a JVM on a full disk, the same alerts would be announced as new ones.

    Attributes:
        engine: state of all alerts.
        path: state of the alert path.
        outbox: delivery to receivers, which continues meanwhile; None if there are no receivers.
    """

    engine: AlertEngine
    path: PathState
    outbox: Outbox | None

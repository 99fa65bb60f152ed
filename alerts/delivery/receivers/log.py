"""Receiver that writes to the log of the process."""

from __future__ import annotations

import logging

from headroom.alerts.delivery.receiver import Reach, Receipt
from headroom.schemas.alerts import AlertEvent, AlertState

_LEVELS = {AlertState.FIRING.value: logging.ERROR, AlertState.RESOLVED.value: logging.WARNING}


class LogReceiver:
    """Writes a log line for each event.

    Args:
        logger: logger to write to.
    """

    name = "log"

    def __init__(self, logger: logging.Logger) -> None:
        self._logger = logger

    def deliver(self, event: AlertEvent, before: str, may_have_arrived: bool) -> Receipt:
        """Write the line; an earlier attempt cannot be detected, so there may be two lines."""
        self._logger.log(
            _LEVELS[event.state],
            "alert %s %s: %s %s, cluster %s, %s: %s",
            event.alert_id,
            event.state,
            event.severity,
            event.kind,
            event.cluster,
            event.subject,
            event.summary,
        )
        return Receipt("written")

    def reach(self) -> Reach:
        """Return that the log is always there."""
        return Reach("the log of the process that evaluates alerts")

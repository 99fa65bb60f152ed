"""Current state of all alerts, from ``alerts/events`` and ``alerts/marks``, without Spark."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from headroom.alerts.delivery.suppression import SuppressionRecord
from headroom.schemas.alerts import AlertEvent, AlertState
from headroom.schemas.config import Settings
from headroom.schemas.tables import ALERT_EVENTS
from headroom.schemas.text.amounts import moment_text
from headroom.streaming.clock import now_ms
from headroom.streaming.delta.query_table import query
from headroom.streaming.tables.rows import usable_records
from headroom.streaming.tables.suppression_rows import read_suppressions

# Greatest value of the column.
_LAST_MS = 2**63 - 1
_COLUMNS = ", ".join(f'"{name}"' for name in ALERT_EVENTS.names())

# The newest event of each alert. Among events of one tick the latest state counts: pending, firing, resolved.
_LATEST = f"""
SELECT {_COLUMNS}, fired > 0 AS fired FROM (
  SELECT *, row_number() OVER (PARTITION BY alert_id ORDER BY tick_ms DESC,
    CASE state WHEN 'resolved' THEN 2 WHEN 'firing' THEN 1 ELSE 0 END DESC, event_ms DESC) AS age,
    sum(CASE state WHEN 'firing' THEN 1 ELSE 0 END) OVER (PARTITION BY alert_id) AS fired
  FROM data WHERE tick_ms <= {{until_ms}}
) WHERE age = 1 ORDER BY tick_ms DESC, alert_id
"""


@dataclass(frozen=True)
class CurrentAlert:
    """Current state of an alert.

    Attributes:
        event: its newest event.
        fired: whether it has ever fired. False of a resolved alert: its condition cleared while it was pending.
        silenced_until_ms: end of its silence, epoch milliseconds; None if it is not silenced, or resolved.
        ack: acknowledgement in force; None if there is none.
    """

    event: AlertEvent
    fired: bool
    silenced_until_ms: int | None
    ack: SuppressionRecord | None

    @property
    def is_active(self) -> bool:
        """Return whether it is pending or firing."""
        return self.event.state != AlertState.RESOLVED.value


def read_current_alerts(settings: Settings, until_ms: int | None = None) -> list[CurrentAlert] | None:
    """Return the state of every alert, the last changed one first; None if the table of events does not exist yet.

    Args:
        settings: all settings.
        until_ms: moment of the state: last tick, acknowledgement and silence that count, epoch milliseconds; None: now.

    Raises:
        HeadroomError: a table cannot be read.
    """
    sql = _LATEST.format(until_ms=_LAST_MS if until_ms is None else until_ms)
    rows = query(settings.store.path, ALERT_EVENTS.path, sql)
    if rows is None:
        return None
    suppressions = read_suppressions(settings, until_ms)
    at_ms = now_ms() if until_ms is None else until_ms
    fired = {row["alert_id"]: row["fired"] for row in rows}
    alerts = []
    for event in usable_records(AlertEvent, rows, ALERT_EVENTS):
        silenced = None if event.state == AlertState.RESOLVED.value else suppressions.suppressed_until_ms(event, at_ms)
        alerts.append(CurrentAlert(event, fired[event.alert_id], silenced, suppressions.acknowledgement(event)))
    return alerts


def as_json(alert: CurrentAlert) -> dict[str, Any]:
    """Return an alert for JSON: its newest event with nested objects, its silence and its acknowledgement."""
    return {
        **alert.event.as_objects(),
        "fired": alert.fired,
        "silenced_until_ms": alert.silenced_until_ms,
        "acknowledged_by": alert.ack and alert.ack.by,
        "acknowledged_ms": alert.ack and alert.ack.mark_ms,
    }


def suppression_lines(alert: CurrentAlert) -> list[str]:
    """Return the lines that show an alert's acknowledgement and silence."""
    lines = []
    if alert.ack is not None:
        note = f": {alert.ack.note}" if alert.ack.note else ""
        lines.append(f"Acknowledged by {alert.ack.by} at {moment_text(alert.ack.mark_ms)}{note}")
    if alert.silenced_until_ms is not None:
        lines.append(f"Silenced until {moment_text(alert.silenced_until_ms)}")
    return lines

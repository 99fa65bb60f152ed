"""Undelivered events, as SQL over the tables ``events`` and ``deliveries`` that runs with and without Spark."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from headroom.alerts.delivery.delivery_log import SETTLED, Backlog, DeliveryAttempt
from headroom.schemas.alerts import AlertEvent
from headroom.schemas.tables import ALERT_DELIVERIES, ALERT_EVENTS
from headroom.streaming.tables.rows import Row, usable_records


def events_sql(receivers: Sequence[str]) -> str:
    """Return the query of all events of open alerts, except for pending ones."""
    return f"SELECT * FROM events WHERE state <> 'pending' AND alert_id IN ({_open_alerts(receivers)})"


def attempts_sql(receivers: Sequence[str]) -> str:
    """Return the query of all delivery attempts of open alerts."""
    return f"SELECT * FROM deliveries WHERE alert_id IN ({_open_alerts(receivers)})"


def receivers_sql() -> str:
    """Return the query of all receivers with a stored attempt."""
    return "SELECT DISTINCT receiver FROM deliveries"


def without_deliveries(sql: str) -> str:
    """Return a query of events that works while the table of deliveries does not exist yet: it counts as empty."""
    columns = ", ".join(f"CAST(NULL AS STRING) AS {name}" for name in ("receiver", "event_key", "state"))
    return f"WITH deliveries AS (SELECT {columns} WHERE 1 = 0) {sql}"


def backlog_from(events: Iterable[Row], attempts: Iterable[Row], receivers: Iterable[Row]) -> Backlog:
    """Return the backlog from the rows of the three queries."""
    known = frozenset(row["receiver"] for row in receivers)
    return Backlog(
        usable_records(AlertEvent, events, ALERT_EVENTS),
        usable_records(DeliveryAttempt, attempts, ALERT_DELIVERIES),
        known,
    )


def _open_alerts(receivers: Sequence[str]) -> str:
    """Return the query of the ids of open alerts.

    These have fired and are not resolved, because later events refer to their notifications, or have an event that not
    all receivers have got. ``notified_events`` has one row per event with the number of receivers that have got it,
    such as ``("a1", "firing", 1)``. Of two receivers one is still missing then: ``a1`` is open, also once it resolves.
    """
    return f"""
WITH delivered_receivers AS (
  SELECT event_key, count(DISTINCT receiver) AS receivers FROM deliveries
  WHERE state IN ({_texts(SETTLED)}) AND receiver IN ({_texts(receivers)})
  GROUP BY event_key
), notified_events AS (
  SELECT e.alert_id, e.state, coalesce(d.receivers, 0) AS receivers
  FROM events e LEFT JOIN delivered_receivers d
  ON d.event_key = concat(e.alert_id, '/', CAST(e.tick_ms AS STRING), '/', e.state)
  WHERE e.state <> 'pending'
)
SELECT alert_id FROM notified_events
GROUP BY alert_id
HAVING max(CASE WHEN state = 'firing' THEN 1 ELSE 0 END) = 1
  AND (max(CASE WHEN state = 'resolved' THEN 1 ELSE 0 END) = 0 OR min(receivers) < {len(receivers)})
"""


def _texts(values: Sequence[str]) -> str:
    return ", ".join(f"'{value}'" for value in values)

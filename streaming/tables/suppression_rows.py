"""Silences and acknowledgements, as commands read and write them."""

from __future__ import annotations

from headroom.alerts.delivery.suppression import SuppressionRecord, Suppressions
from headroom.schemas.config import Settings
from headroom.schemas.tables import ALERT_MARKS
from headroom.streaming.delta.query import table_url
from headroom.streaming.delta.query_table import query
from headroom.streaming.tables.rows import row_records
from headroom.streaming.tables.suppressions import ALL_SQL, append_record


def read_suppressions(settings: Settings, until_ms: int | None = None) -> Suppressions:
    """Return all suppressions: those of the table, and the maintenance windows of the settings.

    Args:
        settings: all settings.
        until_ms: time up to which records of the table count, epoch milliseconds; None: all.

    Raises:
        HeadroomError: the table cannot be read, or a row of it cannot be used.
    """
    rows = query(settings.store.path, ALERT_MARKS.path, ALL_SQL) or []
    records = row_records(SuppressionRecord, rows, ALERT_MARKS)
    known = [one for one in records if until_ms is None or one.mark_ms <= until_ms]
    return Suppressions.of(known, settings.alerts.maintenance)


def append_suppression(settings: Settings, record: SuppressionRecord) -> None:
    """Append a record; the watch process reads it within seconds.

    Raises:
        HeadroomError: the table cannot be written.
    """
    append_record(table_url(settings.store.path, ALERT_MARKS.path), record)

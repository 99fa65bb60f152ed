"""Silences and acknowledgements, as commands read and write them."""

from __future__ import annotations

import logging

from headroom.alerts.delivery.suppression import SuppressionRecord, Suppressions
from headroom.schemas.config import Settings
from headroom.schemas.errors import HeadroomError
from headroom.schemas.tables import ALERT_MARKS
from headroom.streaming.delta.locations import STORE_REMEDY
from headroom.streaming.delta.query import table_url
from headroom.streaming.delta.query_table import query
from headroom.streaming.supervision.failure import cause_of
from headroom.streaming.tables.suppressions import ALL_SQL, append_record, record_of

logger = logging.getLogger(__name__)


def read_suppressions(settings: Settings) -> Suppressions:
    """Return all suppressions: those of the table, and the maintenance windows of the settings.

    Raises:
        HeadroomError: the table cannot be read.
    """
    rows = query(settings.store.path, ALERT_MARKS.path, ALL_SQL) or []
    return Suppressions.of([record_of(row) for row in rows], settings.alerts.maintenance)


def append_suppression(settings: Settings, record: SuppressionRecord) -> None:
    """Append a record; the watch process reads it within seconds.

    Raises:
        HeadroomError: the table cannot be written.
    """
    location = table_url(settings.store.path, ALERT_MARKS.path)
    try:
        append_record(location, record)
    except HeadroomError:
        raise
    # The library raises its own errors, OSError and bare Exceptions for problems of the storage.
    except Exception as error:
        logger.debug("writing %s", location, exc_info=True)
        raise HeadroomError(location, f"cannot be written ({cause_of(error)})", STORE_REMEDY) from error

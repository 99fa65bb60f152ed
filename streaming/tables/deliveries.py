"""The table of deliveries: the outbox's memory, written about as often as a receiver is told something."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from pyspark.sql import SparkSession

from alerts.delivery.delivery_log import Backlog, DeliveryAttempt
from schemas.tables import ALERT_DELIVERIES, ALERT_EVENTS
from streaming.delta import query as plain_sql
from streaming.delta.locations import local_path
from streaming.delta.low_latency_table import LowLatencyTable
from streaming.delta.store import Store
from streaming.supervision.damaged_tables import damage_of, what_is_left
from streaming.supervision.in_time import InTime
from streaming.tables.undelivered import backlog_from, events_sql, steps_sql

_TABLES = {"events": ALERT_EVENTS, "deliveries": ALERT_DELIVERIES}


class DeliveryTable:
    """``alerts/deliveries``, and of ``alerts/events`` what is still owed.

    Args:
        spark: session.
        store: tables.
    """

    def __init__(self, spark: SparkSession, store: Store) -> None:
        self._spark = spark
        self._store = store
        self._table = LowLatencyTable(spark, store, ALERT_DELIVERIES)
        # Receivers have a thread each.
        self._writing = threading.Lock()
        self._in_time = InTime[None](store.location(ALERT_DELIVERIES))

    def append(self, records: Sequence[DeliveryAttempt]) -> None:
        """Append records; they are durable when this returns.

        Raises:
            NoAnswer: the disk hangs. They may be kept yet, and twice then, which says no more than once.
        """
        with self._writing:
            if self._table.path is None:
                self._table.append(records)
            else:
                self._in_time.call(lambda: self._table.append(records))

    def backlog(self, receivers: Sequence[str]) -> Backlog:
        """Return what is kept of alerts that fire, or of which one of these receivers is still owed an event; of tables
        that are damaged, what can still be read.

        Raises:
            HeadroomError: something else is at a table's place.
        """
        try:
            return self._backlog(receivers, self._rows)
        except Exception:
            if damage_of(self._store, list(_TABLES.values())) is None:
                raise
        # Spark can pass over damaged files, which the library alone cannot.
        by_spark = partial(self._backlog, receivers, self._rows_by_spark)
        return what_is_left(self._store, list(_TABLES.values()), by_spark, Backlog())

    def _backlog(self, receivers: Sequence[str], rows: Callable[[str], list[dict[str, Any]]]) -> Backlog:
        self._table.prepare()
        if not self._store.exists(ALERT_EVENTS):
            return Backlog()
        events, steps = (rows(sql(receivers)) for sql in (events_sql, steps_sql))
        return backlog_from(events, steps)

    def _rows(self, sql: str) -> list[dict[str, Any]]:
        paths = {name: path for name, table in _TABLES.items() if (path := local_path(self._store.location(table)))}
        return plain_sql.rows(paths, sql) if len(paths) == len(_TABLES) else self._rows_by_spark(sql)

    def _rows_by_spark(self, sql: str) -> list[dict[str, Any]]:
        for name, table in _TABLES.items():
            self._store.read(table).createOrReplaceTempView(name)
        return [row.asDict() for row in self._spark.sql(sql).collect()]

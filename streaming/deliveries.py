"""The table of deliveries: the outbox's memory, written about as often as a receiver is told something."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from typing import Any

from pyspark.sql import SparkSession

from alerts.delivery.steps import Backlog, Step
from schemas.tables import ALERT_DELIVERIES, ALERT_EVENTS
from streaming import plain_sql
from streaming.backlog import backlog_of, events_sql, steps_sql
from streaming.places import local_path
from streaming.prompt_table import PromptTable
from streaming.sinks import Store


class DeliveryTable:
    """``alerts/deliveries``, and of ``alerts/events`` what is still owed.

    Args:
        spark: session.
        store: tables.
    """

    def __init__(self, spark: SparkSession, store: Store) -> None:
        self._spark = spark
        self._store = store
        self._table = PromptTable(spark, store, ALERT_DELIVERIES)
        # Receivers have a thread each.
        self._writing = threading.Lock()

    def append(self, steps: Sequence[Step]) -> None:
        """Keep steps; they are durable when this returns."""
        with self._writing:
            self._table.append(steps)

    def backlog(self, receivers: Sequence[str]) -> Backlog:
        """Return what is kept of alerts that fire, or of which one of these receivers is still owed an event.

        Raises:
            HeadroomError: something else is at a table's place.
        """
        self._table.prepare()
        if not self._store.exists(ALERT_EVENTS):
            return Backlog()
        events, steps = (self._rows(sql(receivers)) for sql in (events_sql, steps_sql))
        return backlog_of(events, steps)

    def _rows(self, sql: str) -> list[dict[str, Any]]:
        tables = {"events": ALERT_EVENTS, "deliveries": ALERT_DELIVERIES}
        paths = {name: path for name, table in tables.items() if (path := local_path(self._store.location(table)))}
        if len(paths) == len(tables):
            return plain_sql.rows(paths, sql)
        for name, table in tables.items():
            self._store.read(table).createOrReplaceTempView(name)
        return [row.asDict() for row in self._spark.sql(sql).collect()]

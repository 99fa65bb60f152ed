"""Table of deliveries: the durable log of the outbox, with one append per notification or a few more."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import partial
from typing import Any

from pyspark.sql import SparkSession

from headroom.alerts.delivery.delivery_log import SETTLED, Backlog, DeliveryAttempt
from headroom.schemas.alerts import AlertState
from headroom.schemas.tables import ALERT_DELIVERIES, ALERT_EVENTS
from headroom.streaming.delta import query as delta_query
from headroom.streaming.delta.locations import local_path
from headroom.streaming.store.damaged_tables import damage_of, read_undamaged
from headroom.streaming.store.low_latency_table import LowLatencyTable
from headroom.streaming.store.store import Store
from headroom.streaming.supervision.in_time import InTime
from headroom.streaming.tables.undelivered import attempts_sql, backlog_from, events_sql, receivers_sql

_TABLES = {"events": ALERT_EVENTS, "deliveries": ALERT_DELIVERIES}


class DeliveryTable:
    """``alerts/deliveries``, and the undelivered events of ``alerts/events``.

    Args:
        spark: session.
        store: tables.
    """

    def __init__(self, spark: SparkSession, store: Store) -> None:
        self._spark = spark
        self._store = store
        self._table = LowLatencyTable(spark, store, ALERT_DELIVERIES)
        # Each receiver has a thread of its own, and all append here.
        self._writing = threading.Lock()
        self._in_time = InTime[None](store.location(ALERT_DELIVERIES))
        self._has_failed = False
        # Last settled attempt by receiver and alert, of alerts that are not resolved: they outlive the table.
        self._settled: dict[tuple[str, str], DeliveryAttempt] = {}

    def move_to(self, spark: SparkSession, store: Store) -> None:
        """Use another session and its tables from now on, because the JVM of the earlier one has ended."""
        with self._writing:
            self._spark, self._store = spark, store
            self._table = LowLatencyTable(spark, store, ALERT_DELIVERIES)

    def append(self, records: Sequence[DeliveryAttempt]) -> None:
        """Append delivery attempts; they are durable when this returns.

        Raises:
            NoAnswer: the disk hangs. The append may still succeed later. After a repetition the rows are there twice,
                which does no harm.
        """
        with self._writing:
            try:
                if self._table.path is None:
                    self._table.append(records)
                else:
                    self._in_time.call(lambda: self._append(records))
            except BaseException:
                self._has_failed = True
                raise
            self._note_settled(records)

    def restore_if_removed(self) -> None:
        """Create the table again if it was removed, with what receivers have got; the next append reports errors."""
        with self._writing, suppress(Exception):
            if self._table.path is not None:
                self._in_time.call(self._append_if_removed)

    def _append_if_removed(self) -> None:
        if self._table.was_removed:
            self._append([])

    def _append(self, records: Sequence[DeliveryAttempt]) -> None:
        # In place of a table that was removed: what was delivered must not be sent again after a restart.
        again = [*self._settled.values()] if self._table.was_removed else []
        self._table.append([*again, *records])

    def _note_settled(self, records: Sequence[DeliveryAttempt]) -> None:
        for record in records:
            if record.state in SETTLED:
                self._settled[record.receiver, record.alert_id] = record
            if record.state in SETTLED and record.event_key.endswith(f"/{AlertState.RESOLVED.value}"):
                del self._settled[record.receiver, record.alert_id]

    def damage(self) -> str | None:
        """Return the damage that keeps attempts from being written; None if the last one was written, or now can be."""
        damage = damage_of(self._store, [ALERT_DELIVERIES]) if self._has_failed else None
        self._has_failed = damage is not None
        return damage

    def backlog(self, receivers: Sequence[str]) -> Backlog:
        """Return events and delivery attempts of alerts that fire, or have an undelivered event for a receiver.

        Damaged files of the two tables are skipped. A store that can be neither read nor written has none.

        Args:
            receivers: names of the receivers.

        Raises:
            HeadroomError: something else is at a table's location.
        """
        backlog = self._undamaged_backlog(receivers)
        self._note_settled(sorted(backlog.records, key=lambda record: record.delivery_ms))
        return backlog

    def _undamaged_backlog(self, receivers: Sequence[str]) -> Backlog:
        try:
            return self._backlog(receivers, self._rows)
        except Exception:
            if damage_of(self._store, list(_TABLES.values()), thorough=True) is None and self._store.trouble() is None:
                raise
        # Spark can skip damaged files, and the Delta library cannot.
        by_spark = partial(self._backlog, receivers, self._rows_by_spark)
        return read_undamaged(self._store, list(_TABLES.values()), by_spark, Backlog())

    def _backlog(self, receivers: Sequence[str], rows: Callable[[str], list[dict[str, Any]]]) -> Backlog:
        self._table.prepare()
        if not self._store.exists(ALERT_EVENTS):
            return Backlog()
        events, attempts = (rows(sql(receivers)) for sql in (events_sql, attempts_sql))
        return backlog_from(events, attempts, rows(receivers_sql()))

    def _rows(self, sql: str) -> list[dict[str, Any]]:
        paths = {name: path for name, table in _TABLES.items() if (path := local_path(self._store.location(table)))}
        return delta_query.rows(paths, sql) if len(paths) == len(_TABLES) else self._rows_by_spark(sql)

    def _rows_by_spark(self, sql: str) -> list[dict[str, Any]]:
        for name, table in _TABLES.items():
            self._store.read(table).createOrReplaceTempView(name)
        return [row.asDict() for row in self._spark.sql(sql).collect()]

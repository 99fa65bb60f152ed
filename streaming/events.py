"""The table of alert events: written before anyone is told, so every millisecond of a commit is one of waiting.

A commit of Spark takes about a second on a busy machine; on a local disk the Delta library without Spark makes the very
same commit, with the same guard against a batch that runs twice, in some ten milliseconds. URLs go through Spark, whose
file systems and credentials they are configured for.
"""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from dataclasses import asdict
from typing import Any
from urllib.parse import urlparse

from arro3.core import Array, DataType
from arro3.core import Table as ArrowTable
from deltalake import CommitProperties, DeltaTable, Field, Schema, Transaction, write_deltalake
from deltalake.schema import PrimitiveType
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from schemas.findings import AlertEvent
from schemas.tables import ALERT_EVENTS
from streaming.layout import properties
from streaming.sinks import Store

_ARROW = {"STRING": DataType.string(), "BIGINT": DataType.int64()}
_DELTA = {"STRING": PrimitiveType("string"), "BIGINT": PrimitiveType("long")}


class EventLog:
    """``alerts/events``.

    Args:
        spark: session.
        store: tables.
    """

    def __init__(self, spark: SparkSession, store: Store) -> None:
        self._spark = spark
        self._store = store
        self._local = local_path(store.location(ALERT_EVENTS))
        self._ready = False

    def last_events(self) -> list[AlertEvent]:
        """Return the first and the last event of the latest alert of each subject: all that the lifecycle needs.

        Raises:
            HeadroomError: something else is at the table's place.
        """
        if not self._store.exists(ALERT_EVENTS):
            self._make()
            return []
        self._store.ensure(ALERT_EVENTS)
        self._ready = True
        subject = ["cluster", "kind", "subject"]
        # Of one tick an alert has at most pending, then firing.
        latest = (
            self._store.read(ALERT_EVENTS)
            .groupBy(*subject, "alert_id")
            .agg(
                F.expr("min_by(struct(*), struct(tick_ms, state = 'firing')) AS first"),
                F.expr("max_by(struct(*), struct(tick_ms, state = 'firing')) AS last"),
            )
            .groupBy(*subject)
            .agg(F.expr("max_by(struct(first, last), last.tick_ms) AS latest"))
            .selectExpr("explode(array(latest.first, latest.last)) AS e")
        )
        return [AlertEvent(**row["e"].asDict()) for row in latest.collect()]

    def append(self, events: Sequence[AlertEvent], writer: str, version: int) -> None:
        """Append events, once for each writer and version however often it is called.

        Args:
            events: events.
            writer: names the stream for ever.
            version: number of the micro-batch.
        """
        if not self._ready:
            self._make()
        if self._local is None:
            self._store.append(event_rows(self._spark, events), ALERT_EVENTS, (writer, version))
            return
        table = DeltaTable(self._local)
        app_id = f"{writer}/{ALERT_EVENTS.path}"
        done = table.transaction_version(app_id)
        if done is None or done < version:
            once = CommitProperties(app_transactions=[Transaction(app_id, version)])
            write_deltalake(table, _arrow(events), mode="append", commit_properties=once)

    def _make(self) -> None:
        """Make the table; before the first alert, which must not wait for it, or find the place taken.

        Raises:
            HeadroomError: something else is at its place.
        """
        if self._local is None or os.path.exists(self._local):
            self._store.ensure(ALERT_EVENTS)
        else:
            fields = [Field(c.name, _DELTA[c.type], metadata={"comment": c.meaning}) for c in ALERT_EVENTS.columns]
            kept_with = properties(ALERT_EVENTS)
            DeltaTable.create(
                self._local, schema=Schema(fields), description=ALERT_EVENTS.grain, configuration=kept_with
            )
        self._ready = True


def local_path(location: str) -> str | None:
    """Return the path of a location on this machine; None: it is a URL of another file system."""
    url = urlparse(location)
    if url.scheme == "file":
        return url.path
    return None if url.scheme else location


def event_rows(spark: SparkSession, events: Sequence[AlertEvent]) -> DataFrame:
    """Return the rows of ``alerts/events``, made inside the JVM: rows handed over one by one need a Python worker."""
    text = json.dumps([asdict(event) for event in events])
    rows = spark.range(1).select(F.from_json(F.lit(text), f"ARRAY<STRUCT<{ALERT_EVENTS.ddl()}>>").alias("events"))
    return rows.selectExpr("inline(events)").coalesce(1)


def _arrow(events: Sequence[AlertEvent]) -> ArrowTable:
    columns: dict[str, Any] = {
        c.name: Array([getattr(event, c.name) for event in events], _ARROW[c.type]) for c in ALERT_EVENTS.columns
    }
    return ArrowTable.from_pydict(columns)

"""Writes the complete hours of ``gold/partition_load`` as a batch over silver, in the upkeep of the tables."""

from __future__ import annotations

import logging
import time
from collections.abc import Iterable, Mapping
from typing import Any

from pyspark.sql import DataFrame, SparkSession

from headroom.schemas.tables import (
    BYTES_PER_SEC,
    LOG_END_OFFSETS,
    MESSAGES,
    PARTITION_LOAD,
    PARTITION_WRITE_RATE,
    REPLICA_SIZES,
    Table,
)
from headroom.streaming.queries.caching import cached_frames
from headroom.streaming.session import batch_session
from headroom.streaming.store.maintenance import CONFLICTS
from headroom.streaming.store.store import Store
from headroom.streaming.transforms.partition_load import (
    BUCKET_MS,
    HOUR_MS,
    LoadHour,
    LoadInputs,
    buckets,
    partition_load,
)
from headroom.streaming.transforms.steps import literal

log = logging.getLogger(__name__)

# Hours that are written, or written again when silver has got more of them. A record job that was away for longer
# leaves the earlier hours out.
_LOOK_BACK_MS = 48 * HOUR_MS
# An hour without a tick after its end is written this much later, because silver may be behind.
_SETTLED_MS = 2 * BUCKET_MS
_SOURCES = (MESSAGES, LOG_END_OFFSETS, BYTES_PER_SEC)
_INPUTS = (LOG_END_OFFSETS, BYTES_PER_SEC, PARTITION_WRITE_RATE, REPLICA_SIZES)
_ATTEMPTS = 3


class PartitionLoadJob:
    """Writes the hours of ``gold/partition_load``, each in one commit that replaces what the table has of it.

    Several processes may run it, and one that ended in between left whole hours only.

    Args:
        spark: session.
        path: ``store.path``.
    """

    def __init__(self, spark: SparkSession, path: str) -> None:
        # The rows are many and small, unlike the messages of bronze.
        self._store = Store(batch_session(spark), path)

    def run(self, now_ms: int) -> list[LoadHour]:
        """Write all due hours, the newest one first, and return them.

        Args:
            now_ms: time now, epoch milliseconds.
        """
        if not all(map(self._store.exists, _SOURCES)):
            return []
        self._store.ensure(PARTITION_LOAD)
        since_ms = now_ms // HOUR_MS * HOUR_MS - _LOOK_BACK_MS
        ledger = buckets(self._store.read_since(MESSAGES, since_ms)).collect()
        due = due_hours(hours_of(row.asDict() for row in ledger), self._messages_by_hour(since_ms), now_ms)
        for hour in due:
            began_s = time.monotonic()
            self._replace(hour, _ATTEMPTS)
            took_s = time.monotonic() - began_s
            log.info("load of cluster %s in the hour from %d written in %.1f s", hour.cluster, hour.hour_ms, took_s)
        return due

    def _messages_by_hour(self, since_ms: int) -> dict[tuple[str, int], int]:
        """Return the messages that each hour in the table rests on, by cluster and hour."""
        recent = self._store.read(PARTITION_LOAD).where(
            f"date >= to_date(timestamp_millis({since_ms})) AND hour_ms >= {since_ms}"
        )
        rows = recent.groupBy("cluster", "hour_ms").agg({"hour_messages": "max"}).collect()
        return {(row[0], row[1]): row[2] for row in rows}

    def _replace(self, hour: LoadHour, attempts: int) -> None:
        inputs = LoadInputs(*map(self._read, _INPUTS))
        same_hour = (
            f"date = to_date(timestamp_millis({hour.hour_ms})) AND cluster = {literal(hour.cluster)} "
            f"AND hour_ms = {hour.hour_ms}"
        )
        try:
            with cached_frames() as cache:
                self._store.replace(partition_load(inputs, hour, cache), PARTITION_LOAD, same_hour)
        except CONFLICTS:
            # Another process has written or compacted the same rows.
            if attempts == 1:
                raise
            self._replace(hour, attempts - 1)

    def _read(self, table: Table) -> DataFrame:
        """Return the rows of a table; none if it does not exist, as gold where only the record job has run."""
        if self._store.exists(table):
            return self._store.read(table)
        return self._store.spark.createDataFrame([], table.ddl())


def hours_of(ledger: Iterable[Mapping[str, Any]]) -> list[LoadHour]:
    """Return the hours in which at least two edges were read.

    Args:
        ledger: rows of ``streaming.transforms.partition_load.buckets``, in any order.
    """
    row_by_bucket = {(row["cluster"], row["bucket_ms"]): row for row in ledger}
    hours = []
    for cluster, hour_ms in sorted({(cluster, bucket_ms // HOUR_MS * HOUR_MS) for cluster, bucket_ms in row_by_bucket}):
        starts_ms = range(hour_ms, hour_ms + HOUR_MS, BUCKET_MS)
        rows = [row_by_bucket[cluster, start_ms] for start_ms in starts_ms if (cluster, start_ms) in row_by_bucket]
        closing = row_by_bucket.get((cluster, hour_ms + HOUR_MS), {"edge_ms": None})
        edges_ms = [row["edge_ms"] for row in (*rows, closing) if row["edge_ms"] is not None]
        closed = closing["edge_ms"] is not None
        messages = sum(row["messages"] for row in rows) + (closing["edge_messages"] if closed else 0)
        if len(edges_ms) > 1:
            hours.append(LoadHour(cluster, hour_ms, tuple(edges_ms), messages, closed))
    return hours


def due_hours(hours: Iterable[LoadHour], written: Mapping[tuple[str, int], int], now_ms: int) -> list[LoadHour]:
    """Return the hours to write, the newest one first: complete ones of which silver has more than the table.

    Silver may have less after its retention; then the rows stay.

    Args:
        hours: hours of silver.
        written: messages that the table's rows rest on, by cluster and hour.
        now_ms: time now, epoch milliseconds.
    """
    due = [
        hour
        for hour in hours
        if (hour.closed or now_ms >= hour.hour_ms + HOUR_MS + _SETTLED_MS)
        and hour.messages > written.get((hour.cluster, hour.hour_ms), 0)
    ]
    return sorted(due, key=lambda hour: (-hour.hour_ms, hour.cluster))

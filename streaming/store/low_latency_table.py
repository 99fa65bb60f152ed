"""Table with low-latency appends, for rows that must be durable before a notification is sent.

A commit of Spark takes about 1 s on a busy machine. On a local disk the Delta library makes the same commit, with the
same guard against a repeated batch, in some 10 ms. URLs go through Spark, because their file systems and credentials
are configured there.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

from deltalake import CommitProperties, DeltaTable, Transaction
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from headroom.schemas.errors import HeadroomError
from headroom.schemas.tables import DURABLE_TABLES, Table
from headroom.streaming.delta import append as delta_append
from headroom.streaming.delta.files.sync import sync_commits
from headroom.streaming.delta.locations import is_table, local_path, require_writable
from headroom.streaming.delta.tick_table import day_of
from headroom.streaming.store.store import Store

_ATTEMPTS = 5


class LowLatencyTable:
    """A table without nested columns that is written a few rows at a time.

    Args:
        spark: session.
        store: tables.
        table: definition of the table. Rows are objects with its columns as attributes.

    Attributes:
        path: folder of the table; None if it is at a URL.
    """

    def __init__(self, spark: SparkSession, store: Store, table: Table) -> None:
        self._spark = spark
        self._store = store
        self._table = table
        self.path = local_path(store.location(table))
        self._ready = False
        # Newest version before the first commit that may not be synced; None if all are.
        self._unsynced_since: int | None = None

    def prepare(self) -> bool:
        """Create or update the table, and return whether it existed.

        If the store cannot be written, that is left to the first append.

        Raises:
            HeadroomError: something else is at the table's location.
        """
        existed = self._store.exists(self._table)
        try:
            self._ensure()
        except HeadroomError:
            if self._store.trouble() is None:
                raise
        return existed

    @property
    def was_removed(self) -> bool:
        """Return whether the table was there, and is not any more: somebody may have removed it to free space."""
        return self._ready and self.path is not None and not is_table(self.path)

    def append(self, records: Sequence[object], once: tuple[str, int] | None = None) -> None:
        """Append rows; those of ``DURABLE_TABLES`` are on the disk, synced, when this returns.

        Args:
            records: rows.
            once: permanent name of the stream, and number of its micro-batch. A second append with the same pair is
                skipped. None: the caller guarantees a single append.

        Raises:
            HeadroomError: this user may not write there, or the Delta library panicked.
            OSError: the disk did not take the rows. A repetition of the append is safe.
        """
        if not self._ready or self.was_removed:
            self._ensure()
        if self.path is None:
            self._store.append(record_rows(self._spark, records, self._table), self._table, once)
            return
        require_writable(self.path)
        with delta_append.without_panic(self.path):
            # Maintenance may delete old days meanwhile, which the library treats as a conflict.
            delta_append.again_on_conflict(
                partial(self._append, self.path, records, once), _ATTEMPTS, delta_append.APPEND_FOR_S
            )

    def _append(self, path: str, records: Sequence[object], once: tuple[str, int] | None) -> None:
        opened, guard = DeltaTable(path), None
        if once is not None:
            guard = CommitProperties(app_transactions=[Transaction(self._app_id(once[0]), once[1])])
        if self._unsynced_since is None:
            self._unsynced_since = opened.version()
        if once is None or not self._has(opened, once):
            delta_append.append(opened, records, self._table, guard)
        if self._table in DURABLE_TABLES:
            # A repeated append too: the first one may have failed at this.
            sync_commits(path, self._unsynced_since)
        self._unsynced_since = None

    def _app_id(self, writer: str) -> str:
        return f"{writer}/{self._table.path}"

    def _has(self, opened: DeltaTable, once: tuple[str, int]) -> bool:
        done = opened.transaction_version(self._app_id(once[0]))
        return done is not None and done >= once[1]

    def _ensure(self) -> None:
        """Create or update the table. Called before the first row, which must not wait for it.

        Raises:
            HeadroomError: something else is at its location, or it cannot be written.
        """
        self._store.ensure(self._table)
        self._ready = True


def record_rows(spark: SparkSession, records: Sequence[object], table: Table) -> DataFrame:
    """Return rows of a table as a frame. They are sent to the JVM as JSON, because createDataFrame needs a worker."""
    return dict_rows(spark, [{name: getattr(record, name) for name in table.names()} for record in records], table)


def dict_rows(spark: SparkSession, records: Sequence[Mapping[str, Any]], table: Table) -> DataFrame:
    """Return rows of a table as a frame, as ``record_rows`` does.

    Args:
        spark: session.
        records: columns to values; a date that is missing is that of ``tick_ms``.
        table: definition of the table.
    """
    dated = [record if "date" in record else {**record, "date": day_of(record["tick_ms"])} for record in records]
    # default=str: dates are text in JSON.
    text = json.dumps(dated, default=str)
    rows = spark.range(1).select(F.from_json(F.lit(text), f"ARRAY<STRUCT<{table.ddl()}>>").alias("records"))
    return rows.selectExpr("inline(records)").coalesce(1)

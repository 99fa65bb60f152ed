"""Table with low-latency appends, for rows that must be durable before a notification is sent.

A commit of Spark takes about 1 s on a busy machine. On a local disk the Delta library makes the same commit, with the
same guard against a repeated batch, in some 10 ms. URLs go through Spark, because their file systems and credentials
are configured there.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from functools import partial

from deltalake import CommitProperties, DeltaTable, Transaction
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from schemas.errors import HeadroomError
from schemas.tables import Table
from streaming.delta import append as delta_append
from streaming.delta.locations import local_path, require_writable
from streaming.store.store import Store

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

    def append(self, records: Sequence[object], once: tuple[str, int] | None = None) -> None:
        """Append rows.

        Args:
            records: rows.
            once: permanent name of the stream, and number of its micro-batch. A second append with the same pair is
                skipped. None: the caller guarantees a single append.

        Raises:
            HeadroomError: this user may not write there, or the Delta library panicked.
        """
        if not self._ready:
            self._ensure()
        if self.path is None:
            self._store.append(record_rows(self._spark, records, self._table), self._table, once)
            return
        require_writable(self.path)
        with delta_append.without_panic(self.path):
            # Maintenance may delete old days meanwhile, which the library treats as a conflict.
            delta_append.again_on_conflict(partial(self._append, self.path, records, once), _ATTEMPTS)

    def _append(self, path: str, records: Sequence[object], once: tuple[str, int] | None) -> None:
        opened, guard = DeltaTable(path), None
        if once is not None:
            app_id = f"{once[0]}/{self._table.path}"
            done = opened.transaction_version(app_id)
            if done is not None and done >= once[1]:
                return
            guard = CommitProperties(app_transactions=[Transaction(app_id, once[1])])
        delta_append.append(opened, records, self._table, guard)

    def _ensure(self) -> None:
        """Create or update the table. Called before the first row, which must not wait for it.

        Raises:
            HeadroomError: something else is at its location, or it cannot be written.
        """
        self._store.ensure(self._table)
        self._ready = True


def record_rows(spark: SparkSession, records: Sequence[object], table: Table) -> DataFrame:
    """Return rows of a table as a frame. They are sent to the JVM as JSON, because createDataFrame needs a worker."""
    # default=str: dates are text in JSON.
    text = json.dumps([{name: getattr(record, name) for name in table.names()} for record in records], default=str)
    rows = spark.range(1).select(F.from_json(F.lit(text), f"ARRAY<STRUCT<{table.ddl()}>>").alias("records"))
    return rows.selectExpr("inline(records)").coalesce(1)

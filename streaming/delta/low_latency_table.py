"""A small table that is written before anyone is told, so every millisecond of a commit is one of waiting.

A commit of Spark takes about a second on a busy machine; on a local disk the Delta library without Spark makes the very
same commit, with the same guard against a batch that runs twice, in some ten milliseconds. URLs go through Spark, whose
file systems and credentials they are configured for.
"""

from __future__ import annotations

import json
from collections.abc import Sequence

from deltalake import CommitProperties, DeltaTable, Transaction
from deltalake.exceptions import CommitFailedError
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from schemas.tables import Table
from streaming.delta import append as plain_table
from streaming.delta.locations import local_path, require_writable
from streaming.delta.store import Store

_ATTEMPTS = 5


class LowLatencyTable:
    """A table without nested columns that is written a few rows at a time.

    Args:
        spark: session.
        store: tables.
        table: the table; its rows are objects with its columns as attributes.
    """

    def __init__(self, spark: SparkSession, store: Store, table: Table) -> None:
        self._spark = spark
        self._store = store
        self._table = table
        self.path = local_path(store.location(table))
        self._ready = False

    def prepare(self) -> bool:
        """Make the table ready to be written, and return whether it was there.

        Raises:
            HeadroomError: something else is at the table's place.
        """
        there = self._store.exists(self._table)
        self._make()
        return there

    def append(self, records: Sequence[object], once: tuple[str, int] | None = None) -> None:
        """Append rows.

        Args:
            records: rows.
            once: names the stream for ever, and the number of its micro-batch: what is appended with the same two
                again is passed over; None: the caller appends them once.

        Raises:
            HeadroomError: this user may not write there, or the Delta library panicked.
        """
        if not self._ready:
            self._make()
        if self.path is None:
            self._store.append(record_rows(self._spark, records, self._table), self._table, once)
            return
        require_writable(self.path)
        with plain_table.without_panic(self.path):
            self._append(self.path, records, once, _ATTEMPTS)

    def _append(self, path: str, records: Sequence[object], once: tuple[str, int] | None, attempts: int) -> None:
        there, guard = DeltaTable(path), None
        if once is not None:
            app_id = f"{once[0]}/{self._table.path}"
            done = there.transaction_version(app_id)
            if done is not None and done >= once[1]:
                return
            guard = CommitProperties(app_transactions=[Transaction(app_id, once[1])])
        try:
            plain_table.append(there, records, self._table, guard)
        except CommitFailedError:
            # Nothing was committed: maintenance has dropped old days just then, which the library takes for a conflict.
            if attempts == 1:
                raise
            self._append(path, records, once, attempts - 1)

    def _make(self) -> None:
        """Make the table; before the first row, which must not wait for it, or find the place taken.

        Raises:
            HeadroomError: something else is at its place, or it cannot be written.
        """
        self._store.ensure(self._table)
        self._ready = True


def record_rows(spark: SparkSession, records: Sequence[object], table: Table) -> DataFrame:
    """Return rows of a table, made inside the JVM: rows handed over one by one need a Python worker."""
    # Dates are text in JSON.
    text = json.dumps([{name: getattr(record, name) for name in table.names()} for record in records], default=str)
    rows = spark.range(1).select(F.from_json(F.lit(text), f"ARRAY<STRUCT<{table.ddl()}>>").alias("records"))
    return rows.selectExpr("inline(records)").coalesce(1)

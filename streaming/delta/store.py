"""Where rows go: Delta tables, each batch once."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import NamedTuple

from delta.tables import DeltaTable
from deltalake import Schema
from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from schemas.errors import HeadroomError
from schemas.tables import Table
from streaming.delta import append as plain_table
from streaming.delta.locations import local_path, require_writable
from streaming.delta.properties import properties
from streaming.delta.schema_check import described, schema_difference
from streaming.supervision.failure import cause_of

_TICK = ["cluster", "tick_ms"]
_PASS_OVER = ("spark.sql.files.ignoreMissingFiles", "spark.sql.files.ignoreCorruptFiles")


class TableState(NamedTuple):
    """A table that is there: columns and fields, with their types, that it has not yet; its Delta properties."""

    new: Mapping[str, str]
    properties: Mapping[str, str]


class Store:
    """The Delta tables under one folder or URL.

    Args:
        spark: session.
        path: ``store.path``.
    """

    def __init__(self, spark: SparkSession, path: str) -> None:
        self.spark = spark
        self._path = path.rstrip("/")
        self._ensured: set[str] = set()

    def location(self, table: Table) -> str:
        """Return the folder or URL of a table."""
        return f"{self._path}/{table.path}"

    def exists(self, table: Table) -> bool:
        """Return whether a Delta table is at the table's place.

        Raises:
            HeadroomError: Spark cannot look there.
        """
        try:
            return bool(DeltaTable.isDeltaTable(self.spark, self.location(table)))
        except (Py4JJavaError, PySparkException) as error:
            rule = f"cannot be read ({cause_of(error)})"
            raise HeadroomError(self.location(table), rule, "Look at store.path and the rights on it.") from error

    def ensure(self, *tables: Table) -> bool:
        """Create the tables that are not there yet, and bring those that an older version made up to this one.

        Returns whether this call has made all of them: there is nothing in them then, and nobody need look.

        To be called by whoever writes the tables, before the first row: a change of its columns or properties would
        fail an append that is under way.

        Raises:
            HeadroomError: something else is at the place, or a table lacks what cannot be added.
        """
        made = []
        for table in tables:
            if table.path in self._ensured:
                continue
            try:
                if self._create(table):
                    made.append(table)
                self._ensured.add(table.path)
            except HeadroomError:
                raise
            except Exception as error:
                raise HeadroomError(
                    self.location(table),
                    f"must be a Delta table of Headroom or a new place that can be written ({cause_of(error)})",
                    "Point store.path elsewhere, or move away what is there.",
                ) from error
        return len(made) == len(tables)

    def _create(self, table: Table) -> bool:
        """Make a table, or bring it up to this version; return whether it was made."""
        location = self.location(table)
        path = local_path(location)
        if path is not None and not os.path.exists(path):
            # A commit of Spark takes a second on a busy machine, and there are a dozen tables.
            require_writable(path)
            plain_table.create(path, table, Schema.from_json(described(table).json()))
            return True
        if self.exists(table):
            self._bring_up(table, self.found(table))
            return False
        builder = DeltaTable.createIfNotExists(self.spark).location(location).comment(table.grain)
        for column in table.columns:
            builder = builder.addColumn(column.name, column.type, comment=column.meaning)
        for key, value in properties(table).items():
            builder = builder.property(key, value)
        builder.partitionedBy(*table.partition_by).execute()
        return True

    def found(self, table: Table) -> TableState:
        """Return what a table that is there is like.

        Raises:
            HeadroomError: it is not Headroom's, or lacks what cannot be added.
        """
        there = DeltaTable.forPath(self.spark, self.location(table))
        (detail,) = there.detail().select("partitionColumns", "properties").collect()
        lacks = schema_difference(table, there.toDF().schema, detail["partitionColumns"])
        if lacks.wrong:
            raise HeadroomError(
                self.location(table),
                f"must have the columns and folders of {table.path}, but {'; '.join(lacks.wrong)}",
                "It was written by something else or by another version: point store.path elsewhere, or move it away.",
            )
        return TableState(lacks.new, detail["properties"])

    def _bring_up(self, table: Table, found: TableState) -> None:
        """Make a table of an older version one of this: what it did not know is null in its rows."""
        if found.new:
            self._alter(table, f"ADD COLUMNS ({', '.join(f'{name} {of}' for name, of in found.new.items())})")
        if not properties(table).items() <= found.properties.items():
            pairs = ", ".join(f"'{key}' = '{value}'" for key, value in properties(table).items())
            self._alter(table, f"SET TBLPROPERTIES ({pairs})")

    def _alter(self, table: Table, change: str) -> None:
        self.spark.sql(f"ALTER TABLE delta.`{self.location(table)}` {change}")

    def read(self, table: Table) -> DataFrame:
        """Return the rows of a table that is there."""
        return self.spark.read.format("delta").load(self.location(table))

    @contextmanager
    def passing_over_damage(self) -> Iterator[None]:
        """Let files of tables that are missing or damaged be passed over by what is read until the block ends."""
        for name in _PASS_OVER:
            self.spark.conf.set(name, "true")
        try:
            yield
        finally:
            for name in _PASS_OVER:
                self.spark.conf.unset(name)

    def read_since(self, table: Table, tick_ms: int) -> DataFrame:
        """Return the rows of a table of ticks from one tick on, without a look at earlier days."""
        return self.read(table).where(f"date >= to_date(timestamp_millis({tick_ms})) AND tick_ms >= {tick_ms}")

    def unwritten(self, rows: DataFrame, table: Table, since_ms: int) -> DataFrame:
        """Return those of some rows of ticks whose tick a table does not have.

        Args:
            rows: rows with ``cluster`` and ``tick_ms``.
            table: table.
            since_ms: no row is of an earlier tick, epoch milliseconds.
        """
        return rows.join(self._ticks_since(table, since_ms), _TICK, "left_anti")

    def ticks_since(self, table: Table, since_ms: int) -> set[tuple[str, int]]:
        """Return cluster and time of the ticks that a table has from one tick on."""
        return {(row["cluster"], row["tick_ms"]) for row in self._ticks_since(table, since_ms).collect()}

    def _ticks_since(self, table: Table, since_ms: int) -> DataFrame:
        return self.read_since(table, since_ms).select(*_TICK).distinct()

    def last_ticks(self, table: Table) -> dict[str, int]:
        """Return the newest tick, epoch milliseconds, of each cluster that has one on the last two days of a table.

        The days before are not looked at, for there may be months of them.
        """
        rows = self.read(table)
        # Answered from the log, without a look at a file.
        (newest,) = rows.agg({"date": "max"}).collect()
        last = rows.where(F.col("date") >= F.date_sub(F.lit(newest[0]), 1)).groupBy("cluster").agg({"tick_ms": "max"})
        return {row[0]: row[1] for row in last.collect()}

    def append(self, rows: DataFrame, table: Table, once: tuple[str, int] | None = None) -> None:
        """Append rows to a table.

        Args:
            rows: rows in the table's columns.
            table: table.
            once: names the stream for ever (its checkpoint's id), and the number of its micro-batch: what is appended
                with the same two again is passed over. That takes a look at the table's whole state, half the time of
                a small commit; None: the caller knows that it appends the rows once.
        """
        writer = rows.write.format("delta").mode("append")
        if once is not None:
            writer = writer.option("txnAppId", f"{once[0]}/{table.path}").option("txnVersion", once[1])
        writer.save(self.location(table))


def writer_id(spark: SparkSession, checkpoint: str) -> str:
    """Return the id of the stream that a checkpoint belongs to: a new checkpoint is a new writer."""
    row = spark.read.text(f"{checkpoint}/metadata").first()
    if row is None:
        raise HeadroomError(f"{checkpoint}/metadata", "must hold the stream's id", "Remove the checkpoint folder.")
    return str(row[0])

"""Store: the Delta tables below one location, read and written by Spark."""

from __future__ import annotations

import logging
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

from delta.tables import DeltaTable
from deltalake import Schema
from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from headroom.schemas.errors import HeadroomError
from headroom.schemas.tables import PROMPT_TABLES, Table
from headroom.streaming.delta import append as delta_append
from headroom.streaming.delta.damage import error_of_damage
from headroom.streaming.delta.locations import (
    STORE_REMEDY,
    is_table,
    local_path,
    mount_of,
    require_writable,
    trouble_of,
)
from headroom.streaming.delta.properties import properties
from headroom.streaming.delta.upgrade import require_ours, schema_difference, upgrade_without_spark
from headroom.streaming.supervision.failure import cause_of
from headroom.streaming.transforms.steps import literal

log = logging.getLogger(__name__)

_TICK = ["cluster", "tick_ms"]
_SKIP_DAMAGED = ("spark.sql.files.ignoreMissingFiles", "spark.sql.files.ignoreCorruptFiles")


class TableState(NamedTuple):
    """State of an existing table.

    Attributes:
        new: missing columns and fields: path to type.
        properties: its Delta properties.
    """

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
        # Where the file system of the tables that were ensured is mounted.
        self._mount: Path | None = None

    def location(self, table: Table) -> str:
        """Return the folder or URL of a table."""
        return f"{self._path}/{table.path}"

    def trouble(self) -> str | None:
        """Return why the tables cannot be written, in a few words; None if they can, or are at a URL."""
        return trouble_of(self._path)

    def exists(self, table: Table) -> bool:
        """Return whether a Delta table is at the table's location.

        Raises:
            HeadroomError: Spark cannot read the location.
        """
        try:
            return bool(DeltaTable.isDeltaTable(self.spark, self.location(table)))
        except (Py4JJavaError, PySparkException) as error:
            rule = f"cannot be read ({cause_of(error)})"
            raise HeadroomError(self.location(table), rule, STORE_REMEDY) from error

    def ensure(self, *tables: Table) -> bool:
        """Create missing tables, and upgrade those of an older version.

        The writer of the tables must call this before the first row, because a change of columns or properties fails an
        append in progress. Tables on a disk that were removed since are created again, which is logged.

        Returns:
            Whether this call has created all of them. They are empty then and need not be read.

        Raises:
            HeadroomError: something else is at a location, a table has a difference that cannot be fixed, or one has
                lost its log.
        """
        created = []
        for table in tables:
            if table.path in self._ensured and not self._is_gone(table):
                continue
            try:
                if self._create(table):
                    created.append(table)
                self._ensured.add(table.path)
                self._mount = mount_of(self._path)
            except HeadroomError:
                raise
            except Exception as error:
                raise HeadroomError(
                    self.location(table),
                    f"must be a Delta table of Headroom or a new place that can be written ({cause_of(error)})",
                    "Point store.path elsewhere, or move away what is there.",
                ) from error
        return len(created) == len(tables)

    def _is_gone(self, table: Table) -> bool:
        """Return whether a table that was there is not any more, and log that.

        Raises:
            HeadroomError: only its log is gone, and a new one would hide the rows; or its file system is gone.
        """
        location = self.location(table)
        path = local_path(location)
        if path is None or is_table(path):
            return False
        if damage := error_of_damage(location):
            raise damage
        mount = mount_of(self._path)
        # A mount that has come since, or another one in its place, is a new disk.
        if mount is not None and self._mount is not None and mount in self._mount.parents:
            rule = f"is gone: nothing is mounted at {self._mount} any more"
            raise HeadroomError(location, rule, "Mount it again; what is not stored waits for it.")
        log.error("table %s was removed while it was in use: it is created again, and what it had is lost", table.path)
        return True

    def _create(self, table: Table) -> bool:
        """Create a table, or upgrade it to this version; return whether it was created."""
        location = self.location(table)
        path = local_path(location)
        if path is not None and not os.path.exists(path):
            # Without Spark, whose commits take 1 s each on a busy machine, for a dozen tables.
            require_writable(path)
            self._require_room()
            delta_append.create(path, table)
            return True
        if path is not None and table in PROMPT_TABLES and is_table(path):
            upgrade_without_spark(path, table)
            return False
        if self.exists(table):
            self._upgrade(table, self.state(table))
            return False
        builder = DeltaTable.createIfNotExists(self.spark).location(location).comment(table.grain)
        for column in table.columns:
            builder = builder.addColumn(column.name, column.type, comment=column.meaning)
        for key, value in properties(table).items():
            builder = builder.property(key, value)
        builder.partitionedBy(*table.partition_by).execute()
        return True

    def _require_room(self) -> None:
        """Check that a table can be created: on a full disk half a table would be left, which nobody can complete.

        Raises:
            HeadroomError: the tables cannot be written.
        """
        trouble = self.trouble()
        if trouble is not None:
            raise HeadroomError(
                "the store", trouble, "Free space on its disk, or check store.path and its permissions."
            )

    def state(self, table: Table) -> TableState:
        """Return the state of an existing table.

        Raises:
            HeadroomError: it is not Headroom's, or has a difference that cannot be fixed.
        """
        existing = DeltaTable.forPath(self.spark, self.location(table))
        (detail,) = existing.detail().select("partitionColumns", "properties").collect()
        schema = Schema.from_json(existing.toDF().schema.json())
        difference = schema_difference(table, schema, detail["partitionColumns"])
        require_ours(self.location(table), table, difference)
        return TableState(difference.new, detail["properties"])

    def _upgrade(self, table: Table, state: TableState) -> None:
        """Add missing columns, which are null in existing rows, and set missing properties.

        Comments of existing columns stay: each would be a commit of a second.
        """
        if state.new:
            comments = {c.name: f" COMMENT {literal(c.meaning)}" for c in table.columns}
            columns = ", ".join(f"{name} {of}{comments.get(name, '')}" for name, of in state.new.items())
            self._alter(table, f"ADD COLUMNS ({columns})")
        if not properties(table).items() <= state.properties.items():
            pairs = ", ".join(f"'{key}' = '{value}'" for key, value in properties(table).items())
            self._alter(table, f"SET TBLPROPERTIES ({pairs})")

    def _alter(self, table: Table, change: str) -> None:
        self.spark.sql(f"ALTER TABLE delta.`{self.location(table)}` {change}")

    def read(self, table: Table) -> DataFrame:
        """Return the rows of an existing table."""
        return self.spark.read.format("delta").load(self.location(table))

    @contextmanager
    def skipping_damage(self) -> Iterator[None]:
        """Let reads in the block skip missing and damaged files."""
        for name in _SKIP_DAMAGED:
            self.spark.conf.set(name, "true")
        try:
            yield
        finally:
            for name in _SKIP_DAMAGED:
                self.spark.conf.unset(name)

    def read_since(self, table: Table, tick_ms: int) -> DataFrame:
        """Return the rows of a table of ticks from one tick on, without reading earlier days."""
        return self.read(table).where(f"date >= to_date(timestamp_millis({tick_ms})) AND tick_ms >= {tick_ms}")

    def unwritten(self, rows: DataFrame, table: Table, since_ms: int) -> DataFrame:
        """Return the rows whose ticks are not in a table.

        Args:
            rows: rows with ``cluster`` and ``tick_ms``.
            table: table.
            since_ms: time of the earliest tick among the rows, epoch milliseconds.
        """
        return rows.join(self._ticks_since(table, since_ms), _TICK, "left_anti")

    def ticks_since(self, table: Table, since_ms: int) -> set[tuple[str, int]]:
        """Return cluster and time of the ticks in a table from one tick on."""
        return {(row["cluster"], row["tick_ms"]) for row in self._ticks_since(table, since_ms).collect()}

    def _ticks_since(self, table: Table, since_ms: int) -> DataFrame:
        return self.read_since(table, since_ms).select(*_TICK).distinct()

    def last_ticks(self, table: Table) -> dict[str, int]:
        """Return the newest tick, epoch milliseconds, of each cluster with a tick on the last two days of a table.

        Earlier days are not read, because there may be months of them.
        """
        rows = self.read(table)
        # Delta answers this from its log, without reading a file.
        (newest,) = rows.agg({"date": "max"}).collect()
        last = rows.where(F.col("date") >= F.date_sub(F.lit(newest[0]), 1)).groupBy("cluster").agg({"tick_ms": "max"})
        return {row[0]: row[1] for row in last.collect()}

    def append(self, rows: DataFrame, table: Table, once: tuple[str, int] | None = None) -> None:
        """Append rows to a table.

        Args:
            rows: rows in the table's columns.
            table: table.
            once: permanent name of the stream (its checkpoint's id), and number of its micro-batch. A second append
                with the same pair is skipped. Delta then reads the table's whole state, half the time of a small
                commit. None: the caller guarantees a single append.
        """
        writer = rows.write.format("delta").mode("append")
        if once is not None:
            writer = writer.option("txnAppId", f"{once[0]}/{table.path}").option("txnVersion", once[1])
        writer.save(self.location(table))

    def replace(self, rows: DataFrame, table: Table, where: str) -> None:
        """Replace the rows of a table that fulfil a condition, in one commit.

        Args:
            rows: new rows in the table's columns; all must fulfil the condition.
            table: table.
            where: SQL condition.

        Raises:
            ConcurrentModificationException: another writer has changed such rows meanwhile.
        """
        rows.write.format("delta").mode("overwrite").option("replaceWhere", where).save(self.location(table))


def writer_id(spark: SparkSession, checkpoint: str) -> str:
    """Return the id of a checkpoint's stream; a new checkpoint has a new id."""
    row = spark.read.text(f"{checkpoint}/metadata").first()
    if row is None:
        raise HeadroomError(f"{checkpoint}/metadata", "must hold the stream's id", "Remove the checkpoint folder.")
    return str(row[0])

"""Where rows go: Delta tables, each batch once."""

from __future__ import annotations

from delta.tables import DeltaTable
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import StructType

from schemas.errors import HeadroomError
from schemas.tables import Table

# What every table is made with. With a commit every few seconds a month of log, Delta's default, is too much. A file
# that compaction replaced stays for a day, for whoever reads it just then.
PROPERTIES = {
    "delta.logRetentionDuration": "interval 2 days",
    "delta.deletedFileRetentionDuration": "interval 1 day",
}


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
        """Return whether a Delta table is at the table's place."""
        return bool(DeltaTable.isDeltaTable(self.spark, self.location(table)))

    def ensure(self, *tables: Table) -> None:
        """Create the tables that are not there yet, and check those that are.

        Raises:
            HeadroomError: something else is at the place, or a table lacks a column or has it in another type.
        """
        for table in tables:
            if table.path in self._ensured:
                continue
            try:
                self._create(table)
                self._ensured.add(table.path)
            except HeadroomError:
                raise
            except Exception as error:
                raise HeadroomError(
                    self.location(table),
                    f"must be a Delta table of Headroom or a new place that can be written ({_first_line(error)})",
                    "Point store.path elsewhere, or move away what is there.",
                ) from error

    def _create(self, table: Table) -> None:
        location = self.location(table)
        if self.exists(table):
            self._check(table)
            return
        builder = DeltaTable.createIfNotExists(self.spark).location(location).comment(table.grain)
        for column in table.columns:
            builder = builder.addColumn(column.name, column.type, comment=column.meaning)
        for key, value in PROPERTIES.items():
            builder = builder.property(key, value)
        builder.partitionedBy(*table.partition_by).execute()

    def _check(self, table: Table) -> None:
        found = {f.name: f.dataType.simpleString() for f in self.read(table).schema.fields}
        wanted = {f.name: f.dataType.simpleString() for f in _schema(table).fields}
        new = [name for name in wanted if name not in found and name not in (*table.keys, *table.partition_by)]
        wrong = [name for name, kind in wanted.items() if found.get(name) != kind and name not in new]
        if wrong:
            raise HeadroomError(
                self.location(table),
                f"must have the columns of {table.path}, but {', '.join(sorted(wrong))} is missing or of another type",
                "It was written by something else or by another version: point store.path elsewhere, or move it away.",
            )
        if new:
            # An older version wrote it: what it did not know is null in its rows.
            columns = ", ".join(f"{name} {wanted[name]}" for name in new)
            self.spark.sql(f"ALTER TABLE delta.`{self.location(table)}` ADD COLUMNS ({columns})")

    def read(self, table: Table) -> DataFrame:
        """Return the rows of a table that is there."""
        return self.spark.read.format("delta").load(self.location(table))

    def read_since(self, table: Table, tick_ms: int) -> DataFrame:
        """Return the rows of a table of ticks from one tick on, without a look at earlier days."""
        return self.read(table).where(f"date >= to_date(timestamp_millis({tick_ms})) AND tick_ms >= {tick_ms}")

    def last_ticks(self, table: Table) -> dict[str, int]:
        """Return the newest tick of each cluster in a table, epoch milliseconds."""
        rows = self.read(table).groupBy("cluster").agg({"tick_ms": "max"}).collect()
        return {row[0]: row[1] for row in rows}

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

    def rows_of_last_commit(self, table: Table) -> int | None:
        """Return how many rows the last commit to a table wrote; None: it was no plain write."""
        last = DeltaTable.forPath(self.spark, self.location(table)).history(1).select("operation", "operationMetrics")
        (row,) = last.collect()
        written = (row["operationMetrics"] or {}).get("numOutputRows")
        return int(written) if row["operation"] == "WRITE" and written is not None else None


def _schema(table: Table) -> StructType:
    schema = StructType.fromDDL(table.ddl())
    assert isinstance(schema, StructType)
    return schema


def _first_line(error: Exception) -> str:
    return str(error).strip().split("\n", 1)[0][:200]


def writer_id(spark: SparkSession, checkpoint: str) -> str:
    """Return the id of the stream that a checkpoint belongs to: a new checkpoint is a new writer."""
    row = spark.read.text(f"{checkpoint}/metadata").first()
    if row is None:
        raise HeadroomError(f"{checkpoint}/metadata", "must hold the stream's id", "Remove the checkpoint folder.")
    return str(row[0])

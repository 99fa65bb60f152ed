"""What the tests of this tier share: frames of rows, a topic that is a list, a store in memory."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, TypeVar

from hypothesis import Phase, given, settings
from hypothesis import strategies as st
from pyspark.sql import DataFrame, Row, SparkSession
from pyspark.sql import functions as F

from schemas.messages import ROWS
from schemas.tables import Table
from streaming.sinks import Store
from tests.spark.ticks import TICK_MS, assert_covers, records

T = TypeVar("T")


def examples(strategy: st.SearchStrategy[T], count: int) -> list[T]:
    """Examples of a strategy, the same in every run: many of them share one Spark job."""
    found: list[T] = []

    @settings(max_examples=count, phases=[Phase.generate], derandomize=True, database=None)
    @given(strategy)
    def keep(example: T) -> None:
        found.append(example)

    keep()
    return found


def frame(spark: SparkSession, kind: str, rows: list[dict[str, Any]]) -> DataFrame:
    """The rows of messages of one kind, as they are after decoding."""
    assert_covers(rows, kind)
    ddl = f"cluster STRING, tick_ms BIGINT, {ROWS[kind]}"
    return spark.createDataFrame([{"cluster": "c1", "tick_ms": TICK_MS} | row for row in rows], ddl)


class ListTopic:
    """The alert lane as a list of messages; an offset is a place in the list."""

    def __init__(self, spark: SparkSession, messages: Sequence[dict[str, Any]], kept_from: int = 0) -> None:
        self._spark = spark
        self._messages = list(messages)
        self._kept_from = kept_from

    def lane_range(self, first: int, end: int) -> DataFrame:
        """The records from ``first`` up to, not including, ``end`` that retention has left."""
        start = max(first, self._kept_from)
        return records(self._spark, self._messages[start:end], start)


class MemoryStore(Store):
    """Tables as lists of rows, without Delta's commits."""

    def __init__(self, spark: SparkSession) -> None:
        super().__init__(spark, "memory://")
        self.rows: dict[str, list[Row]] = {}

    def exists(self, table: Table) -> bool:
        return table.path in self.rows

    def ensure(self, *tables: Table) -> None:
        for table in tables:
            self.rows.setdefault(table.path, [])

    def read(self, table: Table) -> DataFrame:
        return self.spark.createDataFrame(self.rows.get(table.path, []), table.ddl())

    def append(self, rows: DataFrame, table: Table, once: tuple[str, int] | None = None) -> None:
        self.rows.setdefault(table.path, []).extend(rows.collect())


class Crash(Exception):
    """The process ends here."""


class DyingStore(Store):
    """The store of a process that ends when it has appended to so many tables."""

    def __init__(self, store: Store, appends: int) -> None:
        super().__init__(store.spark, "dying")
        self._store = store
        self._left = appends

    def ensure(self, *tables: Table) -> None:
        self._store.ensure(*tables)

    def read(self, table: Table) -> DataFrame:
        return self._store.read(table)

    def append(self, rows: DataFrame, table: Table, once: tuple[str, int] | None = None) -> None:
        if self._left == 0:
            raise Crash
        self._left -= 1
        self._store.append(rows, table, once)


def checkpoint(folder: Path, name: str) -> str:
    """A checkpoint with nothing but its id, as Spark makes it when a query starts."""
    (folder / name).mkdir(parents=True)
    (folder / name / "metadata").write_text(f'{{"id":"{name}"}}')
    return str(folder / name)


def counts(store: Store, *tables: Table) -> dict[str, tuple[int, int]]:
    """Rows of each table and how many keys they have: the same number where each row stands once."""
    frames = [
        store.read(table)
        .agg(F.count(F.lit(1)), F.count_distinct(F.struct(*[F.col(key) for key in table.keys])))
        .withColumn("path", F.lit(table.path))
        for table in tables
    ]
    united = frames[0]
    for other in frames[1:]:
        united = united.union(other)
    return {row[2]: (row[0], row[1]) for row in united.collect()}

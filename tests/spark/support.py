"""Shared parts of the Spark tests: frames of rows, a topic that is a list, a store in memory."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from functools import reduce
from pathlib import Path
from typing import Any, TypeVar

from deltalake import DeltaTable
from hypothesis import Phase, given, settings
from hypothesis import strategies as st
from pyspark.sql import DataFrame, Row, SparkSession

from headroom.schemas.tables import Table
from headroom.schemas.tick_messages import ROWS
from headroom.streaming.delta.append import append_columns
from headroom.streaming.delta.query_table import query
from headroom.streaming.sources.trust import ANY, Trust
from headroom.streaming.store.store import Store
from tests.spark.ticks import TICK_MS, assert_covers, message, records

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
    return frame_of_clusters(spark, kind, {"c1": rows})


def frame_of_clusters(spark: SparkSession, kind: str, rows: Mapping[str, Sequence[dict[str, Any]]]) -> DataFrame:
    """The rows of messages of one kind, by cluster, as they are after decoding."""
    for of_cluster in rows.values():
        assert_covers(of_cluster, kind)
    ddl = f"cluster STRING, tick_ms BIGINT, {ROWS[kind]}"
    named = [{"cluster": name, "tick_ms": TICK_MS} | row for name, of_cluster in rows.items() for row in of_cluster]
    return spark.createDataFrame(named, ddl)


class ListTopic:
    """The alert partition as a list of messages; an offset is a place in the list."""

    def __init__(
        self, spark: SparkSession, messages: Sequence[dict[str, Any]], kept_from: int = 0, trust: Trust = ANY
    ) -> None:
        self._spark = spark
        self._messages = list(messages)
        self._kept_from = kept_from
        self.trust = trust

    def alert_range(self, first: int, end: int) -> DataFrame:
        """The records from ``first`` up to, not including, ``end`` that retention has left."""
        start = max(first, self._kept_from)
        return records(self._spark, self._messages[start:end], start)


class SpreadTopic(ListTopic):
    """The alert partition as a list of messages, and two partitions of history beside it."""

    def __init__(self, spark: SparkSession) -> None:
        super().__init__(spark, [])
        self.alert_partition = self._messages
        self._history: dict[int, list[dict[str, Any]]] = {1: [], 2: []}

    def send(self, alert_partition: Sequence[dict[str, Any]], history: Sequence[dict[str, Any]], **end: Any) -> None:
        """Append a tick: what is of the alert_partition, what is not, in turn to both partitions, and its end."""
        first, before = len(self.alert_partition), {p: len(of_partition) for p, of_partition in self._history.items()}
        self.alert_partition.extend(alert_partition)
        for number, sent in enumerate(history):
            self._history[1 + number % 2].append(sent)
        ranges = [
            {"partition": p, "first_offset": before[p], "end_offset": len(of_partition)}
            for p, of_partition in self._history.items()
            if len(of_partition) > before[p]
        ]
        kinds = Counter(sent["kind"] for sent in (*alert_partition, *history))
        fields = {
            "first_offset": first,
            "lane_messages": len(alert_partition),
            "messages": kinds,
            "ranges": ranges,
        } | end
        head = {name: alert_partition[0][name] for name in ("cluster", "tick_ms")}
        self.alert_partition.append(message("tick_end", len(alert_partition) + len(history), None, **fields) | head)

    def lose(self, partition: int, offset: int) -> None:
        """Let a record of history be none of a tick's any more."""
        self._history[partition][offset] |= {"cluster": "gone"}

    def repeat(self, partition: int, offset: int) -> None:
        """Deliver a record of history, the last of its partition's tick, a second time."""
        self._history[partition].append(self._history[partition][offset])
        for sent in self.alert_partition:
            for span in sent.get("ranges", ()):
                span["end_offset"] += span["partition"] == partition and span["end_offset"] == offset + 1

    def ranges(self, offsets: Mapping[int, tuple[int, int]]) -> DataFrame:
        """The records of partitions of history, each from its first offset up to, not including, its end."""
        frames = [records(self._spark, self._history[p][first:end], first, p) for p, (first, end) in offsets.items()]
        return reduce(DataFrame.unionByName, frames)


class MemoryStore(Store):
    """Tables as lists of rows, without Delta's commits."""

    def __init__(self, spark: SparkSession) -> None:
        super().__init__(spark, "memory://")
        self.rows: dict[str, list[Row]] = {}

    def exists(self, table: Table) -> bool:
        return table.path in self.rows

    def ensure(self, *tables: Table) -> bool:
        made = not any(map(self.exists, tables))
        for table in tables:
            self.rows.setdefault(table.path, [])
        return made

    def read(self, table: Table) -> DataFrame:
        return self.spark.createDataFrame(self.rows.get(table.path, []), table.ddl())

    def append(self, rows: DataFrame, table: Table, once: tuple[str, int] | None = None) -> None:
        self.rows.setdefault(table.path, []).extend(rows.collect())


class Crash(Exception):
    """The process ends here."""


class DyingStore(Store):
    """The store of a process that ends when it has appended to so many tables."""

    def __init__(self, store: Store, appends: int) -> None:
        super().__init__(store.spark, "dying://")
        self._store = store
        self._left = appends

    def ensure(self, *tables: Table) -> bool:
        return self._store.ensure(*tables)

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


def rows_of(store: Store, table: Table) -> list[dict[str, Any]]:
    """All rows of a table in the order of its keys, read without Spark, which would plan each time."""
    if isinstance(store, MemoryStore):
        found = [row.asDict(recursive=True) for row in store.rows.get(table.path, [])]
    else:
        root = store.location(table).removesuffix(table.path)
        columns = ", ".join(f'"{name}"' for name in table.names())
        found = query(root, table.path, f"SELECT {columns} FROM data") or []
    return sorted(found, key=lambda row: tuple(map(str, (row[key] for key in table.keys))))


def write_rows(store: Store, table: Table, rows: Sequence[Mapping[str, Any]]) -> None:
    """Append rows to an existing table without Spark, whose commits take longer; a column that is left out is null."""
    columns = {name: [row.get(name) for row in rows] for name in table.names()}
    append_columns(DeltaTable(store.location(table)), columns)


def counts(store: Store, *tables: Table) -> dict[str, tuple[int, int]]:
    """Rows of each table and how many keys they have: the same number where each row is there once."""
    rows = {table: rows_of(store, table) for table in tables}
    return {
        table.path: (len(found), len({tuple(row[key] for key in table.keys) for row in found}))
        for table, found in rows.items()
    }

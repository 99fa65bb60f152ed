"""Tables and checkpoints of older versions go on under this one, by Spark too."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import date, datetime, timezone
from pathlib import Path
from typing import Any

import pytest
import table_definitions
from deltalake import DeltaTable
from pyspark.sql import DataFrame, SparkSession

from headroom.schemas.tables import (
    BRONZE_TICKS,
    LEADER_DISTRIBUTION,
    MESSAGES,
    TABLES,
    THROTTLE_HEADROOM,
    Column,
    Table,
)
from headroom.streaming.delta import append as delta_append
from headroom.streaming.store.store import Store
from tests.spark.support import rows_of, write_rows
from tests.unit.builders.gold_rows import gold_row

DAY = date(2027, 1, 15)
OLDEST = {path: definitions[0] for path, definitions in table_definitions.definitions().items()}


def made(store: Store, table: Table, rows: list[dict[str, Any]]) -> None:
    """A table with rows, as another version left it."""
    delta_append.create(store.location(table), table)
    if rows:
        write_rows(store, table, rows)


def comments(store: Store, table: Table) -> dict[str, str | None]:
    return {f.name: f.metadata.get("comment") for f in DeltaTable(store.location(table)).schema().fields}


@pytest.fixture
def at_a_url(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every table is upgraded by Spark, as at a URL."""
    monkeypatch.setattr("headroom.streaming.store.store.local_path", lambda location: None)


def test_tables_of_the_first_version_are_upgraded_where_spark_makes_the_commits(
    spark: SparkSession, tmp_path: Path, at_a_url: None
) -> None:
    store = Store(spark, str(tmp_path))
    # One with new fields in the midst of nested structs, one with a new column.
    for table in (THROTTLE_HEADROOM, LEADER_DISTRIBUTION):
        made(store, OLDEST[table.path], [gold_row(OLDEST[table.path], ("c", 1)) | {"date": DAY}])
    store.ensure(THROTTLE_HEADROOM, LEADER_DISTRIBUTION)
    for table in (THROTTLE_HEADROOM, LEADER_DISTRIBUTION):
        new = gold_row(table, ("c", 2)) | {"date": DAY}
        store.append(spark.createDataFrame([new], table.ddl()), table)
        before, after = rows_of(store, table)
        assert after == new
        old = OLDEST[table.path].names()
        assert [before[name] for name in table.names() if name not in old] == [None] * (len(table.names()) - len(old))
        added = {column.name: column.meaning for column in table.columns if column.name not in old}
        assert added.items() <= comments(store, table).items()


def test_a_store_with_the_first_definition_of_every_table_is_opened_at_the_start(
    spark: SparkSession, tmp_path: Path
) -> None:
    store = Store(spark, str(tmp_path))
    for table in TABLES:
        made(store, OLDEST[table.path], [])
    store.ensure(*TABLES)
    for table in TABLES:
        fields = {f.name for f in DeltaTable(store.location(table)).schema().fields}
        assert fields == set(table.names()), table.path


def test_a_stream_that_lags_reads_across_an_upgrade_with_the_same_checkpoint(
    spark: SparkSession, tmp_path: Path
) -> None:
    store, checkpoint = Store(spark, str(tmp_path)), str(tmp_path / "checkpoint")
    columns = [Column(c.name, c.type, f"old: {c.meaning}") for c in BRONZE_TICKS.columns if c.name != "key"]
    older = replace(BRONZE_TICKS, columns=tuple(columns))
    assert len(older.columns) < len(BRONZE_TICKS.columns)
    delta_append.create(store.location(older), older)
    read: list[tuple[int, Any]] = []

    def record(offset: int, table: Table, **more: Any) -> None:
        row = {"topic": "t", "partition": 0, "offset": offset, "value": b"{}", "date": DAY} | more
        row |= {"timestamp": datetime(2027, 1, 15, tzinfo=timezone.utc)}
        frame = spark.createDataFrame([{name: row.get(name) for name in table.names()}], table.ddl())
        store.append(frame, table)

    def read_all() -> None:
        stream = spark.readStream.format("delta").option("ignoreDeletes", "true").load(store.location(BRONZE_TICKS))
        writer = stream.writeStream.option("checkpointLocation", checkpoint).foreachBatch(collect)
        query = writer.trigger(availableNow=True).start()
        query.awaitTermination(300)

    def collect(batch: DataFrame, batch_id: int) -> None:
        names = ["offset", "key"] if "key" in batch.columns else ["offset"]
        read.extend((row["offset"], row["key"] if "key" in names else None) for row in batch.select(names).collect())

    record(1, older)
    read_all()
    # The stream is behind when the next version starts.
    record(2, older)
    store.ensure(BRONZE_TICKS)
    record(3, BRONZE_TICKS, key=b"k")
    read_all()
    assert sorted(read) == [(1, None), (2, None), (3, bytearray(b"k"))]
    assert len(list(Path(checkpoint, "commits").glob("[0-9]*"))) == 2


def test_a_quote_in_a_meaning_is_a_comment(spark: SparkSession, tmp_path: Path, at_a_url: None) -> None:
    store = Store(spark, str(tmp_path))
    made(store, MESSAGES, [])
    newer = replace(MESSAGES, columns=(*MESSAGES.columns, Column("bytes", "BIGINT", "the message's \\ size")))
    store.ensure(newer)
    assert comments(store, MESSAGES)["bytes"] == "the message's \\ size"
    assert json.loads(DeltaTable(store.location(MESSAGES)).schema().to_json())["fields"][-1]["name"] == "bytes"

"""Tables that are there already: those of an older version are brought up to this one, all others are told."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import date
from pathlib import Path
from typing import Any

import pytest
from delta.tables import DeltaTable
from pyspark.sql import SparkSession

from headroom.schemas.errors import HeadroomError
from headroom.schemas.tables import (
    ALERT_EVENTS,
    BRONZE_TICKS,
    MESSAGES,
    QUARANTINE,
    TABLES,
    THROTTLE_HEADROOM,
    Column,
    Table,
)
from headroom.streaming.delta.properties import properties
from headroom.streaming.store.event_log import EventLog
from headroom.streaming.store.store import Store

DAY = date(2027, 1, 15)
MESSAGE = {"cluster": "c1", "tick_ms": 1, "date": DAY, "kind": "lags", "seq": 0}


def without(table: Table, column: str) -> Table:
    return replace(table, columns=tuple(c for c in table.columns if c.name != column))


def with_types(table: Table, change: Callable[[str], str]) -> Table:
    return replace(table, columns=tuple(Column(c.name, change(c.type), c.meaning) for c in table.columns))


def write_old(spark: SparkSession, path: Path, table: Table, row: dict[str, Any]) -> None:
    """Leave a table with one row, as a version without properties of its own would."""
    rows = spark.createDataFrame([row], table.ddl()).write.format("delta")
    rows.partitionBy(*table.partition_by).save(str(path / table.path))


def table_properties(spark: SparkSession, path: Path, table: Table) -> dict[str, str]:
    found: dict[str, str] = DeltaTable.forPath(spark, str(path / table.path)).detail().collect()[0]["properties"]
    return found


def logged(path: Path, table: Table, action: str) -> list[dict[str, Any]]:
    """Every action of a kind in the JSON commits of a table, in order."""
    commits = sorted((path / table.path / "_delta_log").glob("*.json"))
    actions = [json.loads(line) for commit in commits for line in commit.read_text(encoding="utf-8").splitlines()]
    return [one[action] for one in actions if action in one]


def test_a_table_of_an_older_version_gets_columns_and_properties_of_this_one(
    spark: SparkSession, tmp_path: Path
) -> None:
    write_old(spark, tmp_path, without(MESSAGES, "rows"), MESSAGE)
    store = Store(spark, str(tmp_path))
    store.ensure(MESSAGES)
    assert properties(MESSAGES).items() <= table_properties(spark, tmp_path, MESSAGES).items()
    store.append(spark.createDataFrame([MESSAGE | {"seq": 1, "rows": 7}], MESSAGES.ddl()), MESSAGES)
    rows = store.read(MESSAGES).orderBy("seq").collect()
    assert [(row["seq"], row["rows"]) for row in rows] == [(0, None), (1, 7)]


def test_a_struct_of_an_older_version_gets_the_fields_that_are_new(spark: SparkSession, tmp_path: Path) -> None:
    # One in the middle and one at the end of the fields of this version.
    older = with_types(THROTTLE_HEADROOM, lambda of: of.replace(" followers INT,", "").replace(", stalled BOOLEAN", ""))
    assert older != THROTTLE_HEADROOM
    base_row = {"cluster": "c1", "tick_ms": 1, "date": DAY, "broker": 1, "role": "leader"}
    write_old(spark, tmp_path, older, base_row | {"partitions": [{"topic": "old", "leader": 1}]})
    store = Store(spark, str(tmp_path))
    store.ensure(THROTTLE_HEADROOM)
    new = base_row | {"tick_ms": 2, "partitions": [{"topic": "new", "followers": 3, "leader": 1, "stalled": True}]}
    store.append(spark.createDataFrame([new], THROTTLE_HEADROOM.ddl()), THROTTLE_HEADROOM)
    rows = store.read(THROTTLE_HEADROOM).orderBy("tick_ms").selectExpr("inline(partitions)").collect()
    assert [(row["topic"], row["followers"], row["leader"], row["stalled"]) for row in rows] == [
        ("old", None, 1, None),
        ("new", 3, 1, True),
    ]


def test_a_table_that_is_as_it_should_be_is_left_alone(spark: SparkSession, tmp_path: Path) -> None:
    Store(spark, str(tmp_path)).ensure(MESSAGES, BRONZE_TICKS)
    commits = len(logged(tmp_path, MESSAGES, "commitInfo"))
    Store(spark, str(tmp_path)).ensure(MESSAGES, BRONZE_TICKS)
    assert len(logged(tmp_path, MESSAGES, "commitInfo")) == commits


def test_every_table_is_made_without_spark_as_spark_makes_it(spark: SparkSession, tmp_path: Path) -> None:
    by_spark, prompt = Store(spark, str(tmp_path / "url")), Store(spark, str(tmp_path / "path"))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("headroom.streaming.store.store.local_path", lambda location: None)
        assert by_spark.ensure(*TABLES)
    assert prompt.ensure(*TABLES)
    for table in TABLES:
        (made,), (as_wanted,) = (logged(tmp_path / place, table, "metaData") for place in ("path", "url"))
        assert json.loads(made["schemaString"]) == json.loads(as_wanted["schemaString"]), table.path
        same = ("description", "partitionColumns", "configuration")
        assert [made[key] for key in same] == [as_wanted[key] for key in same], table.path
        assert prompt.read(table).schema == by_spark.read(table).schema


def test_only_who_has_made_the_tables_knows_that_they_are_empty(spark: SparkSession, tmp_path: Path) -> None:
    store = Store(spark, str(tmp_path))
    assert store.ensure(MESSAGES, QUARANTINE)
    assert not store.ensure(MESSAGES, QUARANTINE)
    assert not Store(spark, str(tmp_path)).ensure(MESSAGES, ALERT_EVENTS)


@pytest.mark.parametrize(
    ("left", "reasons"),
    [
        (replace(MESSAGES, partition_by=()), ["its folders are by nothing, not by date"]),
        (replace(MESSAGES, partition_by=("cluster", "date")), ["its folders are by cluster, date, not by date"]),
        (without(MESSAGES, "seq"), ["seq is missing"]),
        (with_types(MESSAGES, lambda of: "STRING" if of == "INT" else of), ["seq is string, not int"]),
    ],
    ids=["no folders", "other folders", "no key", "another type"],
)
def test_a_table_that_cannot_be_upgraded_is_an_error(
    spark: SparkSession, tmp_path: Path, left: Table, reasons: Sequence[str]
) -> None:
    row = {name: str(value) if left.ddl().count(f"{name} STRING") else value for name, value in MESSAGE.items()}
    write_old(spark, tmp_path, left, {name: value for name, value in row.items() if name in left.names()})
    with pytest.raises(HeadroomError) as error:
        Store(spark, str(tmp_path)).ensure(MESSAGES)
    assert error.value.subject == str(tmp_path / MESSAGES.path)
    assert [part for part in reasons if part not in error.value.rule] == []
    assert "move it away" in error.value.remedy


def test_an_unknown_column_without_nulls_is_an_error_before_a_row_is_written(
    spark: SparkSession, tmp_path: Path
) -> None:
    builder = DeltaTable.create(spark).location(str(tmp_path / MESSAGES.path))
    for column in MESSAGES.columns:
        builder = builder.addColumn(column.name, column.type)
    builder.addColumn("theirs", "INT", nullable=False).partitionedBy("date").execute()
    with pytest.raises(HeadroomError, match="theirs must not be null"):
        Store(spark, str(tmp_path)).ensure(MESSAGES)


def test_columns_of_a_newer_version_stay_and_are_null_in_the_rows_of_this_one(
    spark: SparkSession, tmp_path: Path
) -> None:
    newer = replace(MESSAGES, columns=(*MESSAGES.columns, Column("bytes", "BIGINT", "size")))
    write_old(spark, tmp_path, newer, MESSAGE | {"bytes": 5})
    store = Store(spark, str(tmp_path))
    store.ensure(MESSAGES)
    store.append(spark.createDataFrame([MESSAGE | {"seq": 1}], MESSAGES.ddl()), MESSAGES)
    assert [row["bytes"] for row in store.read(MESSAGES).orderBy("seq").collect()] == [5, None]


def test_a_location_that_holds_something_else_is_an_error(spark: SparkSession, tmp_path: Path) -> None:
    foreign = tmp_path / MESSAGES.path
    spark.range(3).write.format("delta").save(str(foreign))
    with pytest.raises(HeadroomError) as error:
        Store(spark, str(tmp_path)).ensure(MESSAGES)
    assert error.value.subject == str(foreign)
    assert "cluster is missing; tick_ms is missing; kind is missing" in error.value.rule

    taken = tmp_path / QUARANTINE.path
    taken.parent.mkdir(parents=True, exist_ok=True)
    taken.write_text("a file")
    with pytest.raises(HeadroomError) as error:
        Store(spark, str(tmp_path)).ensure(QUARANTINE)
    assert error.value.subject == str(taken)
    assert "store.path" in error.value.remedy


def test_a_folder_of_other_files_is_not_taken_over(spark: SparkSession, tmp_path: Path) -> None:
    spark.range(3).write.parquet(str(tmp_path / BRONZE_TICKS.path))
    with pytest.raises(HeadroomError, match="must be a Delta table of Headroom or a new place"):
        Store(spark, str(tmp_path)).ensure(BRONZE_TICKS)


def test_foreign_files_at_the_location_of_events_are_an_error_at_the_start(spark: SparkSession, tmp_path: Path) -> None:
    spark.range(3).write.parquet(str(tmp_path / ALERT_EVENTS.path))
    with pytest.raises(HeadroomError, match="must be a Delta table of Headroom or a new place"):
        EventLog(spark, Store(spark, str(tmp_path))).last_events()


def test_the_table_of_events_has_its_properties_from_the_start(spark: SparkSession, tmp_path: Path) -> None:
    assert EventLog(spark, Store(spark, str(tmp_path))).last_events() == []
    assert properties(ALERT_EVENTS).items() <= table_properties(spark, tmp_path, ALERT_EVENTS).items()


def test_the_log_says_of_a_file_which_clusters_and_ticks_it_has_and_nothing_more(
    spark: SparkSession, tmp_path: Path
) -> None:
    store = Store(spark, str(tmp_path))
    store.ensure(MESSAGES)
    rows = [MESSAGE, MESSAGE | {"cluster": "c2", "tick_ms": 9}]
    store.append(spark.createDataFrame(rows, MESSAGES.ddl()).coalesce(1), MESSAGES)
    (added,) = logged(tmp_path, MESSAGES, "add")
    stats = json.loads(added["stats"])
    assert stats["minValues"] == {"cluster": "c1", "tick_ms": 1}
    assert stats["maxValues"] == {"cluster": "c2", "tick_ms": 9}


def test_the_last_ticks_are_those_of_the_last_two_days(spark: SparkSession, tmp_path: Path) -> None:
    store = Store(spark, str(tmp_path))
    store.ensure(MESSAGES)
    assert store.last_ticks(MESSAGES) == {}
    rows = [
        MESSAGE | {"cluster": cluster, "date": date(2027, 1, day), "tick_ms": day}
        for cluster, day in (("today", 15), ("today", 14), ("yesterday", 14), ("gone", 13))
    ]
    store.append(spark.createDataFrame(rows, MESSAGES.ddl()), MESSAGES)
    assert store.last_ticks(MESSAGES) == {"today": 15, "yesterday": 14}

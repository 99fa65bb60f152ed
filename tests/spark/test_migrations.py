"""Migrations from the messages of a tick to their tables, and ticks without any."""

from __future__ import annotations

from datetime import date
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from benchmarks.groups.fuzz.made import tick as fuzzed_tick
from headroom.schemas.tables import (
    MESSAGES,
    MIGRATION_GROUPS,
    MIGRATION_OFFSETS,
    MIGRATION_PROGRESS,
    MIGRATION_SYNCS,
    QUARANTINE,
)
from headroom.schemas.tick_messages import COUNTED_KINDS
from headroom.streaming.jobs.silver import HistoryJob, silver_rows
from headroom.streaming.queries.bronze_query import bronze
from headroom.streaming.queries.whole_ticks import CompleteTicksReader
from headroom.streaming.store.store import Store
from headroom.streaming.transforms.decode import with_headers
from headroom.streaming.transforms.migrations import (
    MIGRATION_COLUMNS,
    evaluated_migrations,
    migration_rows,
    ticks_with_migrations,
)
from tests.spark.support import ListTopic, rows_of
from tests.spark.ticks import TICK_MS, broker, message, move, records

FUZZED = {m["kind"]: m for m in fuzzed_tick("c1", TICK_MS)}
(ROW,) = FUZZED["migrations"]["rows"]
SYNC = {name: values[0] for name, values in FUZZED["migration_syncs"]["columns"].items()}
TICK = ("c1", TICK_MS)


def sent(migrations: int, claimed: int) -> list[dict[str, Any]]:
    """A tick with some messages of migrations, of which its end has another number."""
    rows = [ROW | {"partition": number} for number in range(migrations)]
    return [
        message("brokers", 0, [broker(1, 5, None)]),
        message("moves", 1, [move("t", 0, 1, [1])]),
        *(message("migrations", 2 + number, [row]) for number, row in enumerate(rows)),
        message(
            "tick_end",
            9,
            None,
            first_offset=0,
            lane_messages=2,
            messages={"brokers": 1, "moves": 1} | ({"migrations": claimed} if claimed else {}),
        ),
    ]


def evaluated(spark: SparkSession, messages: list[dict[str, Any]]) -> tuple[list[Any], Any]:
    """Complete ticks of some messages, and the progress of their migrations."""
    reader = CompleteTicksReader(ListTopic(spark, messages), MIGRATION_COLUMNS)  # type: ignore[arg-type]
    with reader.read(records(spark, messages)) as complete:
        return complete.ticks, evaluated_migrations(complete.messages, ticks_with_migrations(complete.status))


def test_a_tick_has_the_progress_of_each_partition_and_the_rows_of_both_tables(spark: SparkSession) -> None:
    ticks, progress = evaluated(spark, sent(2, 2))
    assert ticks == [TICK]
    assert sorted(one.partition for one in progress[TICK]) == [0, 1]
    rows = migration_rows(progress)
    columns = [name for name in MIGRATION_PROGRESS.names() if name != "date"]
    assert [sorted(row) for row in rows[MIGRATION_PROGRESS][TICK]] == [sorted(columns)] * 2
    assert [row["left_offsets"] for row in rows[MIGRATION_GROUPS][TICK]] == [1_600] * 2


def test_a_tick_without_migrations_asks_spark_for_nothing(spark: SparkSession) -> None:
    assert evaluated(spark, sent(0, 0)) == ([TICK], {})
    assert migration_rows({}) == {MIGRATION_GROUPS: {}, MIGRATION_PROGRESS: {}}


def test_a_message_that_is_missing_costs_the_progress_and_not_the_verdicts(spark: SparkSession) -> None:
    assert evaluated(spark, sent(1, 2)) == ([TICK], {})


def test_a_message_that_cannot_be_read_costs_its_own_partitions(spark: SparkSession) -> None:
    messages = sent(2, 2)
    messages[2]["rows"][0]["end_offset"] = "x"
    ticks, progress = evaluated(spark, messages)
    assert ticks == [TICK]
    assert [one.partition for one in progress[TICK]] == [1]


def test_a_reader_that_knows_no_such_messages_finds_the_tick_complete(spark: SparkSession) -> None:
    known = [one for one in sent(2, 2) if one["kind"] in (*COUNTED_KINDS, "tick_end")]
    assert evaluated(spark, known) == ([TICK], {})


def test_silver_has_a_row_for_each_cluster_and_the_reason_of_one_that_was_not_read(spark: SparkSession) -> None:
    down = ROW | {"partition": 1, "origin": None, "origin_error": "timed out"}
    headers = with_headers(records(spark, [message("migrations", 2, [ROW, down])]))
    rows = {(r["partition"], r["side"]): r for r in silver_rows(headers, MIGRATION_OFFSETS, ["migrations"]).collect()}
    assert sorted(rows) == [(0, "origin"), (0, "target"), (1, "origin"), (1, "target")]
    assert (rows[0, "origin"]["log_end_offset"], rows[0, "origin"]["error"]) == (1_000, None)
    window_s = rows[0, "origin"]["window_ms"] / 1000
    assert rows[0, "origin"]["offsets_per_s"] == pytest.approx(500 / window_s)
    assert (rows[1, "origin"]["log_end_offset"], rows[1, "origin"]["error"]) == (None, "timed out")


def sync(offset: int, days: int = 0, **more: Any) -> dict[str, Any]:
    """A sync that was written some days before its tick."""
    return SYNC | {"sync_offset": offset, "after_offset": None, "written_ms": TICK_MS - days * 86_400_000} | more


def test_a_sync_is_stored_once_however_often_and_in_whichever_tick_it_comes(
    spark: SparkSession, tmp_path: Path
) -> None:
    store = Store(spark, str(tmp_path / "store"))
    store.ensure(MIGRATION_SYNCS, QUARANTINE, MESSAGES)

    def write(batch: int, *ticks: list[dict[str, Any]]) -> None:
        job = HistoryJob(spark, ListTopic(spark, []), store, str(tmp_path / "c"), 1.0)  # type: ignore[arg-type]
        messages = [
            message("migration_syncs", 0, rows, TICK_MS + 1_000 * (batch + at)) for at, rows in enumerate(ticks)
        ]
        job.write_silver(bronze(records(spark, messages)), batch)

    # The second tick has one of the first again, because that was not acknowledged.
    write(0, [sync(40, 1), sync(50, after_offset=40)], [sync(50, after_offset=40), sync(60, after_offset=50)])
    # A collector that starts again reads the topic from its start. Of another topic of syncs are others.
    write(2, [sync(50), sync(60, after_offset=50), sync(70, after_offset=60)], [sync(50, sync_topic_id="other")])
    write(2, [sync(70, after_offset=60)])
    rows = rows_of(store, MIGRATION_SYNCS)
    found = sorted((r["sync_topic_id"], r["sync_offset"], r["after_offset"], r["tick_ms"] - TICK_MS) for r in rows)
    assert found == [
        ("other", 50, None, 3_000),
        ("s", 40, None, 0),
        ("s", 50, 40, 0),
        ("s", 60, 50, 1_000),
        ("s", 70, 60, 2_000),
    ]
    assert {r["date"] for r in rows} == {date(2027, 1, 14), date(2027, 1, 15)}
    assert rows_of(store, QUARANTINE) == []


def test_a_sync_without_what_identifies_it_is_rejected(spark: SparkSession, tmp_path: Path) -> None:
    store = Store(spark, str(tmp_path / "store"))
    store.ensure(MIGRATION_SYNCS, QUARANTINE, MESSAGES)
    job = HistoryJob(spark, ListTopic(spark, []), store, str(tmp_path / "c"), 1.0)  # type: ignore[arg-type]
    messages = [message("migration_syncs", 0, [sync(40, origin_topic_id=None)])]
    job.write_silver(bronze(records(spark, messages)), 0)
    assert rows_of(store, MIGRATION_SYNCS) == []
    (bad,) = rows_of(store, QUARANTINE)
    assert "origin_topic_id" in bad["reason"]

"""Migrations from the messages of a tick to their tables, and ticks without any."""

from __future__ import annotations

import json
from datetime import date
from pathlib import Path
from typing import Any
from unittest.mock import MagicMock

import pytest
from hypothesis import strategies as st
from pyspark.sql import SparkSession

from benchmarks.groups.fuzz.made import tick as fuzzed_tick
from headroom.alerts.engine import AlertEngine
from headroom.alerts.watched_cluster import WatchedCluster
from headroom.schemas.alerts import AlertEvent
from headroom.schemas.config import ClusterSettings, Settings
from headroom.schemas.tables import (
    MESSAGES,
    MIGRATION_GROUPS,
    MIGRATION_OFFSETS,
    MIGRATION_PROGRESS,
    MIGRATION_SYNCS,
    QUARANTINE,
)
from headroom.schemas.tick_messages import COUNTED_KINDS
from headroom.streaming.jobs import silver
from headroom.streaming.jobs.alert_path import AlertPath, AlertPathSource
from headroom.streaming.jobs.silver import HistoryJob, silver_rows, value_rejected
from headroom.streaming.queries.bronze_query import bronze
from headroom.streaming.queries.whole_ticks import CompleteTicksReader
from headroom.streaming.store.event_log import EventLog
from headroom.streaming.store.store import Store
from headroom.streaming.transforms.decode import with_headers
from headroom.streaming.transforms.migrations import (
    MIGRATION_COLUMNS,
    evaluated_migrations,
    migration_rows,
    ticks_with_migrations,
    ticks_without_migrations,
)
from headroom.streaming.transforms.moves.write_rate import with_write_rate
from tests.spark.support import ListTopic, checkpoint, examples, frame, rows_of
from tests.spark.ticks import TICK_MS, broker, log, message, move, records
from tests.unit.builders.migration_progress import reading_of_row
from tests.unit.fakes.alert_path_listener import CallingListener

FUZZED = {m["kind"]: m for m in fuzzed_tick("c1", TICK_MS)}
(ROW,) = FUZZED["migrations"]["rows"]
SYNC = {name: values[0] for name, values in FUZZED["migration_syncs"]["columns"].items()}
TICK = ("c1", TICK_MS)


def sent(migrations: int, claimed: int | None) -> list[dict[str, Any]]:
    """A tick with some messages of migrations, of which its end has another number; None: it has none."""
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
            messages={"brokers": 1, "moves": 1} | ({} if claimed is None else {"migrations": claimed}),
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
    assert evaluated(spark, sent(0, None)) == ([TICK], {})
    assert evaluated(spark, sent(0, 0)) == ([TICK], {})
    assert migration_rows({}) == {MIGRATION_GROUPS: {}, MIGRATION_PROGRESS: {}}


@pytest.mark.parametrize(("migrations", "claimed", "expected"), [(0, 0, [TICK]), (0, None, []), (0, 1, []), (1, 1, [])])
def test_only_a_collector_that_has_read_the_agreements_knows_that_there_is_no_migration(
    spark: SparkSession, migrations: int, claimed: int | None, expected: list[Any]
) -> None:
    messages = sent(migrations, claimed)
    reader = CompleteTicksReader(ListTopic(spark, messages), MIGRATION_COLUMNS)  # type: ignore[arg-type]
    with reader.read(records(spark, messages)) as complete:
        assert ticks_without_migrations(complete.status) == expected


def test_messages_that_cannot_be_read_are_no_tick_without_a_migration(spark: SparkSession) -> None:
    messages = sent(1, 1)
    messages[2]["rows"][0]["end_offset"] = "x"
    assert evaluated(spark, messages) == ([TICK], {})


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
    assert (rows[0, "origin"]["size_bytes"], rows[0, "target"]["size_bytes"]) == (9_000_000, None)


SIZES = ("log_end_offset", "log_start_offset", "size_bytes")
SIZE_COLUMNS = ("broker", "read_ms", "prev_read_ms", *SIZES, *(f"prev_{name}" for name in SIZES))


@st.composite
def sizes(draw: st.DrawFn) -> dict[str, Any]:
    """Two samples of a log, which may have grown, been deleted or cut, or be unknown."""
    few = st.one_of(st.integers(0, 3), st.none())
    samples = {f"{when}{name}": draw(few) for name in SIZES for when in ("", "prev_")}
    window_ms = draw(st.sampled_from([0, 5_000, 10_000, None]))
    earlier_ms = None if window_ms is None else TICK_MS - window_ms
    return {"broker": 1, "read_ms": TICK_MS, "prev_read_ms": earlier_ms, **samples}


def test_clients_write_to_the_origin_by_the_rule_for_moving_partitions(spark: SparkSession) -> None:
    """There the mean size of the log's own records is used for a topic that the broker recompresses."""
    cases = examples(st.tuples(sizes(), st.sampled_from(["delete", "compact", None]), st.booleans()), 300)
    rows = [
        move(
            *("t", number, 1, [1]),
            logs=[sample | dict.fromkeys(("lag_offsets", "prev_lag_offsets", "lag_source", "unchanged_since_ms"))],
            compacted=None if policy is None else policy == "compact",
            remote_storage=is_remote,
            recompressed=True,
        )
        for number, (sample, policy, is_remote) in enumerate(cases)
    ]
    expected = {
        row["partition"]: row["write_bytes_per_s"] for row in with_write_rate(frame(spark, "moves", rows)).collect()
    }
    for number, (sample, policy, is_remote) in enumerate(cases):
        reading = reading_of_row(
            ROW | {"origin_size": sample, "cleanup_policy": policy, "remote_storage": is_remote}, TICK_MS
        )
        assert reading is not None
        rate = expected[number]
        assert reading.write_bytes_per_s == (rate if rate is None else pytest.approx(rate)), cases[number]
    assert {None, 0.0} < set(expected.values())


MB = 1_000_000
LISTED = {"leader_listed": [2], "follower_listed": [1, 3]}


def switching_tick(cluster: str, number: int, first_offset: int, size: dict[str, Any] | None) -> list[dict[str, Any]]:
    """Broker 2 sends 2 MB/s of t-0 to two followers, and orders-0, which two follow too, has no writes yet.

    600,000 offsets are left to E at 2,000/s: clients come in 5 min.
    """
    at_rest = [log(broker_id, 10, 0.0) for broker_id in (1, 2, 3)]
    logs = [log(broker_id, 90_000, 2 * MB) for broker_id in (1, 2)]
    moves = [
        move("t", 0, 2, [2, 1, 3], isr=[2, 1], adding=[3], logs=[*logs, log(3, 10_000, MB)], **LISTED),
        move("orders", 0, 2, [2, 1, 3], logs=at_rest, **LISTED),
    ]
    ends = {"log_end_offset": 100_000, "prev_log_end_offset": 80_000, "stable_offset": 100_000}
    times = {"read_ms": TICK_MS, "prev_read_ms": TICK_MS - 10_000}
    of_topic = {"topic": "orders", "target_topic": "orders", "end_offset": 700_000, "origin_size": size}
    of_topic |= {"origin_read_ms": None, "target_leader": 2, "throttled_followers": 2}
    migrating = ROW | of_topic | {"origin": ROW["origin"] | ends | times}
    sent = [
        message("brokers", 0, [broker(each, 5_600_000, 5_600_000) for each in (1, 2, 3)]),
        message("moves", 1, moves),
        message("migrations", 2, [migrating]),
        message(
            "tick_end",
            3,
            None,
            first_offset=first_offset,
            lane_messages=2,
            rate_window_ms=10_000,
            messages={"brokers": 1, "moves": 1, "migrations": 1},
        ),
    ]
    return [one | {"cluster": cluster, "tick_ms": TICK_MS + number * 1000} for one in sent]


def test_a_throttle_is_at_risk_before_the_switch_by_the_rate_of_the_origin_alone(
    spark: SparkSession, tmp_path: Path
) -> None:
    """Of one cluster the sizes on the origin are known, of the other one not: it gets no number."""
    # 1,000 bytes a record.
    size = {name: value for name, value in log(1, 100_000, 2 * MB).items() if name in SIZE_COLUMNS}
    messages: list[dict[str, Any]] = []
    begins = []
    for number in range(5):
        begins.append(len(messages))
        for cluster, own in (("c1", size), ("c2", None)):
            messages += switching_tick(cluster, number, len(messages), own)
    checkpoint(tmp_path, "alerts")
    watched = [Settings(cluster=ClusterSettings(name=name, bootstrap_servers="b:9092")) for name in ("c1", "c2")]
    engine = AlertEngine(watched[0], lambda: TICK_MS, "c1.toml", [WatchedCluster(watched[1], "c2.toml")])
    events: list[AlertEvent] = []
    path = AlertPath(
        spark,
        AlertPathSource(ListTopic(spark, messages), str(tmp_path / "alerts")),  # type: ignore[arg-type]
        EventLog(spark, Store(spark, str(tmp_path / "store"))),
        engine,
        CallingListener(lambda *_: None, events.extend),
    )
    path.warm_up = MagicMock()
    # A throttle is compared with the migrations of the batch before.
    for number, (begin, end) in enumerate(zip(begins, [*begins[1:], len(messages)], strict=True)):
        path._process_batch(records(spark, messages[begin:end], begin), number)
    found = [event for event in events if event.kind == "throttle_at_risk"]
    assert [(event.cluster, event.subject, event.state) for event in found] == [
        ("c1", "broker 2 as leader", "pending"),
        ("c1", "broker 2 as leader", "firing"),
    ]
    evidence = json.loads(found[0].evidence)
    assert (evidence["migration"], evidence["arriving_bytes_per_s"]) == ("m", 4 * MB)
    # 4.0 MB/s now, and 2 MB/s for each of two followers.
    assert evidence["required_then_bytes_per_s"] == pytest.approx(8 * MB)
    assert evidence["switch_ms"] == found[0].tick_ms - 1_000 + 300_000
    assert "from 08:05:00 UTC on, and its throttle of 5.60 MB/s would be 2.40 MB/s too low" in found[0].summary
    assert [one.write_bytes_per_s for cluster in ("c1", "c2") for one in engine.inputs(cluster).migrations.value] == [  # type: ignore[union-attr]
        2 * MB,
        None,
    ]


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


def test_messages_of_migrations_are_parsed_again_only_if_a_row_is_missing(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = Store(spark, str(tmp_path / "store"))
    store.ensure(MIGRATION_OFFSETS, QUARANTINE, MESSAGES)
    again: list[str] = []
    monkeypatch.setattr(silver, "value_rejected", lambda valid, kind: (again.append(kind), rejected(valid, kind))[1])
    rejected = value_rejected
    job = HistoryJob(spark, ListTopic(spark, []), store, str(tmp_path / "c"), 1.0)  # type: ignore[arg-type]
    job.write_silver(bronze(records(spark, [message("migrations", 0, [ROW, ROW | {"partition": 1}])])), 0)
    assert (len(rows_of(store, MIGRATION_OFFSETS)), again) == (4, [])
    bad = message("migrations", 0, [ROW | {"topic": None}], TICK_MS + 1_000)
    job.write_silver(bronze(records(spark, [bad])), 1)
    assert (len(rows_of(store, MIGRATION_OFFSETS)), again) == (4, ["migrations"])
    (row,) = rows_of(store, QUARANTINE)
    assert "topic" in row["reason"]

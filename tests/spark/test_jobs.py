"""Each row once: batches that run twice, ticks that are delivered again, crashes between two tables."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from headroom.schemas.alerts import AlertEvent
from headroom.schemas.tables import (
    ALERT_EVENTS,
    BYTES_PER_SEC,
    FETCHER_LAG,
    LEADER_DISTRIBUTION,
    LOG_END_OFFSETS,
    MESSAGES,
    QUARANTINE,
    THROTTLE_HEADROOM,
    THROTTLES,
    Table,
)
from headroom.streaming.jobs.gold import TABLES, GoldJob
from headroom.streaming.jobs.silver import HistoryJob
from headroom.streaming.queries.bronze_query import bronze
from headroom.streaming.session import throughput_session
from headroom.streaming.store.event_log import EventLog
from headroom.streaming.store.low_latency_table import record_rows
from headroom.streaming.store.store import Store, writer_id
from tests.spark.support import Crash, DyingStore, ListTopic, MemoryStore, checkpoint, counts, rows_of
from tests.spark.ticks import TICK_MS, broker, log, message, move, records, tick

MB = 1_000_000
SILVER = (FETCHER_LAG, BYTES_PER_SEC, LOG_END_OFFSETS, LEADER_DISTRIBUTION, THROTTLES)


def alert_tick(number: int, first_offset: int) -> list[dict[str, Any]]:
    """Two brokers (four sides) and one partition that broker 2 is to join."""
    moving = move("t", 0, 1, [1, 2], isr=[1], adding=[2], logs=[log(1, 90, 1000), log(2, 10)])
    return tick([broker(b, None, None) for b in (1, 2)], [moving], TICK_MS + number * 1000, first_offset)


# Ticks 0 and 1, then tick 1 once more with tick 2 behind it.
ALERT_MESSAGES = [*alert_tick(0, 0), *alert_tick(1, 3), *alert_tick(1, 6), *alert_tick(2, 9)]


def gold_job(spark: SparkSession, store: Store, folder: Path) -> GoldJob:
    """The job as it is after its start: the tables are there, and it knows what is written."""
    path = folder / "gold-checkpoint"
    where = str(path) if path.exists() else checkpoint(folder, "gold-checkpoint")
    job = GoldJob(spark, ListTopic(spark, ALERT_MESSAGES), store, where, 1.0)  # type: ignore[arg-type]
    job.prepare()
    return job


def test_gold_rows_are_stored_once_whatever_is_repeated(spark: SparkSession, tmp_path: Path) -> None:
    store = MemoryStore(spark)
    first, second = records(spark, ALERT_MESSAGES[:6]), records(spark, ALERT_MESSAGES[6:], 6)
    with pytest.raises(Crash):
        gold_job(spark, DyingStore(store, 1), tmp_path).write(first, 0)
    assert counts(store, THROTTLE_HEADROOM)[THROTTLE_HEADROOM.path] == (0, 0)
    job = gold_job(spark, store, tmp_path)
    job.write(first, 0)
    job.write(first, 0)
    # A tick: four sides, one adding replica, one partition. Twice that, and no row twice.
    twice = {
        "gold/throttle_headroom": (8, 8),
        "gold/reassignment_progress": (2, 2),
        "gold/partition_write_rate": (2, 2),
    }
    assert counts(store, *TABLES) == twice
    gold_job(spark, store, tmp_path).write(second, 1)
    assert counts(store, *TABLES) == {
        path: (rows + rows // 2, keys + keys // 2) for path, (rows, keys) in twice.items()
    }


def test_an_old_tick_of_a_long_gone_cluster_is_stored_once(spark: SparkSession, tmp_path: Path) -> None:
    store = MemoryStore(spark)
    days_later = 5 * 86_400

    def of_another(number: int) -> DataFrame:
        return records(spark, [m | {"cluster": "c2"} for m in alert_tick(number, 0)])

    long_gone = records(spark, alert_tick(0, 0))
    before = gold_job(spark, store, tmp_path)
    before.write(long_gone, 0)
    before.write(of_another(days_later), 1)
    # A new process looks at the last days alone for what is written.
    after = gold_job(spark, store, tmp_path)
    assert set(after.written.last_tick) == {"c2"}
    after.write(of_another(days_later + 1), 2)
    after.write(long_gone, 3)
    # Three ticks of four sides each.
    assert counts(store, THROTTLE_HEADROOM) == {"gold/throttle_headroom": (12, 12)}


class PoolStore(MemoryStore):
    """A store that notes for whom its tables are made, and dies of it."""

    def ensure(self, *tables: Table) -> bool:
        self.pool = self.spark.sparkContext.getLocalProperty("spark.scheduler.pool")
        raise Crash


def test_gold_and_record_jobs_prepare_in_scheduler_pools_of_their_own(spark: SparkSession) -> None:
    # As in one driver: the alert path is started first, by the same thread.
    for name, job in {"gold": GoldJob, "record": HistoryJob}.items():
        store = PoolStore(spark)
        spark.sparkContext.setLocalProperty("spark.scheduler.pool", "alert_path")
        with pytest.raises(Crash):
            job(spark, ListTopic(spark, ALERT_MESSAGES), store, "not-reached", 1.0).start()  # type: ignore[arg-type]
        spark.sparkContext.setLocalProperty("spark.scheduler.pool", None)
        assert store.pool == name


def test_while_nothing_moves_only_the_headroom_table_is_written(spark: SparkSession, tmp_path: Path) -> None:
    store = MemoryStore(spark)
    idle = [*tick([broker(1, None, None)], [])[:1], message("tick_end", 2, None, first_offset=0, lane_messages=1)]
    # A second append would be the end of it.
    gold_job(spark, DyingStore(store, 1), tmp_path).write(records(spark, idle), 0)
    assert counts(store, *TABLES) == {
        "gold/throttle_headroom": (2, 2),
        "gold/reassignment_progress": (0, 0),
        "gold/partition_write_rate": (0, 0),
    }


def history(number: int) -> list[dict[str, Any]]:
    """A tick with a message of every kind."""
    at = TICK_MS + number * 1000
    meter = {
        "broker": 1,
        "meter": "m",
        "read_ms": at,
        "count_total": 30,
        "prev_read_ms": at - 10,
        "prev_count_total": 0,
    }
    led = {"topic": "t", "partition": 0, "leader": 1, "replicas": [1, 2], "isr": [1]}
    sample = {name: value for name, value in log(1, 5).items() if "lag" not in name}
    kinds: list[tuple[str, list[dict[str, Any]]]] = [
        ("brokers", [broker(1, 5, None), broker(2, 5, None)]),
        ("moves", [move("t", 0, 1, [1, 2])]),
        ("leaders", [led, led | {"partition": 1}]),
        ("topic_throttles", [{"topic": "t", "leader_throttled_replicas": "*", "follower_throttled_replicas": None}]),
        ("meters", [meter]),
        ("lags", [{"broker": 2, "topic": "t", "partition": 0, "source_broker": 1, "fetcher": "f", "lag_offsets": 9}]),
        ("logs", [{"topic": "t", "partition": 0, "is_leader": True} | sample]),
    ]
    messages = [message(kind, seq, rows, at) for seq, (kind, rows) in enumerate(kinds)]
    return [*messages, message("tick_end", 7, None, at, first_offset=0, lane_messages=2)]


def stored(spark: SparkSession, messages: list[dict[str, Any]], first: int) -> DataFrame:
    return bronze(records(spark, messages, first))


def test_silver_rows_are_stored_once_whatever_is_repeated(spark: SparkSession, tmp_path: Path) -> None:
    store = Store(spark, str(tmp_path / "store"))
    store.ensure(*SILVER, QUARANTINE, MESSAGES)
    checkpoint(tmp_path, "silver")
    spoilt = message("weather", 0, [])
    # The second batch brings tick 0 once more, with another bad record, and tick 1.
    first = stored(spark, [*history(0), spoilt], 0)
    second = stored(spark, [*history(0), spoilt, *history(1)], 9)

    def job(used: Store) -> HistoryJob:
        return HistoryJob(spark, ListTopic(spark, []), used, str(tmp_path), 1.0)  # type: ignore[arg-type]

    # Quarantine and two silver tables are written when the process ends.
    with pytest.raises(Crash):
        job(DyingStore(store, 3)).write_silver(first, 0)
    for batch, number in ((first, 0), (first, 0), (second, 1)):
        job(store).write_silver(batch, number)
    # What a tick brings, twice, and no row twice.
    assert counts(store, *SILVER, QUARANTINE, MESSAGES) == {
        "silver/fetcher_lag": (2, 2),
        "silver/bytes_per_sec": (2, 2),
        "silver/log_end_offsets": (2, 2),
        "silver/leader_distribution": (4, 4),
        # Two brokers and a topic.
        "silver/throttles": (6, 6),
        "silver/quarantine": (2, 2),
        "silver/messages": (16, 16),
    }
    bad = sorted(rows_of(store, QUARANTINE), key=lambda row: row["offset"])
    assert [(row["offset"], row["reason"], row["cluster"], row["tick_ms"]) for row in bad] == [
        (8, "kind weather is unknown", "c1", TICK_MS),
        (17, "kind weather is unknown", "c1", TICK_MS),
    ]
    assert json.loads(bad[0]["payload"]) == spoilt


@pytest.mark.parametrize(("rows", "compiled"), [(1000, "false"), (2, "true")])
def test_plans_of_silver_are_compiled_for_many_rows_alone(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, rows: int, compiled: str
) -> None:
    monkeypatch.setattr("headroom.streaming.jobs.silver._MANY_ROWS", rows)
    own = throughput_session(spark)
    store = MemoryStore(own)
    job = HistoryJob(own, ListTopic(own, []), store, str(tmp_path), 1.0)  # type: ignore[arg-type]
    job.write_silver(stored(own, history(0), 0), 0)
    assert own.conf.get("spark.sql.codegen.wholeStage") == compiled
    assert counts(store, MESSAGES) == {"silver/messages": (8, 8)}


def test_ticks_that_come_again_one_by_one_after_a_restart_are_known(spark: SparkSession, tmp_path: Path) -> None:
    store = MemoryStore(spark)
    store.ensure(*SILVER, QUARANTINE, MESSAGES)
    checkpoint(tmp_path, "silver")
    first = HistoryJob(spark, ListTopic(spark, []), store, str(tmp_path), 1.0)  # type: ignore[arg-type]
    first.write_silver(stored(spark, [*history(0), *history(1)], 0), 0)
    again = HistoryJob(spark, ListTopic(spark, []), store, str(tmp_path), 1.0)  # type: ignore[arg-type]
    again.prepare()
    for number in (0, 1):
        again.write_silver(stored(spark, history(number), 16 + 8 * number), 1 + number)
    assert counts(store, FETCHER_LAG, MESSAGES) == {"silver/fetcher_lag": (2, 2), "silver/messages": (16, 16)}


def test_silver_rows_are_there_once_when_its_checkpoint_begins_again(spark: SparkSession, tmp_path: Path) -> None:
    store = MemoryStore(spark)
    store.ensure(*SILVER, QUARANTINE, MESSAGES)
    spoilt = [message("weather", 0, [], TICK_MS + 1000 * number) for number in range(3)]
    batches = [stored(spark, [*history(number), spoilt[number]], 9 * number) for number in range(3)]

    def job(used: Store, folder: str) -> HistoryJob:
        return HistoryJob(spark, ListTopic(spark, []), used, str(tmp_path / folder), 1.0)  # type: ignore[arg-type]

    for number in (0, 1):
        job(store, "first").write_silver(batches[number], number)
    # The power is cut in the middle of the third batch, and the checkpoint is lost.
    with pytest.raises(Crash):
        job(DyingStore(store, 2), "first").write_silver(batches[2], 2)
    again = job(store, "second")
    again.prepare()
    for number in range(3):
        again.write_silver(batches[number], number)
    # So does a later process, in another order.
    later = job(store, "second")
    later.prepare()
    for number in (1, 2, 0):
        later.write_silver(batches[number], number)
    assert counts(store, *SILVER, QUARANTINE, MESSAGES) == {
        "silver/fetcher_lag": (3, 3),
        "silver/bytes_per_sec": (3, 3),
        "silver/log_end_offsets": (3, 3),
        "silver/leader_distribution": (6, 6),
        "silver/throttles": (9, 9),
        "silver/quarantine": (3, 3),
        "silver/messages": (24, 24),
    }


def test_a_message_with_one_bad_row_is_rejected_whole_and_alone(spark: SparkSession, tmp_path: Path) -> None:
    store = MemoryStore(spark)
    checkpoint(tmp_path, "silver")
    job = HistoryJob(spark, ListTopic(spark, []), store, str(tmp_path), 1.0)  # type: ignore[arg-type]
    store.ensure(*SILVER, QUARANTINE, MESSAGES)
    lag = {"broker": 2, "topic": "t", "partition": 1, "source_broker": 1, "fetcher": "f", "lag_offsets": 9}
    for number in (0, 1):
        spoilt = message("lags", 8, [lag, lag | {"topic": None}], TICK_MS + number * 1000)
        job.write_silver(stored(spark, [*history(number), spoilt], 9 * number), number)
    # The first batch is compared with what is written before it, the second is known to be new.
    assert counts(store, FETCHER_LAG, MESSAGES, QUARANTINE) == {
        "silver/fetcher_lag": (2, 2),
        "silver/messages": (16, 16),
        "silver/quarantine": (2, 2),
    }
    assert sorted(row["offset"] for row in rows_of(store, QUARANTINE)) == [8, 17]


def test_bronze_holds_every_record_untouched(spark: SparkSession) -> None:
    raw = records(spark, [*history(0), {"kind": "weather"}], 40)
    (differing,) = (
        bronze(raw).drop("date").exceptAll(raw).unionByName(raw.exceptAll(bronze(raw).drop("date"))).agg(F.count("*"))
    ).collect()
    assert differing[0] == 0
    assert [str(row[0]) for row in bronze(raw).select("date").distinct().collect()] == ["2027-01-15"]


def test_a_table_that_is_there_is_kept_and_a_writer_is_its_checkpoint(spark: SparkSession, tmp_path: Path) -> None:
    store = Store(spark, str(tmp_path / "store"))
    assert not store.exists(ALERT_EVENTS)
    store.ensure(ALERT_EVENTS)
    event = spark.createDataFrame([{"alert_id": "a", "tick_ms": 1}], ALERT_EVENTS.ddl())
    for writer, version in (("w", 0), ("w", 0), ("w", 1), ("v", 0)):
        store.append(event, ALERT_EVENTS, (writer, version))
    Store(spark, str(tmp_path / "store")).ensure(ALERT_EVENTS)
    assert store.read(ALERT_EVENTS).count() == 3
    ids = {writer_id(spark, checkpoint(tmp_path, name)) for name in ("one", "two")}
    assert len(ids) == 2


def test_events_are_committed_once_and_read_back_alike_with_and_without_spark(
    spark: SparkSession, tmp_path: Path
) -> None:
    first = AlertEvent("a", "no_data", "warning", "firing", "c1", "ticks", "s", "{}", "{}", 1, 2)
    second = replace(first, state="resolved", tick_ms=3)
    log = EventLog(spark, Store(spark, str(tmp_path / "store")))
    assert log.last_events() == []
    for _ in range(2):
        log.append([first], "w", 0)
    log.append([second], "w", 1)
    assert log.last_events() == [first, second]
    assert EventLog(spark, Store(spark, f"file://{tmp_path}/store")).last_events() == [first, second]
    store = Store(spark, str(tmp_path / "store"))
    store.append(record_rows(spark, [replace(first, subject="other")], ALERT_EVENTS), ALERT_EVENTS)
    assert len(log.last_events()) == 4
    # A newer version has added a column; this one goes on to read, and to write.
    spark.sql(f"ALTER TABLE delta.`{store.location(ALERT_EVENTS)}` ADD COLUMNS (not_yet_known STRING)")
    later = EventLog(spark, Store(spark, str(tmp_path / "store")))
    assert len(later.last_events()) == 4
    later.append([replace(second, tick_ms=4)], "w", 2)
    assert len(later.last_events()) == 4

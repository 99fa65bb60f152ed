"""Tables that are looked after: few files, no old days, every row that is kept still there, and no writer disturbed."""

from __future__ import annotations

import json
import os
import subprocess
import threading
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from datetime import date, datetime, timedelta, timezone
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession

from headroom.cli.common.child_process import headroom_command
from headroom.schemas.alerts import AlertEvent
from headroom.schemas.config import StoreSettings
from headroom.schemas.tables import ALERT_EVENTS, BRONZE_TICKS, LEADER_IMBALANCE, MESSAGES, QUARANTINE
from headroom.streaming.delta.maintenance import MaintenanceFailure, MaintenanceResult
from headroom.streaming.session_profile import QUICK_COMPILER
from headroom.streaming.store.event_log import EventLog
from headroom.streaming.store.low_latency_table import LowLatencyTable
from headroom.streaming.store.maintenance import Maintenance
from headroom.streaming.store.store import Store
from tests.spark.support import rows_of, write_rows
from tests.unit.streaming.delta.test_compaction_race import balance

TODAY = date(2027, 1, 15)


def noon_ms(day: date) -> int:
    return int(datetime(day.year, day.month, day.day, 12, tzinfo=timezone.utc).timestamp() * 1000)


def a_message(day: date, number: int) -> dict[str, Any]:
    """A row of ``silver/messages``."""
    return {"date": day, "tick_ms": noon_ms(day), "cluster": "c1", "kind": "lags", "seq": number}


def whole(done: Iterable[MaintenanceResult | MaintenanceFailure]) -> dict[str, MaintenanceResult]:
    """What was done, by table; fails if one was not done."""
    found = {}
    for one in done:
        assert isinstance(one, MaintenanceResult), one
        found[one.table] = one
    return found


def test_small_files_become_one_a_day_and_old_days_go(spark: SparkSession, tmp_path: Path) -> None:
    store = Store(spark, str(tmp_path))
    store.ensure(MESSAGES, ALERT_EVENTS)
    # Days 0 to 3 before today; each in two commits.
    days = [TODAY - timedelta(days=n) for n in range(4)]
    for number, day in enumerate(days * 2):
        write_rows(store, MESSAGES, [a_message(day, number)])
    done = whole(Maintenance(spark, store, StoreSettings(silver_keep_days=3)).run(TODAY))
    assert set(done) == {MESSAGES.path, ALERT_EVENTS.path}, "a table that is not there is passed over"
    kept = rows_of(store, MESSAGES)
    # Today and the two days before it, two rows each.
    assert sorted(row["date"] for row in kept) == sorted(days[:3] * 2)
    # Eight files before; then one of each day that is kept, those that nobody looked after in time too.
    assert (done[MESSAGES.path].files_before, done[MESSAGES.path].files_after) == (8, 3)
    assert done[MESSAGES.path].dropped_before == days[2]
    assert done[ALERT_EVENTS.path].dropped_before is None


def test_a_table_appended_without_spark_is_maintained_without_it(spark: SparkSession, tmp_path: Path) -> None:
    store = Store(spark, str(tmp_path))
    table = LowLatencyTable(spark, store, LEADER_IMBALANCE)
    # Days 0 to 3 before today; each in two commits, after the one that made the table.
    for number in range(8):
        table.append([balance(TODAY - timedelta(days=number % 4), number)])
    done = whole(Maintenance(spark, store, StoreSettings(gold_keep_days=3), [LEADER_IMBALANCE]).run(TODAY))
    # Today and the two days before it, two rows and now one file each; the ticks of the fourth, 3 and 7, are gone.
    assert sorted(row["tick_ms"] for row in rows_of(store, LEADER_IMBALANCE)) == [0, 1, 2, 4, 5, 6]
    maintained = done[LEADER_IMBALANCE.path]
    assert (maintained.files_before, maintained.files_after) == (8, 3)
    assert maintained.dropped_before == TODAY - timedelta(days=2)
    log = sorted((tmp_path / LEADER_IMBALANCE.path / "_delta_log").glob("*.json"))
    assert len(log) > 9
    assert [file.name for file in log if "Apache-Spark" in file.read_text("utf-8")] == []


def test_nothing_is_dropped_where_all_days_are_kept(spark: SparkSession, tmp_path: Path) -> None:
    store = Store(spark, str(tmp_path))
    store.ensure(BRONZE_TICKS)
    long_ago = spark.createDataFrame([{"offset": 1, "date": date(2020, 1, 1)}], BRONZE_TICKS.ddl())
    store.append(long_ago, BRONZE_TICKS)
    whole(Maintenance(spark, store, StoreSettings(bronze_keep_days=0)).run(TODAY))
    assert len(rows_of(store, BRONZE_TICKS)) == 1


def test_writers_and_two_maintenances_do_not_disturb_each_other(spark: SparkSession, tmp_path: Path) -> None:
    store = Store(spark, str(tmp_path))
    store.ensure(MESSAGES)
    appends = 12
    written = threading.Event()

    def write() -> None:
        try:
            for number in range(appends):
                # An old day among them, which the others drop just then.
                row = a_message(TODAY - timedelta(days=number % 3), number)
                store.append(spark.createDataFrame([row], MESSAGES.ddl()).coalesce(1), MESSAGES)
        finally:
            written.set()

    def maintain() -> int:
        runs = 0
        while not written.is_set():
            whole(Maintenance(spark, store, StoreSettings(silver_keep_days=2), [MESSAGES]).run(TODAY))
            runs += 1
        return runs

    with ThreadPoolExecutor(3) as pool:
        writer, *others = [pool.submit(write), pool.submit(maintain), pool.submit(maintain)]
        writer.result()
        assert all(other.result() > 0 for other in others)
    whole(Maintenance(spark, store, StoreSettings(silver_keep_days=2), [MESSAGES]).run(TODAY))
    kept = rows_of(store, MESSAGES)
    # Every third number, 2, 5, 8 and 11, was of the day that is not kept.
    assert sorted(row["seq"] for row in kept) == [number for number in range(appends) if number % 3 != 2]


def test_events_are_appended_while_their_table_is_compacted(spark: SparkSession, tmp_path: Path) -> None:
    store = Store(spark, str(tmp_path))
    log = EventLog(spark, store)
    assert log.last_events() == []
    event = AlertEvent("a", "no_data", "warning", "firing", "c1", "ticks", "s", "{}", "{}", 1, 2)
    maintained = threading.Event()
    appended: list[int] = []

    def append_events() -> None:
        # Ten times as often as a tick can bring events. One who never pauses is faster than any other can commit.
        while not maintained.wait(0.1):
            log.append([event], "w", len(appended))
            appended.append(len(appended))

    with ThreadPoolExecutor(1) as pool:
        appender = pool.submit(append_events)
        runs = 0
        try:
            # On a busy machine two runs may be over before three events are told.
            while runs < 2 or (len(appended) < 3 and not appender.done()):
                whole(Maintenance(spark, store, StoreSettings(), [ALERT_EVENTS]).run(TODAY))
                runs += 1
        finally:
            maintained.set()
        appender.result()
        assert len(rows_of(store, ALERT_EVENTS)) == len(appended) > 2


def test_a_table_whose_maintenance_fails_is_reported_and_the_others_are_maintained(
    spark: SparkSession, tmp_path: Path
) -> None:
    store = Store(spark, str(tmp_path))
    store.ensure(QUARANTINE, MESSAGES)
    for number in range(2):
        bad = spark.createDataFrame([{"offset": number, "date": TODAY}], QUARANTINE.ddl())
        store.append(bad, QUARANTINE)
        write_rows(store, MESSAGES, [a_message(TODAY, number)])
    lost = next((tmp_path / QUARANTINE.path).rglob("*.parquet"))
    lost.unlink()
    done = {one.table: one for one in Maintenance(spark, store, StoreSettings()).run(TODAY)}
    failed, kept = done[QUARANTINE.path], done[MESSAGES.path]
    assert isinstance(failed, MaintenanceFailure)
    assert failed.reason
    assert isinstance(kept, MaintenanceResult)
    assert kept.files_after == 1


def test_a_table_of_something_else_is_not_touched(spark: SparkSession, tmp_path: Path) -> None:
    store = Store(spark, str(tmp_path))
    theirs = spark.createDataFrame([(1, date(2020, 1, 1))], "id INT, date DATE").write.format("delta")
    theirs.partitionBy("date").save(store.location(MESSAGES))
    (failed,) = Maintenance(spark, store, StoreSettings(silver_keep_days=1)).run(TODAY)
    assert isinstance(failed, MaintenanceFailure)
    assert "tick_ms is missing" in failed.reason
    assert store.read(MESSAGES).count() == 1


def test_the_command_tells_what_was_done_and_nothing_else(spark: SparkSession, tmp_path: Path) -> None:
    store = Store(spark, str(tmp_path))
    store.ensure(MESSAGES)
    before = datetime.now(timezone.utc).date()
    for number in range(2):
        write_rows(store, MESSAGES, [a_message(before, number)])
    result = subprocess.run(
        headroom_command("maintain", "--format", "json"),
        env=os.environ
        | {
            "HEADROOM_STORE__PATH": str(tmp_path),
            "HEADROOM_CLUSTER__BOOTSTRAP_SERVERS": "nowhere:9092",
            "HEADROOM_SPARK__DRIVER_JAVA_OPTIONS": QUICK_COMPILER,
        },
        capture_output=True,
        text=True,
        timeout=240,
        check=True,
    )
    # Midnight may pass meanwhile.
    after = datetime.now(timezone.utc).date()
    (done,) = json.loads(result.stdout)
    assert (done["table"], done["files_before"], done["files_after"]) == (MESSAGES.path, 2, 1)
    assert done["dropped_before"] in {str(today - timedelta(days=29)) for today in (before, after)}

"""Tables that are looked after: few files, no old days, every row that is kept still there."""

from __future__ import annotations

from datetime import date, datetime, timedelta, timezone
from pathlib import Path

from pyspark.sql import SparkSession

from schemas.config import StoreSettings
from schemas.tables import ALERT_EVENTS, BRONZE_TICKS, MESSAGES
from streaming.maintenance import Maintenance
from streaming.sinks import Store

TODAY = date(2027, 1, 15)


def noon_ms(day: date) -> int:
    return int(datetime(day.year, day.month, day.day, 12, tzinfo=timezone.utc).timestamp() * 1000)


def test_small_files_become_one_and_old_days_go(spark: SparkSession, tmp_path: Path) -> None:
    store = Store(spark, str(tmp_path))
    store.ensure(MESSAGES, ALERT_EVENTS)
    # Days 0 to 3 before today; each in two commits.
    days = [TODAY - timedelta(days=n) for n in range(4)]
    for number, day in enumerate(days * 2):
        row = {"date": day, "tick_ms": noon_ms(day), "cluster": "c1", "kind": "lags", "seq": number}
        store.append(spark.createDataFrame([row], MESSAGES.ddl()), MESSAGES)
    settings = StoreSettings(silver_keep_days=3)
    done = {one.table: one for one in Maintenance(spark, store, settings).run(TODAY)}
    assert set(done) == {MESSAGES.path, ALERT_EVENTS.path}, "a table that is not there is passed over"
    kept = store.read(MESSAGES).collect()
    # Today and the two days before it, two rows each.
    assert sorted(row["date"] for row in kept) == sorted(days[:3] * 2)
    # Eight files before; then one for each of the days that still grow, and the two of the day before yesterday.
    assert (done[MESSAGES.path].files_before, done[MESSAGES.path].files_after) == (8, 4)
    assert done[MESSAGES.path].dropped_before == days[2]
    assert done[ALERT_EVENTS.path].dropped_before is None


def test_nothing_is_dropped_where_all_days_are_kept(spark: SparkSession, tmp_path: Path) -> None:
    store = Store(spark, str(tmp_path))
    store.ensure(BRONZE_TICKS)
    long_ago = spark.createDataFrame([{"offset": 1, "date": date(2020, 1, 1)}], BRONZE_TICKS.ddl())
    store.append(long_ago, BRONZE_TICKS)
    Maintenance(spark, store, StoreSettings(bronze_keep_days=0)).run(TODAY)
    assert store.read(BRONZE_TICKS).count() == 1

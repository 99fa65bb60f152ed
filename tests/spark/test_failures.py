"""What fails in Spark is one error that names the cause; nothing of it is a broker's."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.errors import AnalysisException
from pyspark.sql import DataFrame, SparkSession

from headroom.schemas.alerts import AlertEvent
from headroom.schemas.config import StoreSettings
from headroom.schemas.errors import HeadroomError
from headroom.schemas.tables import ALERT_EVENTS, THROTTLE_HEADROOM
from headroom.streaming.delta.maintenance import MaintenanceFailure, MaintenanceResult
from headroom.streaming.store.event_log import EventLog
from headroom.streaming.store.maintenance import Maintenance
from headroom.streaming.store.store import Store
from headroom.streaming.supervision.failure import cause_of
from headroom.streaming.supervision.jvm import spark_failures


def _garbage(store: Path) -> None:
    log = store / ALERT_EVENTS.path / "_delta_log"
    log.mkdir(parents=True)
    (log / "00000000000000000000.json").write_text("garbage")


def test_a_place_that_spark_cannot_look_at_is_an_error(spark: SparkSession) -> None:
    with pytest.raises(HeadroomError) as raised:
        Store(spark, "foo://bucket").exists(ALERT_EVENTS)
    assert (raised.value.subject, raised.value.rule) == (
        "foo://bucket/alerts/events",
        'cannot be read (UnsupportedFileSystemException: No FileSystem for scheme "foo")',
    )


def test_alerts_start_without_a_table_whose_log_is_garbage_and_the_first_event_is_an_error(
    spark: SparkSession, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    _garbage(tmp_path)
    log = EventLog(spark, Store(spark, str(tmp_path)))
    event = AlertEvent("a", "no_data", "warning", "firing", "c1", "ticks", "s", "{}", "{}", 1, 2)
    assert log.last_events() == []
    assert "table alerts/events is damaged" in caplog.text
    with pytest.raises(HeadroomError) as caught:
        log.append([event], "writer", 0)
    assert "is damaged" in log.trouble(caught.value)


def test_folders_of_a_table_that_are_a_file_are_an_error_at_the_start(spark: SparkSession, tmp_path: Path) -> None:
    (tmp_path / "alerts").write_text("x")
    with pytest.raises(HeadroomError, match="is a file, and must be a folder"):
        EventLog(spark, Store(spark, str(tmp_path))).last_events()


def test_maintenance_continues_with_the_next_table(spark: SparkSession, tmp_path: Path) -> None:
    _garbage(tmp_path)
    store = Store(spark, str(tmp_path))
    store.ensure(THROTTLE_HEADROOM)
    done = Maintenance(spark, store, StoreSettings(path=str(tmp_path)), (ALERT_EVENTS, THROTTLE_HEADROOM)).run()
    assert [type(one) for one in done] == [MaintenanceFailure, MaintenanceResult]
    assert "garbage" in str(done[0])


def test_the_cause_of_a_query_that_failed_is_found(spark: SparkSession, tmp_path: Path) -> None:
    def batch(rows: DataFrame, batch_id: int) -> None:
        (tmp_path / "file").write_text("x")
        rows.write.format("delta").mode("append").save(str(tmp_path / "file" / "table"))

    # This source has rows at once.
    stream = (
        spark.readStream.format("rate-micro-batch")
        .option("rowsPerBatch", 1)
        .load()
        .writeStream.option("checkpointLocation", str(tmp_path / "c"))
    )
    query = stream.foreachBatch(batch).start()
    with pytest.raises(Exception, match="Python Proxy"):
        query.awaitTermination(600)
    assert cause_of(query.exception() or "") == (
        f"ParentNotDirectoryException: Parent path is not a directory: file:{tmp_path}/file"
    )


def test_an_error_of_spark_is_ours_with_its_cause(spark: SparkSession) -> None:
    with pytest.raises(HeadroomError, match=r"it failed: \[UNRESOLVED_COLUMN") as raised, spark_failures():
        spark.range(1).select("nope").collect()
    assert isinstance(raised.value.__cause__, AnalysisException)

"""A start with tables that a disk has damaged: it takes up what is left of them."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import pytest
from deltalake.exceptions import DeltaError
from pyspark.sql import SparkSession

from headroom.alerts.delivery.delivery_log import DeliveryAttempt, event_key
from headroom.schemas.alerts import AlertEvent
from headroom.schemas.tables import ALERT_DELIVERIES, ALERT_EVENTS, Table
from headroom.streaming.delta.query_table import query
from headroom.streaming.durability.mend import mend
from headroom.streaming.store.delivery_table import DeliveryTable
from headroom.streaming.store.event_log import EventLog
from headroom.streaming.store.store import Store

KINDS = ("no_data", "eta_slipping", "under_replicated")


def event(kind: str) -> AlertEvent:
    return AlertEvent(f"id-{kind}", kind, "warning", "firing", "orders", "ticks", "…", "{}", "{}", 1, 1)


@pytest.fixture
def store(spark: SparkSession, tmp_path: Path) -> Store:
    """Three alerts that fire, of each of which a receiver was told, in three commits."""
    store = Store(spark, str(tmp_path))
    events, deliveries = EventLog(spark, store), DeliveryTable(spark, store)
    assert events.last_events() == []
    assert not deliveries.backlog(["log"]).events
    for number, kind in enumerate(KINDS):
        events.append([event(kind)], "w", number)
        key = event_key(event(kind))
        deliveries.append([DeliveryAttempt("log", key, f"id-{kind}", "orders", "delivered", 1, "ok", "{}", 1)])
    return store


def first_file(store: Store, table: Table) -> Path:
    return min(Path(store.location(table)).glob("**/*.parquet"), key=lambda file: file.stat().st_mtime_ns)


def last_commit(store: Store, table: Table) -> Path:
    return max((Path(store.location(table)) / "_delta_log").glob("*.json"))


def kinds(events: list[AlertEvent]) -> set[str]:
    return {one.kind for one in events}


@pytest.mark.parametrize("missing", [True, False])
def test_alerts_in_undamaged_files_are_restored(
    spark: SparkSession, store: Store, missing: bool, caplog: pytest.LogCaptureFixture
) -> None:
    file = first_file(store, ALERT_EVENTS)
    if missing:
        file.unlink()
    else:
        file.write_bytes(file.read_bytes()[:100])
    log = EventLog(spark, store)
    assert kinds(log.last_events()) == {"eta_slipping", "under_replicated"}
    assert "alerts/events is damaged" in caplog.text
    assert "headroom maintain --repair" in caplog.text
    assert spark.conf.get("spark.sql.files.ignoreMissingFiles") == "false"
    log.append([event("no_data")], "w", 3)
    mend(store.location(ALERT_EVENTS))
    assert kinds(EventLog(spark, store).last_events()) == set(KINDS)


def test_a_damaged_log_leaves_nothing_until_it_is_mended(spark: SparkSession, store: Store) -> None:
    file = last_commit(store, ALERT_EVENTS)
    file.write_text("{")
    log = EventLog(spark, store)
    assert log.last_events() == []
    with pytest.raises(DeltaError) as caught:
        log.append([event("eta_slipping")], "w", 3)
    assert "alerts/events is damaged" in log.trouble(caught.value)
    mend(store.location(ALERT_EVENTS))
    log.append([event("eta_slipping")], "w", 3)
    assert kinds(EventLog(spark, store).last_events()) == {"no_data", "eta_slipping"}


def flip(store: Store) -> None:
    file = first_file(store, ALERT_EVENTS)
    content = bytearray(file.read_bytes())
    content[-8] ^= 0x10
    file.write_bytes(bytes(content))


def lose_log(store: Store) -> None:
    shutil.rmtree(Path(store.location(ALERT_EVENTS)) / "_delta_log")


def log_as_file(store: Store) -> None:
    lose_log(store)
    (Path(store.location(ALERT_EVENTS)) / "_delta_log").write_text("")


def empty_commit(store: Store) -> None:
    last_commit(store, ALERT_EVENTS).write_text("")


def no_object(store: Store) -> None:
    last_commit(store, ALERT_EVENTS).write_text("[1]")


def folder_as_commit(store: Store) -> None:
    file = last_commit(store, ALERT_EVENTS)
    file.unlink()
    file.mkdir()


@pytest.mark.parametrize(
    ("harm", "kept"),
    [(flip, 2), (lose_log, 3), (log_as_file, 3), (empty_commit, 2), (no_object, 2), (folder_as_commit, 2)],
)
def test_alerts_go_on_without_a_damaged_table_and_are_stored_after_its_repair(
    spark: SparkSession, store: Store, harm: Callable[[Store], None], kept: int, caplog: pytest.LogCaptureFixture
) -> None:
    harm(store)
    log, deliveries = EventLog(spark, store), DeliveryTable(spark, store)
    log.last_events()
    deliveries.backlog(["log"])
    assert "alerts/events is damaged" in caplog.text
    assert "headroom maintain --repair" in caplog.text
    with suppress(Exception):
        log.append([event("no_data")], "w", 3)
    assert mend(store.location(ALERT_EVENTS))
    log.append([event("no_data")], "w", 3)
    # Not by Spark, which remembers within a process that there was no table.
    folder = store.location(ALERT_EVENTS).removesuffix(f"/{ALERT_EVENTS.path}")
    rows = query(folder, ALERT_EVENTS.path, "SELECT kind FROM data") or []
    assert len({row["kind"] for row in rows} | {"no_data"}) >= kept
    assert [row["kind"] for row in rows].count("no_data") >= 1


@pytest.mark.parametrize("table", [ALERT_EVENTS, ALERT_DELIVERIES])
def test_undelivered_events_are_resumed_as_far_as_undamaged_files_have_them(
    spark: SparkSession, store: Store, table: Table
) -> None:
    first_file(store, table).unlink()
    backlog = DeliveryTable(spark, store).backlog(["log"])
    left = {"eta_slipping", "under_replicated"}
    assert kinds(backlog.events) == (left if table is ALERT_EVENTS else set(KINDS))
    assert {attempt.alert_id for attempt in backlog.records} == {f"id-{kind}" for kind in left}
    last_commit(store, table).write_text("{")
    assert not DeliveryTable(spark, store).backlog(["log"]).events

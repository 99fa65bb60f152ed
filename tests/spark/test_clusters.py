"""Several clusters in one pipeline: each gives the rows it would give alone, though all else of them is the same."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any
from unittest.mock import MagicMock

import pytest
from pyspark.sql import SparkSession

from headroom.alerts.engine import AlertEngine
from headroom.alerts.watched_cluster import WatchedCluster
from headroom.schemas.alerts import AlertEvent
from headroom.schemas.config import ClusterSettings, Settings
from headroom.schemas.tables import ALERT_EVENTS, FETCHER_LAG, MESSAGES, QUARANTINE, Table
from headroom.streaming.jobs.alert_path import AlertPath, AlertPathSource
from headroom.streaming.jobs.gold import TABLES, GoldJob
from headroom.streaming.jobs.listener import AlertPathListener
from headroom.streaming.jobs.silver import HistoryJob
from headroom.streaming.queries.bronze_query import bronze
from headroom.streaming.store.event_log import EventLog
from headroom.streaming.store.store import Store
from headroom.streaming.transforms.silver import SILVER
from tests.spark.support import ListTopic, MemoryStore, checkpoint
from tests.spark.support import rows_of as all_rows_of
from tests.spark.ticks import TICK_MS, broker, log, message, move, records, tick
from tests.unit.fakes.alert_path_listener import CallingListener

CLUSTERS = ("orders", "payments")
MB = 1_000_000
# Broker 1 must send 2 MB/s: enough, and too little.
THROTTLES = {"orders": 5 * MB, "payments": 1 * MB}


def alert_tick(cluster: str, number: int, first_offset: int, throttle: int) -> list[dict[str, Any]]:
    """The same brokers, topic, partition and time in each cluster: broker 2 is to join partition 0."""
    logs = [log(1, 90_000, 2 * MB), log(2, 10_000, MB / 2)]
    moving = move("t", 0, 1, [1, 2], isr=[1], adding=[2], logs=logs, leader_listed=[1], follower_listed=[2])
    brokers = [broker(each, throttle, throttle) for each in (1, 2)]
    return [m | {"cluster": cluster} for m in tick(brokers, [moving], TICK_MS + number * 1000, first_offset)]


def alert_partition(*clusters: str, ticks: int = 2, throttles: Mapping[str, int] = THROTTLES) -> list[dict[str, Any]]:
    """The alert partition of collectors that send side by side: their messages lie between each other's."""
    messages: list[dict[str, Any]] = []
    for number in range(ticks):
        first = len(messages)
        sent = [alert_tick(c, number, first + place, throttles[c]) for place, c in enumerate(clusters)]
        messages += [m for together in zip(*sent, strict=True) for m in together]
    return messages


def history(*clusters: str) -> list[dict[str, Any]]:
    """Messages of the history lanes, side by side; one kind is unknown."""
    lag = {"broker": 2, "topic": "t", "partition": 0, "source_broker": 1, "fetcher": "f", "lag_offsets": 10}
    rows = {"lags": [lag], "brokers": [broker(1, None, None)], "weather": []}
    return [
        message(kind, seq, rows[kind], TICK_MS + number * 1000) | {"cluster": cluster}
        for number in range(2)
        for seq, kind in enumerate(rows)
        for cluster in clusters
    ]


def rows_of(store: Store, table: Table, cluster: str) -> list[dict[str, Any]]:
    """The rows of a cluster except for their offsets in the topic, which depend on the messages of other clusters."""
    rows = [row for row in all_rows_of(store, table) if row["cluster"] == cluster]
    return sorted(({name: row[name] for name in table.names() if name != "offset"} for row in rows), key=str)


def through_gold(spark: SparkSession, folder: Path, messages: list[dict[str, Any]], cut: int = 0) -> Store:
    """The store after the gold job; a first batch ends at ``cut``."""
    store = MemoryStore(spark)
    store.ensure(*TABLES)
    topic: Any = ListTopic(spark, messages)
    job = GoldJob(spark, topic, store, checkpoint(folder, "gold"), 1.0)
    for batch_id, (first, end) in enumerate([(0, cut), (cut, len(messages))]):
        if end > first:
            job.write(records(spark, messages[first:end], first), batch_id)
    return store


def test_the_gold_rows_of_a_cluster_are_those_it_has_alone(spark: SparkSession, tmp_path: Path) -> None:
    # Of six messages a tick the cut is after the first of the second tick.
    together = through_gold(spark, tmp_path / "both", alert_partition(*CLUSTERS), cut=7)
    for number, cluster in enumerate(CLUSTERS):
        alone = through_gold(spark, tmp_path / str(number), alert_partition(cluster))
        for table in TABLES:
            rows = rows_of(together, table, cluster)
            assert rows, table.path
            assert rows == rows_of(alone, table, cluster), table.path
    verdicts = {(r["cluster"], r["role"], r["verdict"]) for r in all_rows_of(together, TABLES[-1]) if r["broker"] == 1}
    assert {("orders", "leader", "catching_up"), ("payments", "leader", "losing")} <= verdicts


def through_silver(spark: SparkSession, folder: Path, messages: list[dict[str, Any]]) -> Store:
    """The store after one batch of the record job."""
    store = MemoryStore(spark)
    store.ensure(*SILVER, QUARANTINE, MESSAGES)
    checkpoint(folder, "silver")
    topic: Any = ListTopic(spark, [])
    job = HistoryJob(spark, topic, store, str(folder), 1.0)
    job.write_silver(bronze(records(spark, messages)), 0)
    return store


def test_the_silver_rows_of_a_cluster_are_those_it_has_alone(spark: SparkSession, tmp_path: Path) -> None:
    together = through_silver(spark, tmp_path / "both", history(*CLUSTERS))
    for number, cluster in enumerate(CLUSTERS):
        alone = through_silver(spark, tmp_path / str(number), history(cluster))
        for table in (*SILVER, QUARANTINE, MESSAGES):
            assert rows_of(together, table, cluster) == rows_of(alone, table, cluster), table.path
    lags = sorted((row["cluster"], row["tick_ms"]) for row in all_rows_of(together, FETCHER_LAG))
    assert lags == [(cluster, TICK_MS + number * 1000) for cluster in CLUSTERS for number in range(2)]


class Recorder:
    """What the alert path passed to its listener."""

    def __init__(self) -> None:
        self.ticks: list[tuple[str, int]] = []
        self.events: list[AlertEvent] = []

    def listeners(self) -> AlertPathListener:
        return CallingListener(lambda cluster, tick_ms, _: self.ticks.append((cluster, tick_ms)), self.events.extend)


def alert_path(spark: SparkSession, folder: Path, messages: list[dict[str, Any]], recorder: Recorder) -> AlertPath:
    """The alert path as it is after its start: it knows the alerts that are stored."""

    def settings(name: str) -> Settings:
        return Settings(cluster=ClusterSettings(name=name, bootstrap_servers=f"{name}:9092"))

    others = [WatchedCluster(settings("payments"), "payments.toml")]
    engine = AlertEngine(settings("orders"), lambda: TICK_MS, "orders.toml", others)
    events = EventLog(spark, Store(spark, str(folder / "store")))
    engine.restore(events.last_events())
    topic: Any = ListTopic(spark, messages)
    path = AlertPath(spark, AlertPathSource(topic, str(folder / "alerts")), events, engine, recorder.listeners())
    # Nobody stops it: it would compute batches again during later tests.
    path.warm_up = MagicMock()
    return path


def test_an_alert_is_that_of_its_own_cluster_also_after_a_restart(spark: SparkSession, tmp_path: Path) -> None:
    messages = alert_partition(*CLUSTERS, ticks=5)
    checkpoint(tmp_path, "alerts")
    before, after = Recorder(), Recorder()
    # Of six messages a tick two ticks before the restart, when the alerts are pending, and three after it.
    alert_path(spark, tmp_path, messages, before)._process_batch(records(spark, messages[:12]), 0)
    alert_path(spark, tmp_path, messages, after)._process_batch(records(spark, messages[12:], 12), 1)
    assert before.ticks + after.ticks == [(c, TICK_MS + n * 1000) for n in range(5) for c in CLUSTERS]
    # Of one cause with broker 2 as destination, for which it speaks.
    assert [(e.cluster, e.subject, e.state) for e in before.events] == [("payments", "broker 1 as leader", "pending")]
    assert [(e.cluster, e.subject, e.state) for e in after.events] == [("payments", "broker 1 as leader", "firing")]
    assert [also["subject"] for also in json.loads(after.events[0].evidence)["also"]] == ["broker 2 as destination"]
    commands = [text for e in after.events for text in json.loads(e.recommendation)["commands"]]
    assert commands
    assert [text for text in commands if "orders" in text] == []


# While the alert path was stopped, the throttle of payments was too low for a while. 1,000 records are 166 ticks of
# the two.
def test_only_the_newest_ticks_of_a_long_backlog_are_evaluated(
    spark: SparkSession, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    too_low, enough = (
        alert_partition(*CLUSTERS, ticks=20),
        alert_partition(*CLUSTERS, ticks=200, throttles=dict.fromkeys(CLUSTERS, 5 * MB)),
    )
    messages = [*too_low, *(m | {"tick_ms": m["tick_ms"] + 20_000} for m in enough)]
    for m in messages[len(too_low) :]:
        m |= {"first_offset": m["first_offset"] + len(too_low)} if m["kind"] == "tick_end" else {}
    checkpoint(tmp_path, "alerts")
    recorder = Recorder()
    path = alert_path(spark, tmp_path, messages, recorder)
    with caplog.at_level("INFO"):
        path._process_batch(records(spark, messages), 0)
    assert [event for event in recorder.events if event.kind.startswith("throttle")] == []
    # Of the oldest tick the first of three messages is beyond the 1,000; it is read again, for both clusters.
    assert len(recorder.ticks) == 2 * 167
    assert recorder.ticks[-1] == ("payments", TICK_MS + 219_000)
    assert "320 older records of a backlog are not evaluated" in caplog.text
    # Only the first batch after a start of the query can be one.
    later = [m | {"tick_ms": m["tick_ms"] + 220_000} for m in messages]
    for m in later:
        m |= {"first_offset": m["first_offset"] + len(messages)} if m["kind"] == "tick_end" else {}
    path._process_batch(records(spark, later, len(messages)), 1)
    assert len(recorder.ticks) == 2 * 167 + 2 * 220
    # Repeated ticks are not evaluated again.
    path._process_batch(records(spark, later, len(messages)), 1)
    assert len(recorder.ticks) == 2 * 167 + 2 * 220


def test_the_first_batch_after_each_start_is_a_backlog_whose_length_the_checkpoint_tells(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    # 220 ticks of the two are 1,320 records; the first 120 are of batch 0.
    messages = alert_partition(*CLUSTERS, ticks=220, throttles=dict.fromkeys(CLUSTERS, 5 * MB))
    folder = Path(checkpoint(tmp_path, "alerts"))
    (folder / "offsets").mkdir()
    for batch_id, end in enumerate((120, 1320)):
        lines = ["v1", '{"batchWatermarkMs":0}', json.dumps({"ticks": {"0": end}})]
        (folder / "offsets" / str(batch_id)).write_text("\n".join(lines))
    recorder = Recorder()
    path = alert_path(spark, tmp_path, messages, recorder)
    path._process_batch(records(spark, messages[:120]), 0)
    assert len(recorder.ticks) == 2 * 20
    # As far as a start gets without a broker.
    monkeypatch.setattr(path, "_restored", True)
    monkeypatch.setattr(path, "_topic", MagicMock(alert_range=path._topic.alert_range))
    path.start()
    unread: Any = MagicMock(spec=[])
    with caplog.at_level("INFO"):
        path._process_batch(unread, 1)
    assert "200 older records of a backlog are not evaluated" in caplog.text
    # As above: 167 ticks of each, the first of which is read again in part.
    assert len(recorder.ticks) == 2 * 20 + 2 * 167
    assert recorder.ticks[-1] == ("payments", TICK_MS + 219_000)


def test_the_same_alert_of_two_clusters_is_two_alerts(spark: SparkSession, tmp_path: Path) -> None:
    messages = alert_partition(*CLUSTERS, ticks=1, throttles=dict.fromkeys(CLUSTERS, MB))
    checkpoint(tmp_path, "alerts")
    recorder = Recorder()
    alert_path(spark, tmp_path, messages, recorder)._process_batch(records(spark, messages), 0)
    ids = {cluster: {e.alert_id for e in recorder.events if e.cluster == cluster} for cluster in CLUSTERS}
    assert [len(ids[cluster]) for cluster in CLUSTERS] == [1, 1]
    assert ids["orders"].isdisjoint(ids["payments"])
    stored = all_rows_of(Store(spark, str(tmp_path / "store")), ALERT_EVENTS)
    assert {(row["cluster"], row["alert_id"]) for row in stored} == {(c, i) for c in CLUSTERS for i in ids[c]}

"""Replay equals live: the same messages give the same rows and alerts, however they are cut into batches."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any
from unittest.mock import MagicMock

import pytest
from pyspark.sql import SparkSession

from headroom.alerts.engine import AlertEngine
from headroom.schemas.alerts import AlertEvent
from headroom.schemas.config import AlertSettings, Settings
from headroom.schemas.tables import ALERT_EVENTS
from headroom.streaming.jobs.alert_path import AlertPath, AlertPathSource
from headroom.streaming.jobs.gold import TABLES, GoldJob
from headroom.streaming.store.event_log import EventLog
from headroom.streaming.store.store import Store
from tests.spark.support import ListTopic, MemoryStore, checkpoint
from tests.spark.ticks import TICK_MS, broker, log, move, records, tick
from tests.unit.fakes.alert_path_listener import CallingListener

MB = 1_000_000
SETTINGS = Settings(alerts=AlertSettings(hold_s=1, resolve_s=1))


def alert_partition() -> list[dict[str, Any]]:
    """Four ticks a second apart. Broker 1 must send 2 x 2 MB/s: 3 MB/s are too few in the first two, 9 enough then."""
    listed = {"leader_listed": [1, 2], "follower_listed": [3]}
    logs = [log(1, 9000, 2 * MB), log(2, 9000, 2 * MB), log(3, 1000, MB)]
    moving = move("t", 0, 1, [3, 2, 1], isr=[1, 2], adding=[3], removing=[1], logs=logs, **listed)
    ticks = [
        tick([broker(b, rate, 9 * MB) for b in (1, 2, 3)], [moving], TICK_MS + n * 1000, first_offset=3 * n)
        for n, rate in enumerate((3 * MB, 3 * MB, 9 * MB, 9 * MB))
    ]
    return [m for messages in ticks for m in messages]


TICKS = alert_partition()


class Run:
    """The alert path and the gold job over the alert_partition, cut into batches of so many messages."""

    def __init__(self, spark: SparkSession, folder: Path) -> None:
        self.spark = spark
        self.store = MemoryStore(spark)
        self.events: list[AlertEvent] = []
        self.ticks: list[int] = []
        topic: Any = ListTopic(spark, TICKS)
        listeners = CallingListener(lambda _, tick_ms, __: self.ticks.append(tick_ms), self.events.extend)
        self.engine = AlertEngine(SETTINGS, lambda: TICK_MS)
        path = checkpoint(folder, "alert_path")
        self.alert_path = AlertPath(
            spark, AlertPathSource(topic, path), EventLog(spark, self.store), self.engine, listeners
        )
        # Nobody stops it: it would compute batches again during later tests.
        self.alert_path.warm_up = MagicMock()
        self.gold = GoldJob(spark, topic, self.store, checkpoint(folder, "gold"), 1.0)

    def over(self, size: int) -> Run:
        for number, first in enumerate(range(0, len(TICKS), size)):
            batch = records(self.spark, TICKS[first : first + size], first)
            self.alert_path._process_batch(batch, number)
            self.gold.write(batch, number)
        return self

    def rows(self, path: str) -> list[str]:
        return sorted(map(str, self.store.rows[path]))


@pytest.fixture(scope="module")
def whole(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Run:
    return Run(spark, tmp_path_factory.mktemp("whole")).over(len(TICKS))


def test_one_batch_gives_every_tick_and_the_life_of_the_alert(whole: Run) -> None:
    assert whole.ticks == [TICK_MS + second * 1000 for second in range(4)]
    events = [(event.state, event.tick_ms - TICK_MS, event.subject) for event in whole.events]
    assert events == [
        ("pending", 0, "broker 1 as leader"),
        ("firing", 1000, "broker 1 as leader"),
        ("resolved", 3000, "broker 1 as leader"),
    ]
    # Four ticks of three brokers with two sides each, of one adding replica, of one partition.
    assert [len(whole.store.rows[table.path]) for table in TABLES] == [4, 4, 24]


# A tick is three messages: 1 cuts every tick wherever it can be cut, 5 cut some.
@pytest.mark.parametrize("size", [1, 5])
def test_batches_of_any_size_give_the_same_rows_and_alerts(
    spark: SparkSession, tmp_path: Path, whole: Run, size: int
) -> None:
    cut = Run(spark, tmp_path).over(size)
    assert cut.ticks == whole.ticks
    assert cut.events == whole.events
    for table in (*TABLES, ALERT_EVENTS):
        assert cut.rows(table.path) == whole.rows(table.path), table.path


def test_alerts_are_restored_from_their_table(spark: SparkSession, tmp_path: Path, whole: Run) -> None:
    pending, firing, resolved = whole.events
    # It fired in the tick, and in the millisecond, in which it was pending; another one is over.
    events = [
        replace(firing, tick_ms=pending.tick_ms),
        pending,
        *(replace(event, alert_id="b", subject="broker 2 as leader") for event in (pending, resolved)),
    ]
    store = Store(spark, str(tmp_path / "store"))
    store.ensure(ALERT_EVENTS)
    store.append(spark.createDataFrame([vars(e) for e in events], ALERT_EVENTS.ddl()), ALERT_EVENTS)
    run = Run(spark, tmp_path)
    run.engine.restore(EventLog(spark, store).last_events())
    assert run.engine.active() == events[:1]

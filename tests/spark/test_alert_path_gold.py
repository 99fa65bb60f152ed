"""Gold rows on a local disk, written by the alert path and by the gold job: the same rows, each tick once."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any
from unittest.mock import MagicMock

import pytest
from pyspark.sql import SparkSession

from benchmarks.fixtures.synthetic.synthetic_ticks import SyntheticCluster, Workload
from headroom.alerts.engine import AlertEngine
from headroom.cluster.collector.rows.encoder import encode_rows
from headroom.schemas.config import Settings
from headroom.schemas.tables import PARTITION_WRITE_RATE, REASSIGNMENT_PROGRESS, THROTTLE_HEADROOM, Table
from headroom.streaming.delta.maintenance import maintain_prompt
from headroom.streaming.delta.tick_table import TickTable
from headroom.streaming.jobs import alert_path_gold
from headroom.streaming.jobs.alert_path import AlertPath, AlertPathSource
from headroom.streaming.jobs.alert_path_gold import AlertPathGold
from headroom.streaming.jobs.gold import TABLES, GoldJob
from headroom.streaming.queries.whole_ticks import CompleteTicksReader
from headroom.streaming.store.event_log import EventLog
from headroom.streaming.store.store import Store
from headroom.streaming.store.tick_row_queue import TickRowQueue, TickRows
from headroom.streaming.transforms.gold import Gold
from tests.spark.support import ListTopic, MemoryStore, checkpoint, rows_of
from tests.spark.ticks import TICK_MS, broker, log, message, move, records, tick
from tests.support.waiting import until
from tests.unit.fakes.alert_path_listener import CallingListener

MB = 1_000_000
Rows = dict[Table, list[dict[str, Any]]]


def hand_made() -> list[list[dict[str, Any]]]:
    """Ticks with what is rare: nothing moves, a list is left, no leader, lists unknown, nothing but lost replicas."""
    logs = [log(1, 9000, 2 * MB), log(2, 9000, 2 * MB), log(3, 1000, MB)]
    listed = {"leader_listed": [1, 2], "follower_listed": [3]}
    moving = move("t", 0, 1, [3, 2, 1], isr=[1, 2], adding=[3], removing=[1], logs=logs, **listed)
    by_tick = [
        [],
        [moving],
        [move("t", 0, 1, [1, 2], logs=logs, leader_listed=[1, 2])],
        [move("t", 0, None, [1, 2, 3], isr=[], adding=[3], offline=[1, 2])],
        [move("t", 0, 3, [3, 2, 1], isr=[3, 2], adding=[3, 1], leader_listed=None, follower_listed=None)],
        [move("t", 0, 1, [1, 2], isr=[1])],
        [moving, moving | {"partition": 1, "adding": [3, 2], "isr": [1]}, move("u", 0, 2, [2, 1])],
    ]
    ticks = []
    for number, moves in enumerate(by_tick):
        sent = tick([broker(b, 3 * MB, None) for b in (1, 2, 3)], moves, TICK_MS + number * 1000)
        ticks.append(sent if moves else [sent[0], sent[2] | {"lane_messages": 1}])
    return ticks


def synthetic(seed: int) -> list[list[dict[str, Any]]]:
    """Ticks of a random cluster, a third of whose partitions move, with switches and changes of throttles."""
    workload = Workload(
        brokers=6,
        topics=9,
        partitions=45,
        moving_ratio=0.4,
        switches_per_minute=60,
        throttle_changes_per_minute=60,
        seed=seed,
        cluster="c1",
        begin_ms=TICK_MS + 100_000 * seed,
    )
    ticks = []
    for one in SyntheticCluster(workload).ticks(3):
        sent = [json.loads(m.value) for m in encode_rows("c1", one.tick_ms, one) if m.for_alerts]
        ticks.append([*sent, message("tick_end", 99, None, one.tick_ms, lane_messages=len(sent))])
    return ticks


def alert_partition(ticks: Sequence[Sequence[dict[str, Any]]]) -> list[dict[str, Any]]:
    """The messages of ticks, each end with the offset of its tick's begin."""
    messages: list[dict[str, Any]] = []
    for of_tick in ticks:
        begin = len(messages)
        messages += [*of_tick[:-1], of_tick[-1] | {"first_offset": begin}]
    return messages


TICKS = [*hand_made(), *synthetic(1), *synthetic(2)]


class Run:
    """Alert path and gold job over the same ticks and the same folder."""

    def __init__(self, spark: SparkSession, folder: Path, ticks: Sequence[Sequence[dict[str, Any]]] = TICKS) -> None:
        self.spark, self.folder = spark, folder
        self.ticks = ticks
        self.messages = alert_partition(ticks)
        self.topic: Any = ListTopic(spark, self.messages)
        self.store = Store(spark, str(folder / "store"))
        self._starts = 0

    def batches(self, first: int, end: int, size: int) -> list[Any]:
        """Some ticks, so many of them in a batch."""
        lengths = [len(of_tick) for of_tick in self.ticks]
        begins = [sum(lengths[:n]) for n in range(len(lengths) + 1)]
        return [
            records(self.spark, self.messages[begins[n] : begins[min(n + size, end)]], begins[n])
            for n in range(first, end, size)
        ]

    def alert_path(self, first: int = 0, end: int | None = None, size: int = 1, interval_s: float = 1000.0) -> None:
        """A process whose alert path evaluates some ticks, and then ends."""
        self._starts += 1
        gold = AlertPathGold(self.spark, Store(self.spark, str(self.folder / "store")), interval_s)
        path = AlertPath(
            self.spark,
            AlertPathSource(self.topic, checkpoint(self.folder, f"alert-path-{self._starts}")),
            EventLog(self.spark, MemoryStore(self.spark)),
            AlertEngine(Settings(), lambda: TICK_MS),
            CallingListener(),
            gold,
        )
        path.warm_up = MagicMock()
        for number, batch in enumerate(self.batches(first, len(self.ticks) if end is None else end, size)):
            path.gate.wrap(path._process_batch)(batch, number)
            self._wait_written(gold)
        gold.stop()

    @staticmethod
    def _wait_written(gold: AlertPathGold) -> None:
        """Wait until the thread has taken and written what it can at once; idle ticks wait for more."""
        queue = gold._queue

        def is_idle() -> bool:
            # The thread takes the computations and begins to write under this lock: none is overlooked in between.
            with queue._changed:
                return not (queue._computations or queue._is_writing)

        until(is_idle, deadline_s=120.0)

    def gold_job(self, first: int = 0, end: int | None = None, size: int = 100, store: Store | None = None) -> GoldJob:
        """A process whose gold job reads some ticks."""
        self._starts += 1
        where = checkpoint(self.folder, f"gold-{self._starts}")
        job = GoldJob(self.spark, self.topic, store or self.store, where, 1.0)
        job.prepare()
        for number, batch in enumerate(self.batches(first, len(self.ticks) if end is None else end, size)):
            job.write(batch, number)
        return job

    def rows(self, store: Store | None = None) -> Rows:
        return {table: rows_of(store or self.store, table) for table in TABLES}

    def versions(self) -> dict[str, int]:
        logs = {table.path: Path(self.store.location(table)) / "_delta_log" for table in TABLES}
        return {path: len(list(log.glob("*.json"))) for path, log in logs.items()}


@pytest.fixture(scope="module")
def by_spark(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Rows:
    """The rows of every tick as Spark writes them at a URL."""
    run, store = Run(spark, tmp_path_factory.mktemp("url")), MemoryStore(spark)
    run.gold_job(store=store)
    found = run.rows(store)
    assert {row["state"] for row in found[REASSIGNMENT_PROGRESS]} >= {"never", "catching_up"}
    assert len({row["tick_ms"] for row in found[THROTTLE_HEADROOM]}) == len(TICKS)
    return found


def assert_same(found: Rows, expected: Mapping[Table, list[dict[str, Any]]]) -> None:
    for table in TABLES:
        assert found[table] == expected[table], table.path


@pytest.fixture(scope="module")
def by_alert_path(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Run:
    """The tables to which the alert path has written all ticks, each in a batch of its own."""
    run = Run(spark, tmp_path_factory.mktemp("alert-path"))
    run.alert_path()
    return run


@pytest.mark.parametrize("size", [1, 4])
def test_the_alert_path_writes_the_rows_that_spark_would(
    spark: SparkSession, tmp_path: Path, by_spark: Rows, by_alert_path: Run, size: int
) -> None:
    run = by_alert_path
    if size > 1:
        run = Run(spark, tmp_path)
        run.alert_path(size=size)
    assert_same(run.rows(), by_spark)
    # The gold job finds nothing left, and gives the alert path more time from now on.
    before = run.versions()
    assert run.gold_job(size=5).pause_s() == 30
    assert run.versions() == before
    logs = [log for table in TABLES for log in Path(run.store.location(table)).glob("_delta_log/*.json")]
    assert [file.name for file in logs if "Apache-Spark" in file.read_text("utf-8")] == []


def test_the_gold_job_alone_writes_the_same_rows_beside_a_local_alert_path(
    spark: SparkSession, tmp_path: Path, by_spark: Rows
) -> None:
    run = Run(spark, tmp_path)
    job = run.gold_job(size=4)
    assert job.pause_s() == 3
    assert_same(run.rows(), by_spark)
    # Delivered again, to it and to the alert path; after a restart, and in other batches.
    before = run.versions()
    run.gold_job(size=3)
    run.alert_path(size=2)
    assert run.versions() == before
    assert_same(run.rows(), by_spark)
    assert not list(Path(run.store.location(THROTTLE_HEADROOM)).glob("_staged*/*"))
    for table in TABLES:
        maintain_prompt(run.store.location(table), table, 1)
    assert_same(run.rows(), by_spark)


def test_each_writes_what_the_other_has_left(spark: SparkSession, tmp_path: Path, by_spark: Rows) -> None:
    run = Run(spark, tmp_path)
    run.alert_path(2, 5)
    run.gold_job(0, 8, size=3)
    run.alert_path(6, 12)
    run.gold_job(7)
    assert_same(run.rows(), by_spark)


def test_a_crash_between_two_tables_is_made_good(spark: SparkSession, tmp_path: Path, by_spark: Rows) -> None:
    run = Run(spark, tmp_path)
    run.store.ensure(*TABLES)
    # Of some ticks one table has the rows, of others two have them.
    for table, ticks in ((THROTTLE_HEADROOM, (1, 4, 6)), (PARTITION_WRITE_RATE, (2, 4)), (REASSIGNMENT_PROGRESS, (6,))):
        for number in ticks:
            found = [row for row in by_spark[table] if row["tick_ms"] == TICK_MS + 1000 * number]
            rows = [{name: value for name, value in row.items() if name != "date"} for row in found]
            TickTable(run.store.location(table), table).append({("c1", TICK_MS + 1000 * number): rows})
    run.gold_job(0, 5, size=2)
    run.alert_path(4)
    assert_same(run.rows(), by_spark)


@pytest.mark.parametrize("size", [1, 4])
def test_spark_writes_the_rows_of_large_moves_from_frames_that_are_kept_till_then(
    spark: SparkSession, tmp_path: Path, by_spark: Rows, monkeypatch: pytest.MonkeyPatch, size: int
) -> None:
    # The last hand-made tick has three rows of progress and two rates.
    monkeypatch.setattr(alert_path_gold, "_MOST_SENT_ROWS", 4)
    if size == 4:
        monkeypatch.setattr(Gold, "moves", property(lambda _: pytest.fail("sent to Python")))
    run = Run(spark, tmp_path)
    kept = set(spark.sparkContext._jsc.getPersistentRDDs())
    # The last batch has ticks that the first one had.
    run.alert_path(6, size=size)
    run.alert_path(5, 8, size=size)
    run.gold_job(0, 6)
    assert set(spark.sparkContext._jsc.getPersistentRDDs()) == kept
    assert_same(run.rows(), by_spark)
    for table in TABLES:
        assert not list(Path(run.store.location(table)).glob("_staged*/*"))


def test_the_gold_job_reads_no_rows_of_ticks_that_the_tables_have(
    by_alert_path: Run, by_spark: Rows, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = by_alert_path
    monkeypatch.setattr(CompleteTicksReader, "read", lambda *_: pytest.fail("read"))
    # Some earlier ticks have messages of moves, but no row of progress: their keys do not show that none is missing.
    job = run.gold_job(6, size=1)
    assert job.end_offset == len(run.messages)
    assert_same(run.rows(), by_spark)


def test_the_gold_job_reads_ticks_that_began_before_its_batch(
    spark: SparkSession, tmp_path: Path, by_spark: Rows
) -> None:
    run = Run(spark, tmp_path)
    run.alert_path(0, 1)
    job = run.gold_job(0, 1)
    begin = len(TICKS[0])
    messages = run.messages[begin : begin + len(TICKS[1])]
    job.write(records(spark, messages[:2], begin), 1)
    # Nothing ends in it.
    assert job.end_offset is None
    job.write(records(spark, messages[2:], begin + 2), 2)
    assert job.end_offset == begin + len(messages)
    found = run.rows()
    for table in TABLES:
        assert found[table] == [row for row in by_spark[table] if row["tick_ms"] <= TICK_MS + 1000]


def test_rows_of_moves_are_left_to_the_gold_job_while_batches_take_long(
    spark: SparkSession, tmp_path: Path, by_spark: Rows
) -> None:
    run = Run(spark, tmp_path)
    run.alert_path(interval_s=0.0)
    found = run.rows()
    assert found[THROTTLE_HEADROOM] == by_spark[THROTTLE_HEADROOM]
    assert (found[REASSIGNMENT_PROGRESS], found[PARTITION_WRITE_RATE]) == ([], [])
    run.gold_job()
    assert_same(run.rows(), by_spark)


def test_what_the_alert_path_commits_while_spark_writes_its_files_is_there_once(
    spark: SparkSession, tmp_path: Path, by_spark: Rows, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = Run(spark, tmp_path)
    of = Gold.of
    rivals = [(2, 6)]

    def meanwhile(*given: Any) -> Any:
        if rivals:
            run.alert_path(*rivals.pop())
        return of(*given)

    monkeypatch.setattr(Gold, "of", meanwhile)
    run.gold_job()
    assert_same(run.rows(), by_spark)


def test_days_and_clusters_are_kept_apart(spark: SparkSession, tmp_path: Path) -> None:
    def of(cluster: str, at_ms: int) -> list[dict[str, Any]]:
        sent = TICKS[1]
        return [m | {"cluster": cluster, "tick_ms": at_ms} for m in sent]

    midnight_ms = TICK_MS - TICK_MS % 86_400_000
    ticks = [of(name, midnight_ms + 1000 * n) for n in (-1, 0) for name in ("c1", "c2")]
    run, store = Run(spark, tmp_path / "local", ticks), MemoryStore(spark)
    run.gold_job(0, 3)
    run.alert_path(2, size=2)
    other = Run(spark, tmp_path / "url", ticks)
    other.gold_job(store=store)
    assert_same(run.rows(), other.rows(store))
    assert len({row["date"] for row in run.rows()[THROTTLE_HEADROOM]}) == 2


def test_rows_of_moves_that_cannot_be_computed_are_left_to_the_gold_job(
    spark: SparkSession, tmp_path: Path, by_spark: Rows, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fails(*_: Any) -> Any:
        raise ValueError("moves")

    monkeypatch.setattr(Gold, "moves", property(fails))
    run = Run(spark, tmp_path)
    run.alert_path(0, 3)
    assert len({row["tick_ms"] for row in run.rows()[THROTTLE_HEADROOM]}) == 3
    run.gold_job()
    assert_same(run.rows(), by_spark)


def test_a_tick_is_urgent_while_something_moves(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    put: list[tuple[TickRows, bool]] = []
    monkeypatch.setattr(
        TickRowQueue, "put", lambda _, added, *computation: put.extend((one, bool(computation)) for one in added)
    )
    Run(spark, tmp_path).alert_path(0, 2)
    assert [(one.table.path, one.tick[1] - TICK_MS, one.urgent, computes) for one, computes in put] == [
        (THROTTLE_HEADROOM.path, 0, False, False),
        (THROTTLE_HEADROOM.path, 1000, True, True),
    ]

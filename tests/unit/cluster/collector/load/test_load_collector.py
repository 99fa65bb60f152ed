"""Loads and log directories apart from the ticks: when they are read, and which rows they become."""

from __future__ import annotations

import logging
from dataclasses import replace
from typing import Any

import pytest

from headroom.cluster.collector.clock import Clock
from headroom.cluster.collector.load.background_reads import GROUP, BackgroundReads
from headroom.cluster.collector.load.load_collector import MOST_REPLICA_ROWS, LoadCollector
from headroom.cluster.collector.rows.message_rows import METERS
from headroom.cluster.metrics.load_meters import (
    FOLLOWER_FETCH_P99,
    HANDLER_IDLE,
    LOG_DIRS_TOTAL,
    LOG_DIRS_USABLE,
    LOG_DIRS_USED,
    LOG_FLUSH_P999,
    PRODUCE_P99,
    fetch_requests,
    produce_requests,
    topic_consumed,
)
from headroom.cluster.metrics.mbeans import LOAD, ReadPlan
from headroom.cluster.metrics.source import MetricsError
from headroom.cluster.model import Broker, Meter, Metrics, Reading, Snapshot
from headroom.schemas.bounds import MOST_OF_LOG
from headroom.schemas.config import CollectSettings, LogDirVolumes
from headroom.schemas.errors import HeadroomError
from headroom.schemas.tick_messages import ROWS, row_columns
from tests.support.waiting import until
from tests.unit.fakes.log_dir_brokers import LogDirBrokers, described

COLLECT = CollectSettings(load_interval_s=30.0, log_dirs_interval_s=300.0, endpoints={"1": "h:1", "2": "h:2"})
SNAPSHOT = Snapshot({1: Broker(1, "h", 9092, True, "a"), 2: Broker(2, "h", 9093, True)}, {}, {})
PLANS = {b: ReadPlan(["orders"], [], [], replicas=4) for b in (1, 2)}
BYTES_IN, REPLICATED_IN = (
    Meter(f"BrokerTopicMetrics.{name}") for name in ("BytesInPerSec", "ReplicationBytesInPerSec")
)
GIB = 2**30


class Loads:
    """A source whose brokers carry more with each second; records the plans."""

    def __init__(self, clock: FakeClock) -> None:
        self.clock = clock
        self.plans: list[ReadPlan] = []
        self.started_ms = 7
        self.failing = False
        self.gauges = {PRODUCE_P99: 12.5, FOLLOWER_FETCH_P99: 501.0, LOG_FLUSH_P999: 87.25}

    def start(self) -> None:
        pass

    def stop(self) -> None:
        pass

    def read(self, broker: int, endpoint: str, plan: ReadPlan, timeout_s: float) -> Metrics:
        self.plans.append(plan)
        if self.failing:
            raise MetricsError(endpoint, "refused", "Open it.")
        now_ms = self.clock.now_ms()
        second = int(self.clock.elapsed)
        counts = {
            BYTES_IN: 1000 * second,
            REPLICATED_IN: 500 * second,
            topic_consumed(): 9 * second,
            topic_consumed("orders"): 9 * second,
            produce_requests(): 50 * second,
            produce_requests("orders"): 50 * second,
            fetch_requests(): 70 * second,
            fetch_requests("orders"): 70 * second,
            # Idle for 750 ms of each second.
            HANDLER_IDLE: 750_000_000 * second,
        }
        return Metrics(
            self.started_ms,
            {meter: Reading(now_ms, count) for meter, count in counts.items()},
            {meter: Reading(now_ms, value) for meter, value in self.gauges.items()},
            (),
            {},
        )


class FakeClock:
    """A clock that the test advances."""

    def __init__(self) -> None:
        self.elapsed = 100.0

    def now_ms(self) -> int:
        return int(self.elapsed * 1000)

    def clock(self) -> Clock:
        return Clock(lambda: self.elapsed, lambda: self.elapsed)


class Stage:
    """A load collector of two brokers, one of which has two log directories."""

    def __init__(self, collect: CollectSettings = COLLECT, volumes: LogDirVolumes = LogDirVolumes.ASSUMED) -> None:
        self.time = FakeClock()
        self.source = Loads(self.time)
        self.admin = LogDirBrokers()
        self.admin.directories = {
            1: [
                described("/a", {("orders", 0): (GIB, 0, False)}, total_bytes=100 * GIB, usable_bytes=60 * GIB),
                described("/b", {("orders", 0): (GIB // 2, 9, True)}, total_bytes=50 * GIB, is_cordoned=True),
            ],
            2: [described("/a", {("orders", 1): (2 * GIB, 3, False)})],
        }
        # Brokers that do not answer the tick.
        self.silent: set[int] = set()
        admin: Any = self.admin
        self.collector = LoadCollector(collect, self.source, admin, self.time.clock(), volumes)

    def tick(self, snapshot: Snapshot = SNAPSHOT) -> dict[str, list[dict[str, Any]]]:
        """Start what is due, wait until it was read, and return the rows of the next tick."""
        self.collector.start_due(snapshot, {b: plan for b, plan in PLANS.items() if snapshot.brokers[b].alive})
        until(lambda: self.collector._loads.idle() and self.collector._log_dirs.idle())
        alive = {b for b, found in snapshot.brokers.items() if found.alive}
        rows, meters = self.collector.rows(snapshot, alive - self.silent)
        columns = [dict(zip(METERS, values, strict=True)) for part in meters for values in rows_of(part)]
        return {kind: [dict(row) for row in found] for kind, found in rows.items()} | {"meters": columns}


def rows_of(part: Any) -> list[tuple[Any, ...]]:
    return list(zip(*(part[name] for name in METERS), strict=True))


@pytest.mark.parametrize("kind", ["broker_performance", "log_dirs", "replica_sizes"])
def test_rows_have_the_columns_of_their_contract(kind: str) -> None:
    rows = Stage().tick()[kind]
    assert rows
    for row in rows:
        assert sorted(row) == sorted(row_columns(kind))
    assert ROWS[kind]


def test_a_reading_carries_the_one_before_and_so_gives_rates() -> None:
    stage = Stage()
    first = stage.tick()["broker_performance"]
    assert [(row["broker"], row["rack"], row["prev_read_ms"]) for row in first] == [(1, "a", None), (2, None, None)]
    stage.time.elapsed = 130.0
    row = stage.tick()["broker_performance"][0]
    assert row == {
        "broker": 1,
        "rack": "a",
        "read_ms": 130_000,
        "prev_read_ms": 100_000,
        # From producers 1,000 bytes a second, and 500 from leaders.
        "bytes_in": 195_000,
        "prev_bytes_in": 150_000,
        "produce_requests": 6_500,
        "prev_produce_requests": 5_000,
        "fetch_requests": 9_100,
        "prev_fetch_requests": 7_000,
        "handler_idle_ns": 97_500_000_000,
        "prev_handler_idle_ns": 75_000_000_000,
        "produce_p99_ms": 12.5,
        "follower_fetch_p99_ms": 501.0,
        "log_flush_p999_ms": 87.25,
    }


def test_a_broker_is_read_once_per_interval_and_its_latest_values_are_in_every_tick() -> None:
    stage = Stage()
    stage.tick()
    stage.time.elapsed = 130.0
    fresh = stage.tick()
    stage.time.elapsed = 135.0
    between = stage.tick()
    assert len(stage.source.plans) == 4
    assert all(plan.scope is LOAD for plan in stage.source.plans)
    assert "broker_performance" not in between
    # Topics only in the tick after the reading.
    assert {row["topic"] for row in fresh["meters"]} == {None, "orders"}
    assert {row["topic"] for row in between["meters"]} == {None}
    for rows in (fresh, between):
        whole = {row["meter"]: row for row in rows["meters"] if row["broker"] == 1 and row["topic"] is None}
        assert whole["BrokerTopicMetrics.TotalProduceRequestsPerSec"]["count_total"] == 6_500
        assert whole["BrokerTopicMetrics.TotalProduceRequestsPerSec"]["prev_read_ms"] == 100_000
        assert whole[HANDLER_IDLE.meter]["gauge_value"] == pytest.approx(0.75)
        assert whole[LOG_FLUSH_P999.meter]["gauge_value"] == 87.25
        # Ticks have these themselves.
        assert not whole.keys() & {BYTES_IN.meter, REPLICATED_IN.meter, "BrokerTopicMetrics.BytesOutPerSec"}
        assert len({(r["broker"], r["meter"], r["topic"]) for r in rows["meters"]}) == len(rows["meters"])


def test_values_that_are_not_read_again_end_after_three_intervals() -> None:
    stage = Stage()
    stage.tick()
    stage.source.failing = True
    stage.admin.errors = {1: 1, 2: 1}
    stage.time.elapsed = 190.0
    assert {row["broker"] for row in stage.tick()["meters"] if row["meter"] == LOG_FLUSH_P999.meter} == {1, 2}
    stage.time.elapsed = 191.0
    assert {row["meter"] for row in stage.tick()["meters"]} == {LOG_DIRS_USED.meter, LOG_DIRS_TOTAL.meter}
    stage.time.elapsed = 1001.0
    assert stage.tick()["meters"] == []


def test_a_broker_that_does_not_answer_a_tick_has_no_meters_in_it() -> None:
    stage = Stage()
    stage.tick()
    stage.silent = {2}
    stage.time.elapsed = 101.0
    assert {row["broker"] for row in stage.tick()["meters"]} == {1}
    stage.silent = set()
    stage.time.elapsed = 102.0
    assert {row["broker"] for row in stage.tick()["meters"]} == {1, 2}


def test_a_broker_that_restarted_or_went_down_has_no_earlier_counters() -> None:
    stage = Stage()
    stage.tick()
    stage.source.started_ms = 8
    stage.time.elapsed = 130.0
    assert [row["prev_read_ms"] for row in stage.tick()["broker_performance"]] == [None, None]
    down = replace(SNAPSHOT, brokers={**SNAPSHOT.brokers, 2: Broker(2, "h", 9093, False)})
    stage.time.elapsed = 135.0
    assert {row["broker"] for row in stage.tick(down)["meters"]} == {1}


def test_log_directories_become_rows_with_the_logs_in_them() -> None:
    rows = Stage().tick()
    assert [tuple(row.values()) for row in rows["log_dirs"]] == [
        (1, 100_000, "/a", 100 * GIB, 60 * GIB, False, False),
        (1, 100_000, "/b", 50 * GIB, None, False, True),
        (2, 100_000, "/a", None, None, False, False),
    ]
    assert [tuple(row.values()) for row in rows["replica_sizes"]] == [
        (1, "orders", 0, 100_000, "/a", GIB, 0, False),
        (1, "orders", 0, 100_000, "/b", GIB // 2, 9, True),
        (2, "orders", 1, 100_000, "/a", 2 * GIB, 3, False),
    ]
    sizes = {(r["broker"], r["meter"]): r["gauge_value"] for r in rows["meters"] if r["meter"].startswith("LogDirs.")}
    # Both logs of broker 1; broker 2 does not report the size of its volume.
    assert sizes == {
        (1, LOG_DIRS_USED.meter): 1.5 * GIB,
        (1, LOG_DIRS_TOTAL.meter): 150 * GIB,
        (2, LOG_DIRS_USED.meter): 2 * GIB,
    }


def test_free_bytes_are_those_of_directories_that_are_online() -> None:
    stage = Stage()
    room = {"total_bytes": 100 * GIB, "usable_bytes": 60 * GIB}
    # Logs of 30 GiB each do not fit into the 40 GiB that are used of one volume.
    logs = [{("orders", number): (30 * GIB, 0, False)} for number in range(2)]
    stage.admin.directories[2] = [described("/a", logs[0], **room), described("/b", logs[1], **room)]
    found = {r["meter"]: r["gauge_value"] for r in stage.tick()["meters"] if r["broker"] == 2}
    assert (found[LOG_DIRS_USABLE.meter], found[LOG_DIRS_TOTAL.meter]) == (120 * GIB, 200 * GIB)


@pytest.mark.parametrize(
    ("volumes", "times"), [(LogDirVolumes.ASSUMED, 1), (LogDirVolumes.SHARED, 1), (LogDirVolumes.SEPARATE, 2)]
)
def test_directories_on_one_volume_are_counted_once(volumes: LogDirVolumes, times: int) -> None:
    room = {"total_bytes": 100 * GIB, "usable_bytes": 60 * GIB}
    stage = Stage(volumes=volumes)
    stage.admin.directories[2] = [described("/a", {}, **room), described("/b", {}, **room)]
    found = {r["meter"]: r["gauge_value"] for r in stage.tick()["meters"] if r["broker"] == 2}
    assert (found[LOG_DIRS_USABLE.meter], found[LOG_DIRS_TOTAL.meter]) == (times * 60 * GIB, times * 100 * GIB)


@pytest.mark.parametrize("size", [-1, MOST_OF_LOG + 1, 2**63 - 1])
def test_a_size_that_no_log_can_have_is_unknown_and_costs_nothing_else(size: int) -> None:
    stage = Stage()
    stage.admin.directories[1] = [described("/a", {("orders", 0): (size, 0, False), ("orders", 2): (5, 0, False)})]
    rows = stage.tick()
    assert [(r["partition"], r["size_bytes"]) for r in rows["replica_sizes"]] == [(0, None), (2, 5), (1, 2 * GIB)]
    # A sum with an unknown part would be false.
    assert {r["broker"] for r in rows["meters"] if r["meter"] == LOG_DIRS_USED.meter} == {2}


def test_many_logs_are_spread_over_ticks() -> None:
    stage = Stage()
    many = {("orders", n): (1, 0, False) for n in range(MOST_REPLICA_ROWS)}
    stage.admin.directories = {b: [described("/a", many)] for b in (1, 2)}
    counts = []
    for _ in range(3):
        counts.append(len(stage.tick().get("replica_sizes", ())))
        stage.time.elapsed += 1
    assert counts == [MOST_REPLICA_ROWS, MOST_REPLICA_ROWS, 0]


def test_a_clock_step_moves_the_samples_along() -> None:
    stage = Stage()
    stage.tick()
    stage.collector.shift(5_000)
    stage.time.elapsed = 135.0
    row = stage.tick()["broker_performance"][0]
    assert (row["prev_read_ms"], row["read_ms"]) == (105_000, 135_000)


def test_what_a_broker_leaves_out_is_logged_once(caplog: pytest.LogCaptureFixture) -> None:
    stage = Stage()
    del stage.source.gauges[LOG_FLUSH_P999]
    with caplog.at_level(logging.WARNING, "headroom.cluster.collector.load"):
        for second in (100.0, 130.0, 160.0):
            stage.time.elapsed = second
            stage.tick()
    texts = [record.getMessage() for record in caplog.records]
    assert len(texts) == 2
    assert "slow brokers are not detected" in texts[0]


def test_a_broker_that_is_not_reached_costs_no_other_rows_and_is_logged_once(caplog: pytest.LogCaptureFixture) -> None:
    stage = Stage(replace(COLLECT, log_dirs_interval_s=30.0))
    stage.admin.errors = {2: 31}
    with caplog.at_level(logging.INFO, "headroom.cluster.collector.load"):
        for second in (100.0, 130.0):
            stage.time.elapsed = second
            assert {row["broker"] for row in stage.tick()["log_dirs"]} == {1}
        stage.admin.errors = {}
        stage.time.elapsed = 160.0
        assert {row["broker"] for row in stage.tick()["log_dirs"]} == {1, 2}
    assert [(record.levelname, record.getMessage().partition(":")[0]) for record in caplog.records] == [
        ("WARNING", "broker 2"),
        ("INFO", "broker 2"),
    ]


def test_a_client_that_breaks_is_opened_again(monkeypatch: pytest.MonkeyPatch) -> None:
    stage = Stage(replace(COLLECT, log_dirs_interval_s=30.0))
    calls: list[str] = []
    monkeypatch.setattr(stage.admin, "client", lambda: calls.append("client"))
    monkeypatch.setattr(stage.admin, "close", lambda: calls.append("close"))
    stage.admin.directories[1] = [object()]  # type: ignore[list-item]
    assert {row["broker"] for row in stage.tick()["log_dirs"]} == {2}
    assert sorted(calls) == ["client", "client", "close"]


def test_an_interval_of_zero_reads_never() -> None:
    stage = Stage(replace(COLLECT, load_interval_s=0.0, log_dirs_interval_s=0.0))
    assert stage.tick() == {"meters": []}
    assert (stage.source.plans, stage.admin.requests) == ([], [])


def test_many_brokers_are_spread_over_the_interval_and_later_ones_are_read_at_once() -> None:
    reads: BackgroundReads[int] = BackgroundReads("loads", 30.0)
    brokers = list(range(3 * GROUP))
    starts: list[list[int]] = []
    for second in range(61):
        due = reads.due(brokers, float(second))
        starts.append(due)
        for broker in due:
            reads.start(broker, float(second), lambda: 0)
        until(reads.idle)
        reads.take()
    sizes = {second: len(due) for second, due in enumerate(starts) if due}
    assert sizes == dict.fromkeys((0, 10, 20, 30, 40, 50, 60), GROUP)
    assert reads.due([*brokers, 99], 61.0) == [99]


def test_a_broker_that_hangs_is_not_read_twice_and_its_result_after_a_clock_step_is_discarded() -> None:
    reads: BackgroundReads[int] = BackgroundReads("loads", 30.0)
    waiting: list[bool] = [True]

    def read() -> int:
        until(lambda: not waiting[0])
        return 5

    assert reads.due([1], 0.0) == [1]
    reads.start(1, 0.0, read)
    assert reads.due([1], 40.0) == []
    assert reads.take() == {}
    reads.discard_running()
    waiting[0] = False
    until(reads.idle)
    assert reads.take() == {}
    assert reads.due([1], 41.0) == [1]


def test_an_unexpected_error_is_logged_with_its_trace(caplog: pytest.LogCaptureFixture) -> None:
    reads: BackgroundReads[int] = BackgroundReads("loads", 30.0)
    for second, error in enumerate((KeyError("topic"), KeyError("topic"), HeadroomError("h", "hangs", "Wait."))):

        def fail(error: Exception = error) -> int:
            raise error

        reads.due([1], 30.0 * second)
        reads.start(1, 30.0 * second, fail)
        until(reads.idle)
        with caplog.at_level(logging.WARNING, "headroom.cluster.collector.load"):
            assert reads.take() == {}
    assert [(record.exc_info is not None, record.getMessage()) for record in caplog.records] == [
        (True, "broker 1: its loads were not read: KeyError"),
        (False, "broker 1: its loads were not read: h: hangs. Wait."),
    ]

"""The collector when the clock of its machine is set: rates continue, and remembered switches keep their time."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from typing import Any

import pytest

import headroom.cluster.collector.collector
from headroom.cluster.collector.collector import Collector
from headroom.cluster.collector.publisher import SentMessages
from headroom.cluster.collector.rows.encoder import Message
from headroom.cluster.metrics.broker_reads import BrokerMetricsReader
from headroom.cluster.metrics.mbeans import ReadPlan, topic_bytes, topic_messages
from headroom.cluster.model import Lag, LogReading, Meter, Metrics, Reading
from headroom.schemas.config import ClusterSettings, CollectSettings, Settings
from headroom.schemas.keys import TopicPartition
from tests.unit.fakes.admin_connection import ManyTopics
from tests.unit.fakes.clocks import START_MS, FakeTime

MOVING = TopicPartition("a", 0)
HOUR_MS = 3_600_000
# The rate window of ticks that come every second.
WINDOW_MS = 10_000
STEPS = pytest.mark.parametrize("step_ms", [-HOUR_MS, -300, 20_000, HOUR_MS])
Row = dict[str, Any]


class Brokers(ManyTopics):
    """Three brokers and topic a of two partitions; a reassignment adds broker 3 to partition 0."""

    def __init__(self) -> None:
        super().__init__({"a": 2})
        self.moving = [("a", 0)]

    def client(self) -> None:
        pass

    def close(self) -> None:
        pass

    def switch(self, leader: int) -> None:
        self.leaders["a", 0] = leader
        self.epochs["a", 0] = self.epochs.get(("a", 0), 0) + 1


class Source:
    """Metrics in which every log and counter grows by 10 a second, but for the log of broker 3, which ends at 7.

    Attributes:
        on_read: called between the counters and the logs of a broker, with its id.
    """

    def __init__(self, now: FakeTime) -> None:
        self._now = now
        self.on_read: Callable[[int], None] = lambda broker: None

    def start(self) -> None:
        pass

    def stop(self) -> None:
        pass

    def read(self, broker: int, endpoint: str, plan: ReadPlan, timeout_s: float) -> Metrics:
        count = 1000 + round(self._now.elapsed_s * 10)
        before_ms = self._now.wall_ms()
        self.on_read(broker)
        after_ms = self._now.wall_ms()
        end = 7 if broker == 3 else count
        logs = {name: LogReading(after_ms, end, 0, end * 100) for name in plan.watched}
        ends = {name: LogReading(after_ms, end, None, None) for name in plan.ends_only}
        meters = [Meter("BrokerTopicMetrics.BytesInPerSec"), topic_bytes("a"), topic_messages("a")]
        lags = (Lag(MOVING, 1, "ReplicaFetcherThread-0-1", 5),) if broker == 3 else ()
        return Metrics(7, {meter: Reading(before_ms, count) for meter in meters}, {}, lags, logs | ends)


class Rows:
    """A sink that keeps the rows of the last tick, by kind; ``on_send`` is called before it does."""

    def __init__(self) -> None:
        self.on_send: Callable[[], None] = lambda: None
        self.of: dict[str, list[Row]] = {}
        self.tick_ms = 0
        self.end: dict[str, Any] = {}

    def open(self) -> None:
        pass

    def close(self) -> None:
        pass

    def send(self, messages: list[Message]) -> SentMessages:
        self.on_send()
        self.of = {}
        for message in map(json.loads, (message.value for message in messages)):
            columns = message.get("columns")
            rows = (
                message["rows"]
                if columns is None
                else [dict(zip(columns, values, strict=True)) for values in zip(*columns.values(), strict=True)]
            )
            self.of.setdefault(message["kind"], []).extend(rows)
            self.tick_ms = message["tick_ms"]
        return SentMessages({}, 0, 0)

    def send_end(self, cluster: str, tick_ms: int, seq: int, end: dict[str, Any]) -> None:
        self.end = {"tick_ms": tick_ms, **end}


class Running:
    """A collector whose ticks come every second."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.now, self.brokers, self.rows = FakeTime(), Brokers(), Rows()
        self.source = Source(self.now)
        monkeypatch.setattr(headroom.cluster.collector.collector, "AdminConnection", lambda settings: self.brokers)
        monkeypatch.setattr(
            headroom.cluster.collector.collector, "metrics_sources", lambda collect: (self.source, self.source)
        )
        settings = Settings(
            cluster=ClusterSettings(bootstrap_servers="h:1", name="c"),
            # Brokers answer as soon as their threads run, which a busy machine may put off.
            collect=CollectSettings(
                interval_s=1.0, broker_timeout_s=60.0, load_interval_s=0.0, log_dirs_interval_s=0.0
            ),
        )
        self._collector = Collector(settings, self.rows, clock=self.now.clock)

    def tick(self, count: int = 1) -> Rows:
        """Run this many ticks and return the rows of the last one."""
        for _ in range(count):
            self.now.elapsed_s += 1
            report = self._collector.tick()
            assert report.unanswered == []
        return self.rows

    @property
    def move(self) -> Row:
        (row,) = (row for row in self.rows.of["moves"] if row["partition"] == 0)
        return row


@pytest.fixture
def running(monkeypatch: pytest.MonkeyPatch) -> Running:
    return Running(monkeypatch)


def samples(rows: Rows) -> Iterator[tuple[Row, str]]:
    """Yield every row or struct of a tick that has an earlier sample, and the name of its value."""
    for kind, value in (("meters", "count_total"), ("logs", "log_end_offset")):
        yield from ((row, value) for row in rows.of[kind])
    for move in rows.of["moves"]:
        yield from ((log, "log_end_offset") for log in move["logs"])
        yield move["topic_counters"], "bytes_in"
        if move["before_log"] is not None:
            yield move["before_log"], "log_end_offset"
            yield move["before_topic_counters"], "bytes_in"


def rates(rows: Rows) -> set[float]:
    """Return how fast every value of a tick grew per second."""
    return {
        round((row[value] - row[f"prev_{value}"]) / (row["read_ms"] - row["prev_read_ms"]) * 1000, 3)
        for row, value in samples(rows)
    }


@STEPS
def test_rates_go_on_through_a_step_between_ticks(running: Running, step_ms: int) -> None:
    running.tick(15)
    running.now.set_ms += step_ms
    for _ in range(15):
        rows = running.tick()
        # The log of broker 3 stays as it is.
        assert rates(rows) == {10.0, 0.0}
        for row, _ in samples(rows):
            assert (row["read_ms"], row["prev_read_ms"]) == (rows.tick_ms, rows.tick_ms - WINDOW_MS)


@pytest.mark.parametrize("step_ms", [-HOUR_MS, 20_000, HOUR_MS])
def test_rates_go_on_through_a_step_while_brokers_are_read(running: Running, step_ms: int) -> None:
    running.tick(15)

    def set_once(broker: int) -> None:
        if broker == 2:
            running.now.set_ms += step_ms
            running.source.on_read = lambda _: None

    running.source.on_read = set_once
    for tick in range(16, 31):
        rows = running.tick()
        assert rates(rows) == {10.0, 0.0}
        # All of the tick is on the clock as it is after the step.
        assert rows.tick_ms == rows.end["tick_ms"] == rows.end["started_ms"] == START_MS + tick * 1000 + step_ms
        assert rows.end["ended_ms"] == rows.tick_ms
        assert {row["read_ms"] for row, _ in samples(rows)} == {rows.tick_ms}


@STEPS
def test_a_tick_lasts_as_long_as_it_did_when_the_clock_is_set_while_it_is_written(
    running: Running, step_ms: int
) -> None:
    def set_clock() -> None:
        running.now.elapsed_s += 0.25
        running.now.set_ms += step_ms

    running.rows.on_send = set_clock
    rows = running.tick()
    assert (rows.end["started_ms"], rows.end["ended_ms"]) == (START_MS + 1000, START_MS + 1250)


@STEPS
def test_a_switch_of_before_a_step_keeps_its_samples_as_long_as_another(running: Running, step_ms: int) -> None:
    running.tick(15)
    running.brokers.switch(2)
    running.tick(2)
    # Seen first in tick 16; last read under leader 1 in tick 15.
    assert (running.move["previous_leader"], running.move["switch_tick_ms"]) == (1, START_MS + 16_000)
    running.now.set_ms += step_ms
    for tick in range(18, 40):
        rows = running.tick()
        assert running.move["switch_tick_ms"] == START_MS + 16_000 + step_ms
        before = running.move["before_log"]
        # One window of 10 s, an interval and 5 s for the backlog of producers after tick 16 end with tick 32.
        assert (before is not None) == (tick <= 32)
        if before is not None:
            last_ms = START_MS + 15_000 + step_ms
            assert (before["broker"], before["read_ms"], before["prev_read_ms"]) == (1, last_ms, last_ms - WINDOW_MS)
            assert running.move["before_topic_counters"]["prev_read_ms"] == last_ms - WINDOW_MS
        assert rates(rows) == {10.0, 0.0}


@STEPS
def test_a_switch_that_the_tick_after_a_step_shows_has_samples_of_one_clock(running: Running, step_ms: int) -> None:
    running.tick(15)
    running.now.set_ms += step_ms
    running.brokers.switch(2)
    rows = running.tick()
    last_ms = START_MS + 15_000 + step_ms
    assert running.move["switch_tick_ms"] == rows.tick_ms == last_ms + 1000
    assert (running.move["before_log"]["read_ms"], running.move["before_log"]["prev_read_ms"]) == (
        last_ms,
        last_ms - WINDOW_MS,
    )
    assert rates(rows) == {10.0, 0.0}


@STEPS
def test_how_long_an_end_is_unchanged_moves_with_the_clock(running: Running, step_ms: int) -> None:
    running.tick(40)
    running.now.set_ms += step_ms
    rows = running.tick()
    since = {log["broker"]: log["unchanged_since_ms"] for log in running.move["logs"]}
    # The log of broker 3 was first read in tick 1; the others grow.
    assert since == {1: rows.tick_ms, 2: rows.tick_ms, 3: START_MS + 1000 + step_ms}


@STEPS
@pytest.mark.parametrize("while_read", [True, False])
def test_answers_that_came_late_are_discarded_when_the_clock_is_set(
    running: Running, monkeypatch: pytest.MonkeyPatch, step_ms: int, while_read: bool
) -> None:
    discarded: list[int] = []
    running.tick()
    monkeypatch.setattr(BrokerMetricsReader, "discard_late", lambda readers: discarded.append(step_ms))
    running.tick()
    assert discarded == []

    def set_once(broker: int) -> None:
        running.now.set_ms += step_ms
        running.source.on_read = lambda _: None

    if while_read:
        running.source.on_read = set_once
    else:
        set_once(1)
    running.tick(2)
    assert discarded == [step_ms]


def test_a_collector_has_its_identity_from_when_it_can_write(running: Running) -> None:
    running.now.set_ms += 5000
    running._collector.open()
    running.tick()
    assert running.rows.end["collector_started_ms"] == START_MS + 5000

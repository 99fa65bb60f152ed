"""Brokers that answer late: their metrics count in the tick in which they arrive."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Mapping
from concurrent.futures import wait
from types import SimpleNamespace
from typing import Any

import pytest
from kafka.errors import ClusterAuthorizationFailedError, KafkaTimeoutError

from headroom.cluster.metrics import broker_reads
from headroom.cluster.metrics.broker_reads import BrokerMetricsReader
from headroom.cluster.metrics.mbeans import ReadPlan
from headroom.cluster.metrics.source import MetricsError
from headroom.cluster.model import Broker, BrokerConfigs, BrokerRead, BrokerThrottles, Metrics
from headroom.schemas.config import CollectSettings
from tests.support.waiting import until

BROKERS = {b: Broker(b, "127.0.0.1", 9090 + b, True) for b in (1, 2)}
PLANS = {b: ReadPlan((), (), ()) for b in BROKERS}
# How long a tick waits where only the broker that does not answer is looked at, where the other one is too, and where
# both answer.
SHORT_S, WAIT_S, LONG_S = 0.1, 1.0, 30.0


class Slow:
    """A source whose broker 2 answers when it is let; each answer has a number."""

    def __init__(self) -> None:
        self.let = threading.Semaphore(0)
        self.asked = 0
        self.timeouts_s: list[float] = []

    def read(self, broker: int, endpoint: str, plan: ReadPlan, timeout_s: float) -> Metrics:
        if broker == 2:
            self.asked += 1
            number = self.asked
            self.timeouts_s.append(timeout_s)
            if not self.let.acquire(timeout=120):
                raise MetricsError(endpoint, "did not answer", "Wait.")
            return Metrics(number, {}, {}, (), {})
        return Metrics(0, {}, {}, (), {})


@pytest.fixture
def slow(monkeypatch: pytest.MonkeyPatch) -> Iterator[tuple[Slow, BrokerMetricsReader]]:
    known = BrokerConfigs(BrokerThrottles(known=True))
    monkeypatch.setattr("headroom.cluster.metrics.broker_reads.read_broker_configs", lambda *_: known)
    source: Any = Slow()
    connection: Any = None
    yield source, BrokerMetricsReader(connection, source, CollectSettings())
    source.let.release(10)


def started_or_error(reads: Mapping[int, BrokerRead], broker: int = 2) -> int | str | None:
    """Number of the answer of a broker; of one without, why."""
    read = reads[broker]
    return read.error if read.metrics is None else read.metrics.started_ms


def settled(source: Slow, readers: BrokerMetricsReader) -> None:
    source.let.release()
    until(lambda: readers._running[2].done())


def test_an_answer_that_arrives_after_its_tick_counts_once_in_the_next_tick(
    slow: tuple[Slow, BrokerMetricsReader],
) -> None:
    source, readers = slow
    reads = readers.read(BROKERS, PLANS, WAIT_S)
    assert started_or_error(reads, 1) == 0
    assert "did not answer within 1.0 s" in str(started_or_error(reads))
    settled(source, readers)
    # The answer is there; another one is asked for, and does not come.
    assert started_or_error(readers.read(BROKERS, PLANS, SHORT_S)) == 1
    assert "still hangs on the read of an earlier tick" in str(started_or_error(readers.read(BROKERS, PLANS, SHORT_S)))
    # The thread of the second read may have begun later than the ticks ended.
    until(lambda: source.asked >= 2)
    assert source.asked == 2


def test_what_comes_while_the_next_tick_waits_counts_there(
    slow: tuple[Slow, BrokerMetricsReader], monkeypatch: pytest.MonkeyPatch
) -> None:
    source, readers = slow
    readers.read(BROKERS, PLANS, SHORT_S)

    def answered_meanwhile(*asked: Any, **how_long: Any) -> Any:
        source.let.release()
        return wait(*asked, **how_long)

    monkeypatch.setattr(broker_reads, "wait", answered_meanwhile)
    assert started_or_error(readers.read(BROKERS, PLANS, LONG_S)) == 1
    assert source.asked == 1


def test_the_newest_answer_counts(slow: tuple[Slow, BrokerMetricsReader]) -> None:
    source, readers = slow
    readers.read(BROKERS, PLANS, SHORT_S)
    settled(source, readers)
    source.let.release()
    assert started_or_error(readers.read(BROKERS, PLANS, LONG_S)) == 2


def test_late_answers_do_not_count_after_the_clock_was_set(slow: tuple[Slow, BrokerMetricsReader]) -> None:
    source, readers = slow
    readers.read(BROKERS, PLANS, SHORT_S)
    settled(source, readers)
    # It was there before the clock was set: another one is asked for.
    readers.discard_late()
    assert "did not answer within" in str(started_or_error(readers.read(BROKERS, PLANS, SHORT_S)))
    # The second one runs while the clock is set, and ends in the next tick or after it.
    readers.discard_late()
    assert "still hangs" in str(started_or_error(readers.read(BROKERS, PLANS, SHORT_S)))
    settled(source, readers)
    assert "the clock of this machine was set" in str(started_or_error(readers.read(BROKERS, PLANS, SHORT_S)))
    settled(source, readers)
    assert started_or_error(readers.read(BROKERS, PLANS, SHORT_S)) == 3


def test_an_answer_that_comes_in_the_tick_after_the_clock_was_set_does_not_count(
    slow: tuple[Slow, BrokerMetricsReader], monkeypatch: pytest.MonkeyPatch
) -> None:
    source, readers = slow
    readers.read(BROKERS, PLANS, SHORT_S)
    readers.discard_late()

    def answered_meanwhile(*asked: Any, **how_long: Any) -> Any:
        source.let.release()
        return wait(*asked, **how_long)

    monkeypatch.setattr(broker_reads, "wait", answered_meanwhile)
    assert "the clock of this machine was set" in str(started_or_error(readers.read(BROKERS, PLANS, LONG_S)))
    # The next one is of the clock as it is.
    assert started_or_error(readers.read(BROKERS, PLANS, LONG_S)) == 2


def test_a_broker_gets_three_seconds_though_ticks_wait_for_less(
    slow: tuple[Slow, BrokerMetricsReader], monkeypatch: pytest.MonkeyPatch
) -> None:
    # No time passes between the start of the read and the question to the source.
    monkeypatch.setattr(broker_reads, "time", SimpleNamespace(monotonic=lambda: 0.0))
    source, readers = slow
    readers.read(BROKERS, PLANS, SHORT_S)
    until(lambda: source.timeouts_s)
    assert source.timeouts_s == [3.0]


def test_a_broker_that_left_is_not_reported(slow: tuple[Slow, BrokerMetricsReader]) -> None:
    source, readers = slow
    readers.read(BROKERS, PLANS, SHORT_S)
    settled(source, readers)
    one = {1: PLANS[1]}
    assert readers.read(BROKERS, one, LONG_S).keys() == {1}
    assert "did not answer" in str(started_or_error(readers.read(BROKERS, PLANS, SHORT_S)))


@pytest.mark.parametrize(
    ("error", "remedy"),
    [
        (RuntimeError("closed"), "See that the broker is up"),
        (ValueError("10 MB"), "See that the broker is up"),
        (KafkaTimeoutError("late"), "See whether a broker hangs"),
        (ClusterAuthorizationFailedError(), "Grant DESCRIBE_CONFIGS"),
    ],
)
def test_rates_that_cannot_be_read_cost_one_broker_its_rates(
    slow: tuple[Slow, BrokerMetricsReader], monkeypatch: pytest.MonkeyPatch, error: Exception, remedy: str
) -> None:
    known = BrokerConfigs(BrokerThrottles(known=True))

    def configs(_connection: Any, broker: int, _timeout_s: float) -> BrokerConfigs:
        if broker == 2:
            raise error
        return known

    monkeypatch.setattr("headroom.cluster.metrics.broker_reads.read_broker_configs", configs)
    source, readers = slow
    source.let.release()
    reads = readers.read(BROKERS, PLANS, LONG_S)
    assert [(reads[b].throttles.known, reads[b].metrics is not None) for b in (1, 2)] == [(True, True), (False, True)]
    assert f"throttle rates could not be read ({type(error).__name__})" in str(reads[2].error)
    assert remedy in str(reads[2].error)
    assert "throttle rates" not in str(reads[1].error)


def test_an_unexpected_error_of_one_broker_costs_its_rows_alone(
    slow: tuple[Slow, BrokerMetricsReader], monkeypatch: pytest.MonkeyPatch
) -> None:
    _, readers = slow
    read_one = readers._read_one

    def failing(broker: Broker, plan: ReadPlan, timeout_s: float) -> BrokerRead:
        if broker.broker == 2:
            raise RuntimeError("can't start new thread")
        return read_one(broker, plan, timeout_s)

    monkeypatch.setattr(readers, "_read_one", failing)
    for _ in range(2):
        reads = readers.read(BROKERS, PLANS, LONG_S)
        assert started_or_error(reads, 1) == 0
        assert "could not be read (RuntimeError)" in str(started_or_error(reads))


def test_a_machine_without_threads_costs_the_broker_one_tick(
    slow: tuple[Slow, BrokerMetricsReader], monkeypatch: pytest.MonkeyPatch
) -> None:
    _, readers = slow
    one = {1: PLANS[1]}
    with monkeypatch.context() as patched:
        patched.setattr(threading.Thread, "start", refuse_thread)
        assert "could not be read (RuntimeError)" in str(started_or_error(readers.read(BROKERS, one, LONG_S), 1))
    assert started_or_error(readers.read(BROKERS, one, LONG_S), 1) == 0


def refuse_thread(_thread: threading.Thread) -> None:
    raise RuntimeError("can't start new thread")

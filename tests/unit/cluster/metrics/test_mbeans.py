"""MBean reads of a broker and the meaning of their values."""

from __future__ import annotations

import math

import pytest

from headroom.cluster.metrics.load_meters import topic_consumed
from headroom.cluster.metrics.mbeans import (
    FOLLOWER_QUOTA,
    LAGS,
    TICK_AND_CONSUMED,
    MBeanRead,
    MetricsAccumulator,
    ReadPlan,
    keys_of,
    reading,
    source_broker,
    topic_bytes,
)
from headroom.cluster.metrics.missing_metrics import describe_impossible
from headroom.cluster.metrics.rmi.jmx_request import JmxRequest
from headroom.cluster.model import Lag, LogReading, Meter, Metrics
from headroom.schemas.keys import TopicPartition

LED = TopicPartition("orders", 0)
WATCHED = TopicPartition("orders", 1)
PLAN = ReadPlan({"orders"}, [LED, WATCHED], [WATCHED])


def answered(values: dict[str, str]) -> Metrics:
    """Return the metrics of a bulk reader's answer with only these MBeans, read at 1,000 ms."""
    request = JmxRequest(PLAN)
    lines = [line.split("\t")[0] for line in request.text.splitlines()]
    texts = []
    for name, value in values.items():
        index = next(
            i for i, asked in enumerate(lines) if asked.rstrip("*").rstrip(",") in (name, name[: len(asked) - 2])
        )
        texts.append(f"{index}\t1000\t{value}" + (f"\t{name}" if "*" in lines[index] else ""))
    return request.parse("\n".join(texts))


def test_watched_logs_are_read_whole_and_led_ones_by_their_end() -> None:
    asked = [line for line in JmxRequest(PLAN).text.splitlines() if line.startswith("kafka.log")]
    of = "kafka.log:type=Log,name={},topic=orders,partition={}\tValue"
    whole = [of.format(name, 1) for name in ("LogEndOffset", "Size", "LogStartOffset")]
    assert asked == [*whole, of.format("LogEndOffset", 0)]


def test_a_read_names_its_mbean_or_its_pattern() -> None:
    assert MBeanRead("Runtime", None, "StartTime").mbean == "java.lang:type=Runtime"
    assert MBeanRead("LeaderReplication", None, "byte-rate").mbean == "kafka.server:type=LeaderReplication"
    assert LAGS.mbean == "kafka.server:type=FetcherLagMetrics,name=ConsumerLag,*"


def test_what_consumers_fetch_of_a_topic_is_read_where_it_is_asked_for() -> None:
    mbean = "kafka.server:type=BrokerTopicMetrics,name=BytesOutPerSec,topic=orders\tCount"
    assert mbean not in JmxRequest(PLAN).text.splitlines()
    plan = ReadPlan({"orders"}, [LED], [], scope=TICK_AND_CONSUMED)
    lines = JmxRequest(plan).text.splitlines()
    metrics = JmxRequest(plan).parse(f"{lines.index(mbean)}\t1000\t70")
    assert metrics.counters[topic_consumed("orders")].value == 70


def test_values_land_where_they_belong() -> None:
    log = "kafka.log:type=Log,name={},topic=orders,partition={}"
    metrics = answered(
        {
            "java.lang:type=Runtime": "42",
            log.format("LogEndOffset", 1): "900",
            log.format("Size", 1): "12345",
            log.format("LogEndOffset", 0): "7",
            "kafka.server:type=BrokerTopicMetrics,name=BytesInPerSec,topic=orders": "5000",
            "kafka.server:type=FollowerReplication": "1.5E7",
        }
    )
    assert metrics.started_ms == 42
    assert metrics.logs == {WATCHED: LogReading(1000, 900, None, 12345), LED: LogReading(1000, 7, None, None)}
    assert metrics.counters[topic_bytes("orders")].value == 5000
    assert metrics.gauges[FOLLOWER_QUOTA].value == 15_000_000.0


def test_a_gauge_of_minus_one_is_unknown_not_a_lag() -> None:
    fetcher = "clientId=ReplicaFetcherThread-0-3"
    name = f"kafka.server:type=FetcherLagMetrics,name=ConsumerLag,{fetcher},partition={{}},topic=orders"
    metrics = answered({name.format(0): "-1", name.format(1): "12"})
    assert metrics.lags == (
        Lag(LED, 3, "ReplicaFetcherThread-0-3", None),
        Lag(WATCHED, 3, "ReplicaFetcherThread-0-3", 12),
    )


def test_a_fetchers_meter_names_its_source() -> None:
    name = (
        "kafka.server:type=FetcherStats,name=BytesPerSec,brokerHost=h,brokerPort=9092,clientId=ReplicaFetcherThread-0-3"
    )
    meter = Meter("FetcherStats.BytesPerSec", None, "ReplicaFetcherThread-0-3", 3)
    assert answered({name: "77"}).counters[meter].value == 77


def test_not_a_number_is_no_value() -> None:
    assert answered({"kafka.server:type=FollowerReplication": "NaN"}).gauges == {}


def test_an_mbean_that_is_not_there_is_missing_not_zero() -> None:
    metrics = answered({})
    assert (metrics.counters, metrics.gauges, metrics.lags, metrics.logs) == ({}, {}, (), {})


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf])
def test_what_is_no_finite_number_is_no_value(value: float) -> None:
    assert reading(1, value) is None


@pytest.mark.parametrize("value", [2.0**63, -(2.0**63), 1e300, 10**400, -2])
@pytest.mark.parametrize(("kind", "name"), [("Log", "Size"), ("Runtime", None), ("FollowerReplication", None)])
def test_an_impossible_value_is_reported_and_not_used(kind: str, name: str | None, value: float) -> None:
    accumulator = MetricsAccumulator(PLAN)
    watched = PLAN.watched[0]
    keys = {"topic": watched.topic, "partition": str(watched.partition)} if kind == "Log" else {}
    accumulator.add(kind, name, keys, reading(1, value))
    metrics = accumulator.metrics()
    assert (metrics.started_ms, metrics.gauges, metrics.logs) == (None, {}, {})
    assert [reported for _, reported in metrics.impossible] == [value]
    assert str(value)[:24] in (describe_impossible(metrics) or "")


def test_what_the_plan_did_not_ask_for_is_dropped() -> None:
    accumulator, value = MetricsAccumulator(PLAN), reading(1, 5)
    accumulator.add("Log", "Size", {"topic": "orders", "partition": "0"}, value)
    accumulator.add("Log", "LogEndOffset", {"topic": "others", "partition": "0"}, value)
    accumulator.add("BrokerTopicMetrics", "BytesInPerSec", {"topic": "others"}, value)
    accumulator.add("BrokerTopicMetrics", "FetchMessageConversionsPerSec", {}, value)
    accumulator.add("ReplicaManager", "IsrShrinksPerSec", {}, value)
    metrics = accumulator.metrics()
    assert (metrics.counters, metrics.gauges, metrics.logs) == ({}, {}, {})


def test_the_keys_of_an_object_name_may_come_in_any_order() -> None:
    assert keys_of("kafka.log:name=Size,partition=3,topic=a.b,type=Log")["topic"] == "a.b"


@pytest.mark.parametrize(
    ("client_id", "source"),
    [("ReplicaFetcherThread-0-3", 3), ("ReplicaFetcherThread-1-12", 12), ("ReplicaAlterLogDirsThread-0", None)],
)
def test_the_source_broker_is_last_in_the_fetchers_name(client_id: str, source: int | None) -> None:
    assert source_broker(client_id) == source


LOG_KEYS = {"topic": "orders", "partition": "1"}
FUTURE_KEYS = LOG_KEYS | {"is-future": "true"}


@pytest.mark.parametrize("order", [(LOG_KEYS, FUTURE_KEYS), (FUTURE_KEYS, LOG_KEYS)])
def test_a_log_that_is_copied_to_another_directory_never_counts_as_the_real_one(
    order: tuple[dict[str, str], ...],
) -> None:
    accumulator = MetricsAccumulator(PLAN)
    for keys in order:
        # The copy ends at 10 of 900, or was cut back less than the log since.
        accumulator.add("Log", "LogEndOffset", keys, reading(1, 10 if "is-future" in keys else 900))
        accumulator.add("Log", "Size", keys, reading(1, 99_999 if "is-future" in keys else 12_345))
    assert accumulator.metrics().logs == {WATCHED: LogReading(1, 900, None, 12_345)}


def test_a_copy_alone_is_no_log() -> None:
    accumulator = MetricsAccumulator(PLAN)
    accumulator.add("Log", "LogEndOffset", FUTURE_KEYS, reading(1, 10))
    assert accumulator.metrics().logs == {}


@pytest.mark.parametrize("values", [(900, 10), (10, 900)])
def test_of_two_values_of_one_log_the_greater_counts_whichever_comes_first(values: tuple[int, int]) -> None:
    accumulator = MetricsAccumulator(PLAN)
    for value in values:
        for part in ("LogEndOffset", "LogStartOffset", "Size"):
            accumulator.add("Log", part, LOG_KEYS, reading(1, value))
    assert accumulator.metrics().logs == {WATCHED: LogReading(1, 900, 900, 900)}


@pytest.mark.parametrize(
    "number", ["", "x", "0, is-future=true", "-1", "+1", " 1", "1_0", "1.0", "\u0661", "\u00b2", "9" * 10, "9" * 5000]
)
def test_a_value_whose_partition_has_no_number_costs_itself_alone(number: str) -> None:
    accumulator = MetricsAccumulator(PLAN)
    fetcher = {"clientId": "ReplicaFetcherThread-0-3"}
    for keys in ({"topic": "orders", "partition": number}, {"topic": "orders"}, LOG_KEYS):
        accumulator.add("Log", "LogEndOffset", keys, reading(1, 900))
        accumulator.add("FetcherLagMetrics", "ConsumerLag", keys | fetcher, reading(1, 7))
    metrics = accumulator.metrics()
    assert metrics.logs == {WATCHED: LogReading(1, 900, None, None)}
    assert metrics.lags == (Lag(WATCHED, 3, "ReplicaFetcherThread-0-3", 7),)

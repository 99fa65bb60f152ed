"""Loads of a broker from every source: requests, their times, log flushes and idle request handlers."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

from headroom.cluster.metrics.exporter.jmx_exporter import parse
from headroom.cluster.metrics.http import Response
from headroom.cluster.metrics.jolokia import add_values, bulk_reads
from headroom.cluster.metrics.load_meters import (
    FOLLOWER_FETCH_P99,
    HANDLER_IDLE,
    LOG_FLUSH_P999,
    PRODUCE_P99,
    fetch_requests,
    produce_requests,
    topic_consumed,
)
from headroom.cluster.metrics.mbeans import LOAD, TICK_AND_LOAD, MetricsAccumulator, ReadPlan
from headroom.cluster.metrics.missing_load import find_missing_load
from headroom.cluster.metrics.missing_metrics import describe_impossible, describe_missing
from headroom.cluster.metrics.rmi.jmx_request import JmxRequest
from headroom.cluster.model import Meter, Metrics
from headroom.schemas.config import Source
from headroom.schemas.keys import TopicPartition
from tests.unit.fakes import load_exporter_output as expositions

PLAN = ReadPlan({"orders", "Pay.v2"}, [], [], scope=LOAD)
TOPIC_MBEAN = "kafka.server:type=BrokerTopicMetrics,name={},topic={}"
TIMES_MBEAN = "kafka.network:type=RequestMetrics,name=TotalTimeMs,request={}"
FLUSH_MBEAN = "kafka.log:type=LogFlushStats,name=LogFlushRateAndTimeMs"
IDLE_MBEAN = "kafka.server:type=KafkaRequestHandlerPool,name={}"
# Names of Kafka 4.3. Older releases have no pool of the broker alone.
VALUES: dict[tuple[str, str], float] = {
    ("kafka.server:type=BrokerTopicMetrics,name=BytesInPerSec", "Count"): 7_000_000_000,
    ("kafka.server:type=BrokerTopicMetrics,name=ReplicationBytesInPerSec", "Count"): 123,
    ("kafka.server:type=BrokerTopicMetrics,name=BytesOutPerSec", "Count"): 9_000_000_000,
    (TOPIC_MBEAN.format("BytesOutPerSec", "orders"), "Count"): 8_000_000_000,
    (TOPIC_MBEAN.format("BytesOutPerSec", "Pay.v2"), "Count"): 1_000_000_000,
    ("kafka.server:type=BrokerTopicMetrics,name=TotalProduceRequestsPerSec", "Count"): 500,
    (TOPIC_MBEAN.format("TotalProduceRequestsPerSec", "orders"), "Count"): 300,
    (TOPIC_MBEAN.format("TotalProduceRequestsPerSec", "Pay.v2"), "Count"): 200,
    ("kafka.server:type=BrokerTopicMetrics,name=TotalFetchRequestsPerSec", "Count"): 7000,
    (TOPIC_MBEAN.format("TotalFetchRequestsPerSec", "orders"), "Count"): 4000,
    (TOPIC_MBEAN.format("TotalFetchRequestsPerSec", "Pay.v2"), "Count"): 3000,
    (TIMES_MBEAN.format("Produce"), "99thPercentile"): 12.5,
    (TIMES_MBEAN.format("FetchFollower"), "99thPercentile"): 501.0,
    (FLUSH_MBEAN, "999thPercentile"): 87.25,
    (IDLE_MBEAN.format("BrokerRequestHandlerAvgIdlePercent"), "Count"): 8_000_000_000_000,
    (IDLE_MBEAN.format("RequestHandlerAvgIdlePercent"), "Count"): 9_000_000_000_000,
    ("java.lang:type=Runtime", "StartTime"): 1_700_000_000_000,
}
COUNTERS = {
    Meter("BrokerTopicMetrics.BytesInPerSec"): 7e9,
    Meter("BrokerTopicMetrics.ReplicationBytesInPerSec"): 123,
    topic_consumed(): 9e9,
    topic_consumed("orders"): 8e9,
    topic_consumed("Pay.v2"): 1e9,
    produce_requests(): 500,
    produce_requests("orders"): 300,
    produce_requests("Pay.v2"): 200,
    fetch_requests(): 7000,
    fetch_requests("orders"): 4000,
    fetch_requests("Pay.v2"): 3000,
    HANDLER_IDLE: 8e12,
}
GAUGES = {PRODUCE_P99: 12.5, FOLLOWER_FETCH_P99: 501.0, LOG_FLUSH_P999: 87.25}

Values = dict[tuple[str, str], Any]


def by_jmx(values: Values) -> Metrics:
    """Return the answer of the bulk reader to the request for these MBeans; others do not exist."""
    request = JmxRequest(PLAN)
    asked = enumerate(tuple(line.split("\t")) for line in request.text.splitlines())
    return request.parse("\n".join(f"{n}\t5000\t{values[key]}" for n, key in asked if key in values))


def by_jolokia(values: Values) -> Metrics:
    """Return the answer of Jolokia's agent."""
    accumulator = MetricsAccumulator(PLAN)
    for reads in bulk_reads(PLAN):
        results = []
        for read in reads:
            if read.every:
                prefix = read.mbean.removesuffix(",*")
                of_pattern = {
                    mbean: {attribute: value}
                    for (mbean, attribute), value in values.items()
                    if attribute == read.attribute and (mbean == prefix or mbean.startswith(f"{prefix},"))
                }
                results.append({"status": 200, "value": of_pattern})
            elif (read.mbean, read.attribute) in values:
                results.append({"status": 200, "value": values[read.mbean, read.attribute]})
            else:
                results.append({"status": 404, "error": "InstanceNotFound"})
        assert add_values(Response(5000, json.dumps(results).encode()), reads, accumulator) == []
    return accumulator.metrics()


def scraped(text: str, plan: ReadPlan = PLAN) -> Metrics:
    return parse(Response(5000, text.encode()), plan)


def plain(metrics: Metrics) -> tuple[dict[Meter, float], dict[Meter, float]]:
    counters, gauges = ({m: r.value for m, r in found.items()} for found in (metrics.counters, metrics.gauges))
    return counters, gauges


@pytest.mark.parametrize("read", [by_jmx, by_jolokia])
def test_every_load_is_read_by_jmx_and_by_jolokia(read: Callable[[Values], Metrics]) -> None:
    metrics = read(VALUES)
    assert plain(metrics) == (COUNTERS, GAUGES)
    assert metrics.started_ms == 1_700_000_000_000
    assert find_missing_load(metrics) == []


@pytest.mark.parametrize("name", expositions.WHOLE)
def test_every_known_form_of_the_exporter_means_the_same(name: str) -> None:
    metrics = scraped(expositions.WHOLE[name])
    assert plain(metrics) == (COUNTERS, GAUGES)
    assert metrics.started_ms == 1_700_000_000_000
    assert find_missing_load(metrics) == []


@pytest.mark.parametrize("read", [by_jmx, by_jolokia])
def test_before_kafka_4_3_the_pool_of_the_process_counts(read: Callable[[Values], Metrics]) -> None:
    broker_pool = (IDLE_MBEAN.format("BrokerRequestHandlerAvgIdlePercent"), "Count")
    metrics = read({key: value for key, value in VALUES.items() if key != broker_pool})
    assert metrics.counters[HANDLER_IDLE].value == 9e12


def test_the_number_of_times_under_the_name_of_the_times_is_no_percentile() -> None:
    metrics = scraped(expositions.OLD_EXAMPLE)
    assert plain(metrics) == (COUNTERS, {})
    missing = describe_missing(find_missing_load(metrics), Source.PROMETHEUS)
    assert missing is not None
    for part in (
        "LogFlushStats LogFlushRateAndTimeMs 999thPercentile (without it: slow brokers are not detected)",
        "RequestMetrics TotalTimeMs of Produce 99thPercentile",
        "RequestMetrics TotalTimeMs of FetchFollower 99thPercentile",
    ):
        assert part in missing


def test_a_mean_rate_of_idle_handlers_is_named_as_no_count() -> None:
    lines = expositions.EXAMPLE.splitlines(keepends=True)
    text = "".join(line for line in lines if "handlerpool" not in line) + expositions.MEAN_RATE
    metrics = scraped(text)
    assert HANDLER_IDLE not in metrics.counters
    (missing,) = find_missing_load(metrics)
    assert missing.metric == (
        "KafkaRequestHandlerPool RequestHandlerAvgIdlePercent Count as a count (only as a rate, which lags behind by "
        "minutes)"
    )


@pytest.mark.parametrize(
    ("left_out", "missing", "goal"),
    [
        ("totalproducerequests", "BrokerTopicMetrics TotalProduceRequestsPerSec of topics", "requests"),
        ("totalfetchrequests", "BrokerTopicMetrics TotalFetchRequestsPerSec of topics", "requests"),
        ("bytesout", "BrokerTopicMetrics BytesOutPerSec of topics", "network_out"),
    ],
)
def test_a_load_that_a_source_leaves_out_is_named_with_the_goal_that_is_lost(
    left_out: str, missing: str, goal: str
) -> None:
    lines = expositions.OWN.splitlines(keepends=True)
    (found,) = find_missing_load(scraped("".join(line for line in lines if left_out not in line)))
    assert (found.metric, found.consequence, found.certain) == (
        missing,
        f"the goal {goal} of headroom balance is lost",
        True,
    )
    # Exported of the broker alone: topics have a counter only after their first request, but there were requests.
    (found,) = find_missing_load(scraped("".join(x for x in lines if left_out not in x or "topic=" not in x)))
    assert (found.metric, found.certain) == (missing, False)


def test_without_any_request_no_meter_of_topics_is_missing() -> None:
    values = {key: 0 if "topic=" not in key[0] else None for key, value in VALUES.items()}
    assert find_missing_load(by_jmx({key: value for key, value in values.items() if value is not None})) == []


@pytest.mark.parametrize("read", [by_jmx, by_jolokia])
def test_a_percentile_without_a_sample_is_unknown(read: Callable[[Values], Metrics]) -> None:
    values: Values = {**VALUES, (FLUSH_MBEAN, "999thPercentile"): "NaN"}
    metrics = read(values)
    assert LOG_FLUSH_P999 not in metrics.gauges
    assert metrics.impossible == ()
    text = expositions.OWN.replace('{quantile="0.999"} 87.25', '{quantile="0.999"} NaN')
    assert LOG_FLUSH_P999 not in scraped(text).gauges


@pytest.mark.parametrize("value", [-2.0, 86_400_001.0, 1e15])
@pytest.mark.parametrize(
    ("key", "meter"),
    [
        ((FLUSH_MBEAN, "999thPercentile"), LOG_FLUSH_P999),
        ((TIMES_MBEAN.format("Produce"), "99thPercentile"), PRODUCE_P99),
    ],
)
def test_a_time_that_no_broker_can_mean_costs_itself_alone_and_is_named(
    key: tuple[str, str], meter: Meter, value: float
) -> None:
    metrics = by_jmx({**VALUES, key: value})
    assert plain(metrics) == (COUNTERS, {m: v for m, v in GAUGES.items() if m != meter})
    assert metrics.impossible == ((key[0], value),)
    assert str(value) in (describe_impossible(metrics) or "")


def test_a_count_beyond_all_bounds_costs_itself_alone() -> None:
    key = ("kafka.server:type=BrokerTopicMetrics,name=TotalProduceRequestsPerSec", "Count")
    metrics = by_jmx({**VALUES, key: 2**63 - 1})
    assert produce_requests() not in metrics.counters
    assert metrics.counters[produce_requests("orders")].value == 300


def test_no_tick_reads_a_load_and_no_load_reads_a_log() -> None:
    tick = ReadPlan({"orders"}, [TopicPartition("orders", 0)], [])
    lines = JmxRequest(tick).text
    for name in ("TotalProduce", "TotalFetch", "RequestMetrics", "LogFlushStats", "KafkaRequestHandlerPool"):
        assert name not in lines
    assert "BytesOutPerSec,topic" not in lines
    load = JmxRequest(PLAN).text
    for name in ("type=Log,", "FetcherLagMetrics", "FetcherStats", "ReplicaManager"):
        assert name not in load
    # Three for each topic, and twelve for the broker: the cost of a reading does not grow with the partitions.
    assert len(load.splitlines()) == 3 * 2 + 11


@pytest.mark.parametrize("name", expositions.WHOLE)
def test_a_tick_takes_nothing_of_the_loads_that_an_exporter_exports_anyway(name: str) -> None:
    tick = scraped(expositions.WHOLE[name], ReadPlan({"orders", "Pay.v2"}, [], []))
    assert tick.gauges == {}
    assert {meter.meter for meter in tick.counters} == {
        f"BrokerTopicMetrics.{meter}" for meter in ("BytesInPerSec", "BytesOutPerSec", "ReplicationBytesInPerSec")
    }
    assert not any(meter.topic for meter in tick.counters if "Out" in meter.meter)


def test_a_plan_that_balances_reads_requests_with_the_rest_of_a_tick() -> None:
    plan = ReadPlan({"orders"}, [], [], scope=TICK_AND_LOAD)
    metrics = scraped(expositions.OWN, plan)
    assert metrics.counters[produce_requests("orders")].value == 300
    assert metrics.counters[Meter("BrokerTopicMetrics.BytesInPerSec", "orders")].value == 4e9
    assert metrics.gauges == {}

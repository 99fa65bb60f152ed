"""Requests to Jolokia and the parsing of its answers."""

from __future__ import annotations

import json
from typing import Any

import pytest

from headroom.cluster.metrics.http import Response
from headroom.cluster.metrics.jolokia import add_values, bulk_reads
from headroom.cluster.metrics.load_meters import topic_consumed
from headroom.cluster.metrics.mbeans import (
    LEADER_QUOTA,
    TICK_AND_CONSUMED,
    MBeanRead,
    MetricsAccumulator,
    ReadPlan,
    topic_bytes,
)
from headroom.cluster.model import Lag, LogReading, Meter, Metrics
from headroom.schemas.keys import TopicPartition

LED, WATCHED = TopicPartition("orders", 0), TopicPartition("orders", 1)
PLAN = ReadPlan(["orders"], [LED, WATCHED], [WATCHED])
LOG = "kafka.log:type=Log,name={},topic=orders,partition={}"


def answered(values: dict[str, Any], plan: ReadPlan = PLAN) -> tuple[Metrics, list[str]]:
    """Return metrics and errors from answers with these results; all other MBeans are missing."""
    accumulator, refusals = MetricsAccumulator(plan), []
    for reads in bulk_reads(plan):
        results = [{"status": 404, "error": "not found", **result(values.get(read.mbean))} for read in reads]
        refusals += add_values(Response(1000, json.dumps(results).encode()), reads, accumulator)
    return accumulator.metrics(), refusals


def result(value: Any) -> dict[str, Any]:
    if value is None or (isinstance(value, dict) and "status" in value):
        return value or {}
    return {"status": 200, "value": value}


def patterns(plan: ReadPlan) -> list[str]:
    return [read.mbean for reads in bulk_reads(plan) for read in reads if read.kind == "Log"]


def test_few_logs_are_asked_for_by_name_and_the_watched_ones_whole() -> None:
    whole = [LOG.format(part, 1) for part in ("LogEndOffset", "Size", "LogStartOffset")]
    assert patterns(PLAN) == [*whole, LOG.format("LogEndOffset", 0)]


def test_what_consumers_fetch_of_topics_comes_with_that_of_the_broker_where_it_is_asked_for() -> None:
    plan = ReadPlan(["orders"], [LED], [], scope=TICK_AND_CONSUMED)
    names = {read.mbean for reads in bulk_reads(plan) for read in reads if read.name == "BytesOutPerSec"}
    (pattern,) = names
    mbean = "kafka.server:type=BrokerTopicMetrics,name=BytesOutPerSec"
    values = {f"{mbean},topic=orders": {"Count": 7}, mbean: {"Count": 9}}
    metrics, _ = answered({pattern: values}, plan)
    assert metrics.counters[topic_consumed("orders")].value == 7
    assert metrics.counters[Meter("BrokerTopicMetrics.BytesOutPerSec")].value == 9


def test_many_logs_are_asked_for_by_one_pattern() -> None:
    names = [TopicPartition("orders", n) for n in range(201)]
    assert patterns(ReadPlan([], names, [])) == ["kafka.log:type=Log,name=LogEndOffset,*"]
    ends = len([mbean for mbean in patterns(ReadPlan([], names, names)) if "LogEndOffset" in mbean])
    assert ends == 1


def test_of_very_many_watched_logs_the_ends_of_all_come_with_theirs() -> None:
    names = [TopicPartition("orders", n) for n in range(300)]
    plan = ReadPlan([], names, names[:201])
    parts = ("LogEndOffset", "Size", "LogStartOffset")
    assert patterns(plan) == [f"kafka.log:type=Log,name={part},*" for part in parts]
    ends = {LOG.format("LogEndOffset", n): {"Value": n} for n in range(300)}
    metrics, _ = answered({"kafka.log:type=Log,name=LogEndOffset,*": ends}, plan)
    assert {name.partition: log.log_end_offset for name, log in metrics.logs.items()} == {n: n for n in range(300)}


@pytest.mark.parametrize(
    "spelling",
    [LOG.format("LogEndOffset", "{}"), "kafka.log:name=LogEndOffset,partition={},topic=orders,type=Log"],
)
def test_the_logs_of_a_pattern_are_found_however_the_agent_orders_the_keys(spelling: str) -> None:
    led = [TopicPartition("orders", n) for n in range(201)]
    # Partition 7 was deleted meanwhile, 8 has no number, and another broker leads 201.
    answers = {spelling.format(n): {"Value": n if n != 8 else "NaN"} for n in range(202) if n != 7}
    metrics, _ = answered({"kafka.log:type=Log,name=LogEndOffset,*": answers}, ReadPlan([], led, []))
    found = {name.partition: log.log_end_offset for name, log in metrics.logs.items()}
    assert found == {n: n for n in range(201) if n not in (7, 8)}


@pytest.mark.parametrize(
    "future", [LOG.format("LogEndOffset", "{},is-future=true"), LOG.format("LogEndOffset,is-future=true", "{}")]
)
@pytest.mark.parametrize("future_first", [True, False])
def test_a_pattern_gives_no_log_that_is_copied_to_another_directory(future: str, future_first: bool) -> None:
    led = [TopicPartition("orders", n) for n in range(201)]
    # Partition 7 was deleted since, so that all names are taken apart; 8 has only its copy there.
    real = {LOG.format("LogEndOffset", n): {"Value": 900 + n} for n in range(201) if n not in (7, 8)}
    copies = {future.format(n): {"Value": n} for n in range(201)}
    values = {**copies, **real} if future_first else {**real, **copies}
    metrics, _ = answered({"kafka.log:type=Log,name=LogEndOffset,*": values}, ReadPlan([], led, []))
    found = {name.partition: log.log_end_offset for name, log in metrics.logs.items()}
    assert found == {n: 900 + n for n in range(201) if n not in (7, 8)}


def test_values_land_where_they_belong_and_the_others_are_dropped() -> None:
    lags = "kafka.server:type=FetcherLagMetrics,name=ConsumerLag,*"
    fetcher = "clientId=ReplicaFetcherThread-0-3"
    metrics, refusals = answered(
        {
            "java.lang:type=Runtime": 42,
            lags: {
                f"kafka.server:name=ConsumerLag,{fetcher},type=FetcherLagMetrics,topic=t,partition=7": {"Value": -1},
            },
            LOG.format("LogEndOffset", 1): 900,
            LOG.format("Size", 1): 12345,
            LOG.format("LogEndOffset", 0): 7,
            "kafka.server:type=BrokerTopicMetrics,name=BytesInPerSec,*": {
                "kafka.server:type=BrokerTopicMetrics,name=BytesInPerSec": {"Count": 9000},
                "kafka.server:topic=orders,type=BrokerTopicMetrics,name=BytesInPerSec": {"Count": 5000},
                "kafka.server:topic=others,type=BrokerTopicMetrics,name=BytesInPerSec": {"Count": 4000},
            },
            "kafka.server:type=LeaderReplication": 1.5e6,
        }
    )
    assert refusals == []
    assert metrics.started_ms == 42
    assert metrics.lags == (Lag(TopicPartition("t", 7), 3, "ReplicaFetcherThread-0-3", None),)
    assert metrics.logs == {WATCHED: LogReading(1000, 900, None, 12345), LED: LogReading(1000, 7, None, None)}
    assert {meter: reading.value for meter, reading in metrics.counters.items()} == {
        Meter("BrokerTopicMetrics.BytesInPerSec"): 9000,
        topic_bytes("orders"): 5000,
    }
    assert metrics.gauges[LEADER_QUOTA].value == 1.5e6


@pytest.mark.parametrize("value", ["NaN", "ERROR: java.lang.IllegalStateException", True, [1], float("nan")])
def test_what_is_no_number_is_no_value(value: Any) -> None:
    metrics, _ = answered({"kafka.server:type=LeaderReplication": value})
    assert metrics.gauges == {}


def test_reads_refused_by_the_policy_are_reported() -> None:
    _, refusals = answered({"java.lang:type=Runtime": {"status": 403, "error": "java.lang.Exception: denied\n at"}})
    assert refusals == ["java.lang.Exception: denied"]


def test_a_refusal_of_the_whole_request_is_reported() -> None:
    whole = Response(1, json.dumps({"status": 403, "error": "no access from this host"}).encode())
    assert add_values(whole, [MBeanRead("Runtime", None, "StartTime")], MetricsAccumulator(PLAN)) == [
        "no access from this host"
    ]


@pytest.mark.parametrize("body", [b"", b"[", b"{}", b"[]", b"[1,2]", b"<html>", b"\xff"])
def test_an_answer_that_is_not_one_result_for_each_read_is_refused(body: bytes) -> None:
    with pytest.raises(ValueError):  # noqa: PT011 - of json's own words, or of ours
        add_values(Response(1, body), [MBeanRead("Runtime", None, "StartTime")], MetricsAccumulator(PLAN))


def test_a_pattern_without_an_object_is_refused() -> None:
    with pytest.raises(ValueError, match="no object for a pattern"):
        answered({"kafka.server:type=FetcherLagMetrics,name=ConsumerLag,*": 5})

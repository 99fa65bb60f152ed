"""What is asked of a broker, and what its answers mean."""

from __future__ import annotations

import pytest

from cluster.mbeans import FOLLOWER_QUOTA, Plan, source_broker, topic_bytes
from cluster.model import Lag, LogReading, Meter, TopicPartition

LED = TopicPartition("orders", 0)
WATCHED = TopicPartition("orders", 1)


def answer(plan: Plan, values: dict[str, str]) -> str:
    """Return what the bulk reader writes when only these MBeans are there, all read at 1,000."""
    lines = [line.split("\t")[0] for line in plan.request.splitlines()]
    texts = []
    for name, value in values.items():
        index = next(
            i for i, asked in enumerate(lines) if asked.rstrip("*").rstrip(",") in (name, name[: len(asked) - 2])
        )
        texts.append(f"{index}\t1000\t{value}" + (f"\t{name}" if "*" in lines[index] else ""))
    return "\n".join(texts)


def plan() -> Plan:
    return Plan({"orders"}, [LED, WATCHED], [WATCHED])


def test_watched_logs_are_read_whole_and_led_ones_by_their_end() -> None:
    asked = [line for line in plan().request.splitlines() if line.startswith("kafka.log")]
    of = "kafka.log:type=Log,name={},topic=orders,partition={}\tValue"
    whole = [of.format(name, 1) for name in ("LogEndOffset", "Size", "LogStartOffset")]
    assert asked == [*whole, of.format("LogEndOffset", 0)]


def test_values_land_where_they_belong() -> None:
    log = "kafka.log:type=Log,name={},topic=orders,partition={}"
    metrics = plan().parse(
        answer(
            plan(),
            {
                "java.lang:type=Runtime": "42",
                log.format("LogEndOffset", 1): "900",
                log.format("Size", 1): "12345",
                log.format("LogEndOffset", 0): "7",
                "kafka.server:type=BrokerTopicMetrics,name=BytesInPerSec,topic=orders": "5000",
                "kafka.server:type=FollowerReplication": "1.5E7",
            },
        )
    )
    assert metrics.started_ms == 42
    assert metrics.logs == {WATCHED: LogReading(1000, 900, None, 12345), LED: LogReading(1000, 7, None, None)}
    assert metrics.counters[topic_bytes("orders")].value == 5000
    assert metrics.gauges[FOLLOWER_QUOTA].value == 15_000_000.0


def test_a_gauge_of_minus_one_is_unknown_not_a_lag() -> None:
    fetcher = "clientId=ReplicaFetcherThread-0-3"
    name = f"kafka.server:type=FetcherLagMetrics,name=ConsumerLag,{fetcher},partition={{}},topic=orders"
    metrics = plan().parse(answer(plan(), {name.format(0): "-1", name.format(1): "12"}))
    assert metrics.lags == (
        Lag(LED, 3, "ReplicaFetcherThread-0-3", None),
        Lag(WATCHED, 3, "ReplicaFetcherThread-0-3", 12),
    )


def test_a_fetchers_meter_names_its_source() -> None:
    name = (
        "kafka.server:type=FetcherStats,name=BytesPerSec,brokerHost=h,brokerPort=9092,clientId=ReplicaFetcherThread-0-3"
    )
    metrics = plan().parse(answer(plan(), {name: "77"}))
    meter = Meter("FetcherStats.BytesPerSec", None, "ReplicaFetcherThread-0-3", 3)
    assert metrics.counters[meter].value == 77


def test_not_a_number_is_no_value() -> None:
    metrics = plan().parse(answer(plan(), {"kafka.server:type=FollowerReplication": "NaN"}))
    assert metrics.gauges == {}


def test_an_mbean_that_is_not_there_is_missing_not_zero() -> None:
    metrics = plan().parse("")
    assert (metrics.counters, metrics.gauges, metrics.lags, metrics.logs) == ({}, {}, (), {})


@pytest.mark.parametrize(
    ("client_id", "source"),
    [("ReplicaFetcherThread-0-3", 3), ("ReplicaFetcherThread-1-12", 12), ("ReplicaAlterLogDirsThread-0", None)],
)
def test_the_source_broker_stands_last_in_the_fetchers_name(client_id: str, source: int | None) -> None:
    assert source_broker(client_id) == source

"""Metrics source JMX: requests to the bulk reader."""

from __future__ import annotations

import pytest

from headroom.cluster.metrics.mbeans import ReadPlan
from headroom.cluster.metrics.rmi.jmx import JmxSource
from headroom.cluster.metrics.rmi.jmx_gateway import JmxGateway
from headroom.cluster.metrics.rmi.jmx_request import JmxRequest
from headroom.cluster.metrics.source import MetricsError
from headroom.schemas.config import CollectSettings
from headroom.schemas.keys import TopicPartition


class FakeGateway:
    """A gateway whose reader keeps the requests, and answers each with the broker's count of partitions."""

    process_id = 1

    def __init__(self) -> None:
        self.requests: list[str] = []

    def ensure_runs(self) -> None:
        pass

    def reader(self, endpoint: str) -> FakeGateway:
        return self

    def read(self, request: str, timeout_ms: int) -> str:
        self.requests.append(request)
        line = next(n for n, text in enumerate(request.splitlines()) if "PartitionCount" in text)
        return f"{line}\t1000\t5"


def test_the_bulk_request_is_built_once_per_plan() -> None:
    gateway = FakeGateway()
    source = JmxSource(gateway)  # type: ignore[arg-type]
    small, large = ReadPlan([], [], []), ReadPlan(["orders"], [TopicPartition("orders", 0)], [])
    for broker, plan in ((1, small), (1, small), (2, large), (1, small), (1, large)):
        (gauge,) = source.read(broker, "host:9999", plan, 1.0).gauges
        assert gauge.meter == "ReplicaManager.PartitionCount"
    first, again, other, last, changed = gateway.requests
    assert first is again is last
    assert changed == other != first


def test_ten_times_the_lags_are_refused() -> None:
    plan = ReadPlan([], [], [], replicas=150)
    index = next(n for n, line in enumerate(JmxRequest(plan).text.splitlines()) if "ConsumerLag" in line)
    lag = "kafka.server:type=FetcherLagMetrics,name=ConsumerLag,clientId=ReplicaFetcherThread-0-1,topic=t,partition={}"
    gateway = FakeGateway()
    gateway.read = lambda *_: "\n".join(f"{index}\t1000\t0\t{lag.format(n)}" for n in range(1500))  # type: ignore[method-assign]
    with pytest.raises(MetricsError) as refused:
        JmxSource(gateway).read(1, "host:9999", plan, 1.0)  # type: ignore[arg-type]
    assert (refused.value.subject, refused.value.rule) == (
        "JMX host:9999",
        "reports 1500 lags, but the broker has 150 replicas",
    )
    assert "[collect.endpoints]" in refused.value.remedy


@pytest.mark.parametrize(
    ("interval_s", "wait_ms"),
    [
        # A tick a second waits for 0.8 s, but the read goes on for three in all.
        (1.0, 3000),
        # 0.8 of 5 s.
        (5.0, 4000),
    ],
)
def test_java_waits_for_one_answer_as_long_as_a_read_may_take(interval_s: float, wait_ms: int) -> None:
    options = JmxGateway(CollectSettings(interval_s=interval_s))._java_options()
    assert {option for option in options if "Timeout" in option} == {
        f"-Dsun.rmi.transport.tcp.{name}Timeout={wait_ms}" for name in ("response", "handshake")
    }

"""Leadership of a running cluster, with a fake admin connection and metrics source."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from headroom.cluster.live import live_cluster
from headroom.cluster.live.live_cluster import LiveCluster
from headroom.cluster.log_dirs.describe import LogDirsReading
from headroom.cluster.metrics.mbeans import ReadPlan, topic_bytes
from headroom.cluster.metrics.source import MetricsError
from headroom.cluster.model import LogReading, Metrics, Reading, Snapshot
from headroom.planning.log_dirs.broker_logs import BrokerLogs
from headroom.schemas.config import ClusterSettings, Settings
from headroom.schemas.errors import HeadroomError
from tests.unit.fakes.admin_connection import ManyTopics


class FakeConnection(ManyTopics):
    """Brokers 1 to 3 that can be connected to and left."""

    def client(self) -> None:
        """Do nothing: the fake is always connected."""

    def close(self) -> None:
        """Do nothing: the fake is always connected."""


class Source:
    """Metrics of brokers that receive 1,000 bytes of every topic between two reads, all in partition 0.

    Attributes:
        refused: brokers whose metrics cannot be read.
        behind: by how many records the logs of a broker end before those of the leaders.
    """

    def __init__(self) -> None:
        self.refused: set[int] = set()
        self.behind: dict[int, int] = {}
        self._times: dict[int, int] = {}

    def start(self) -> None:
        raise HeadroomError("Java", "cannot be started", "Install it.")

    def read(self, broker: int, endpoint: str, plan: ReadPlan, timeout_s: float) -> Metrics:
        if broker in self.refused:
            raise MetricsError(endpoint, "connection refused", "Open it.")
        times = self._times[broker] = self._times.get(broker, 0) + 1
        counters = {topic_bytes(topic): Reading(1_000 * times, 1_000 * times) for topic in plan.topics}
        logs = {name: LogReading(1_000 * times, 0 if name.partition else times, None, None) for name in plan.leads}
        end = times - self.behind.get(broker, 0)
        logs |= {name: LogReading(1_000 * times, end, 0, 0) for name in plan.watched if name not in logs}
        return Metrics(1, counters, {}, (), logs)

    def stop(self) -> None:
        """Do nothing: there is no process to end."""


@pytest.fixture
def connection(monkeypatch: pytest.MonkeyPatch) -> FakeConnection:
    fake = FakeConnection({"orders": 2, "payments": 1})
    fake.leaders["payments", 0] = 2
    monkeypatch.setattr(live_cluster, "AdminConnection", lambda settings: fake)
    return fake


@pytest.fixture
def source(monkeypatch: pytest.MonkeyPatch) -> Source:
    fake = Source()
    monkeypatch.setattr(live_cluster, "metrics_source", lambda settings: fake)
    return fake


def live() -> LiveCluster:
    return LiveCluster(Settings(cluster=ClusterSettings(bootstrap_servers="h:9092")), sleep=lambda seconds: None)


def test_leadership_has_the_traffic_between_two_reads(connection: FakeConnection, source: Source) -> None:
    with live() as cluster:
        leadership = cluster.leadership_with_traffic()
    rates = {name: led.write_bytes_per_s for name, led in leadership.partitions.items()}
    assert rates == {("orders", 0): 1_000.0, ("orders", 1): 0.0, ("payments", 0): 1_000.0}
    assert leadership.partitions["payments", 0].leader == 2
    assert leadership.alive == {1, 2, 3}


def test_brokers_without_metrics_cost_their_rates_only(connection: FakeConnection, source: Source) -> None:
    source.refused = {2}
    with live() as cluster:
        leadership = cluster.leadership_with_traffic()
    assert leadership.partitions["payments", 0].write_bytes_per_s is None
    assert leadership.partitions["orders", 0].write_bytes_per_s == 1_000.0
    assert "connection refused" in leadership.traffic.unmeasured[2]


def test_followers_are_behind_when_they_end_before_where_the_leader_did_at_the_first_reading(
    connection: FakeConnection, source: Source
) -> None:
    # The leader's log ends at 1 in the first reading and at 2 in the second; its follower is broker 2.
    watched = [("orders", 0), ("gone", 0)]
    source.behind = {2: 1}
    with live() as cluster:
        assert cluster.leadership_with_traffic(watched).behind == frozenset()
        assert cluster.leadership_with_traffic().behind == frozenset()
    source.behind = {2: 9}
    with live() as cluster:
        assert cluster.leadership_with_traffic(watched).behind == {("orders", 0)}
        # A log without a reading is not behind.
        source.refused = {2}
        assert cluster.leadership_with_traffic(watched).behind == frozenset()


def test_leadership_alone_reads_no_metrics(connection: FakeConnection, source: Source) -> None:
    source.refused = {1, 2, 3}
    with live() as cluster:
        leadership = cluster.leadership()
    assert (len(leadership.partitions), dict(leadership.traffic.unmeasured)) == (3, {})


def test_metadata_without_an_answer_is_an_error_with_a_remedy(connection: FakeConnection, source: Source) -> None:
    connection.silent = {"MetadataRequest", "DescribeTopicPartitionsRequest"}
    with live() as cluster, pytest.raises(HeadroomError, match="the cluster: metadata could not be read"):
        cluster.leadership()


def test_leaders_that_were_read_too_long_ago_are_refused(
    connection: FakeConnection, source: Source, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(live_cluster, "_MAX_AGE_MS", -1)
    with live() as cluster, pytest.raises(HeadroomError, match="did not return all of its partitions"):
        cluster.leadership()


def test_log_directories_say_what_is_not_uploaded_of_the_topics_in_the_last_snapshot(
    connection: FakeConnection, source: Source, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[Snapshot] = []

    def untiered(link: object, snapshot: Snapshot, logs: Mapping[int, BrokerLogs], timeout_s: float) -> object:
        asked.append(snapshot)
        return {1: BrokerLogs(1, ())}

    monkeypatch.setattr(live_cluster, "describe_log_dirs", lambda *arguments: LogDirsReading({}, {}))
    monkeypatch.setattr(live_cluster, "with_untiered_bytes", untiered)
    with live() as cluster:
        assert (cluster.log_dirs([1]).brokers, asked) == ({}, [])
        snapshot = cluster.snapshot()
        assert cluster.log_dirs([1]).brokers == {1: BrokerLogs(1, ())}
    assert asked == [snapshot]

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from headroom.cluster.live import live_cluster
from headroom.cluster.live.live_cluster import LiveCluster
from headroom.cluster.live.plan_state import KnownRates, cluster_state_of
from headroom.cluster.metrics.mbeans import FOLLOWER_QUOTA, TICK, ReadPlan, topic_bytes
from headroom.cluster.metrics.source import MetricsError
from headroom.cluster.model import (
    Broker,
    BrokerRead,
    BrokerThrottles,
    LeaderRebalanceConfig,
    LogReading,
    Metrics,
    Partition,
    Reading,
    ReplicationSettings,
    Snapshot,
    TopicConfig,
)
from headroom.planning.quotas.limits import DEFAULT_FETCH, DEFAULT_WINDOW, FetchLimits, QuotaWindow
from headroom.planning.reassignments.cluster_state import BrokerState, PartitionPlacement
from headroom.planning.throttles.replica_lists import TopicLists
from headroom.schemas.config import ClusterSettings, Settings
from headroom.schemas.errors import HeadroomError
from headroom.schemas.keys import Role, TopicPartition
from tests.unit.fakes.admin_connection import ManyTopics

NAME = TopicPartition("t", 0)
MOVING = Partition("t", 0, 1, 4, (3, 2, 1), (1, 2), (), (3,), (1,))
SNAPSHOT = Snapshot(
    {1: Broker(1, "h", 9092, True, "a"), 2: Broker(2, "h", 9093, True), 3: Broker(3, None, None, False)},
    {NAME: MOVING},
    {"t": "id"},
    {"t": TopicConfig("0:1", None, False), "u": TopicConfig(None, None, False)},
)


def read(broker: int, size_bytes: int | None = None, **fields: Any) -> BrokerRead:
    logs = {} if size_bytes is None else {NAME: LogReading(0, 10, 0, size_bytes)}
    # It has received throttled bytes before, and sent none.
    metrics = Metrics(None, {}, {FOLLOWER_QUOTA: Reading(0.0, 0)}, (), logs)
    return replace(BrokerRead(broker, BrokerThrottles(True, 5, 6, log_dirs_bytes_per_s=7), metrics, None), **fields)


def test_a_state_has_all_that_a_plan_rests_on() -> None:
    window = ReplicationSettings(21, 2, 1_000, 9_000, 4, 250)
    reads = {1: read(1, 900, replication=window), 3: read(3, 400)}
    found = cluster_state_of("c", 5, SNAPSHOT, reads, KnownRates({NAME: 3.5}, "a table"))
    assert found.partitions == {
        NAME: PartitionPlacement("t", 0, 1, (3, 2, 1), (1, 2), (3,), (1,), 900, 3.5, copied_bytes={3: 400})
    }
    assert found.brokers[1] == BrokerState(
        1,
        True,
        "a",
        True,
        5,
        6,
        7,
        (),
        QuotaWindow(21, 2.0),
        FetchLimits(1_000, 9_000, 4, backoff_s=0.25),
        frozenset({Role.LEADER}),
    )
    assert (found.topic_ids, found.lists) == ({"t": "id"}, {"t": TopicLists("0:1", None)})
    assert (found.cluster, found.read_ms, found.rates_from) == ("c", 5, "a table")


def test_what_was_not_reported_is_unknown() -> None:
    reads = {1: read(1, None), 2: BrokerRead(2, BrokerThrottles(False), None, "did not answer")}
    found = cluster_state_of("c", 5, SNAPSHOT, reads, KnownRates({}, "nothing"))
    placement = found.partitions[NAME]
    assert (placement.size_bytes, placement.write_bytes_per_s, placement.copied_bytes) == (None, None, {})
    assert (found.brokers[2].throttles_known, found.brokers[2].alive) == (False, True)
    assert (found.brokers[3].throttles_known, found.brokers[3].alive) == (False, False)
    assert (found.brokers[1].quota_window, found.brokers[1].fetch) == (DEFAULT_WINDOW, DEFAULT_FETCH)
    assert found.auto_leader_rebalance is None


def test_kafka_balances_leaders_as_all_that_decide_on_it_report() -> None:
    def balances(*settings: bool | None) -> bool | None:
        reads = {b: read(b, balancing=LeaderRebalanceConfig(auto)) for b, auto in enumerate(settings, start=1)}
        return cluster_state_of("c", 5, SNAPSHOT, reads, KnownRates({}, "")).auto_leader_rebalance

    assert balances(True, None) is True
    assert balances(False, False) is False
    assert balances(True, False) is None
    assert balances(None, None) is None


class FakeConnection(ManyTopics):
    """Brokers 1 to 3 that can be connected to and left."""

    def client(self) -> None:
        """Do nothing: the fake is always connected."""

    def close(self) -> None:
        """Do nothing: the fake is always connected."""


class FakeSource:
    """Metrics of brokers that receive 1,000 bytes of every topic a second, all in partition 0; logs have 7 bytes."""

    def __init__(self) -> None:
        self.refused = False
        self._times: dict[int, int] = {}

    def start(self) -> None:
        raise HeadroomError("Java", "cannot be started", "Install it.")

    def read(self, broker: int, endpoint: str, plan: ReadPlan, timeout_s: float) -> Metrics:
        if self.refused:
            raise MetricsError(endpoint, "connection refused", "Open it.")
        times = self._times[broker] = self._times.get(broker, 0) + 1
        counters = {topic_bytes(topic): Reading(1_000 * times, 1_000 * times) for topic in plan.topics}
        logs = {name: LogReading(1_000 * times, 0 if name.partition else times, None, None) for name in plan.leads}
        logs |= {name: LogReading(1_000 * times, 0 if name.partition else times, 0, 7) for name in plan.watched}
        return Metrics(1, counters, {}, (), logs)

    def stop(self) -> None:
        """Do nothing: there is no process to end."""


@pytest.fixture
def source(monkeypatch: pytest.MonkeyPatch) -> FakeSource:
    fake = FakeSource()
    monkeypatch.setattr(live_cluster, "AdminConnection", lambda settings: FakeConnection({"orders": 2}))
    monkeypatch.setattr(live_cluster, "metrics_source", lambda settings: fake)
    return fake


def reader(waited: list[float]) -> LiveCluster:
    settings = Settings(cluster=ClusterSettings(bootstrap_servers="h:9092"))
    return LiveCluster(settings, TICK, waited.append, lambda: 5)


def test_rates_are_those_between_two_readings(source: FakeSource) -> None:
    waited: list[float] = []
    with reader(waited) as cluster:
        state = cluster.state([TopicPartition("orders", 0), TopicPartition("gone", 0)])
    placements = {name.partition: p for name, p in state.partitions.items()}
    assert {number: p.write_bytes_per_s for number, p in placements.items()} == {0: 1_000.0, 1: 0.0}
    assert {number: p.size_bytes for number, p in placements.items()} == {0: 7, 1: None}
    assert (waited, state.rates_from, state.read_ms) == ([5.0], "two readings 5 s apart", 5)


def test_known_rates_need_one_reading(source: FakeSource) -> None:
    waited: list[float] = []
    with reader(waited) as cluster:
        state = cluster.state(None, KnownRates({TopicPartition("orders", 1): 9.0}, "a table"))
    assert {name.partition: p.write_bytes_per_s for name, p in state.partitions.items()} == {0: None, 1: 9.0}
    assert (waited, state.rates_from) == ([], "a table")


def test_without_metrics_there_are_no_rates(source: FakeSource) -> None:
    source.refused = True
    with reader([]) as cluster:
        state = cluster.state([TopicPartition("orders", 0)])
    assert {p.write_bytes_per_s for p in state.partitions.values()} == {None}
    assert {p.size_bytes for p in state.partitions.values()} == {None}
    assert len(state.brokers) == 3

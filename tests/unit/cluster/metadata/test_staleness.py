"""Contradictions between brokers' metrics and the metadata."""

from __future__ import annotations

from headroom.cluster.metadata.staleness import StalenessDetector
from headroom.cluster.model import Broker, BrokerRead, BrokerThrottles, Lag, LogReading, Metrics, Partition, Snapshot
from headroom.schemas.keys import TopicPartition

ORDERS = TopicPartition("orders", 0)


def snapshot(leader: int | None = 1) -> Snapshot:
    brokers = {b: Broker(b, "host", 9092, True) for b in (1, 2)}
    return Snapshot(brokers, {ORDERS: Partition("orders", 0, leader, 0, (1, 2), (1, 2), ())}, {"orders": "a"})


def reads(lag: Lag | None = None, logs: tuple[TopicPartition, ...] = (ORDERS,)) -> dict[int, BrokerRead]:
    """Broker 1 has these logs, broker 2 this lag gauge."""
    ends = {name: LogReading(0, 5, None, None) for name in logs}
    metrics_of = {1: Metrics(7, {}, {}, (), ends), 2: Metrics(7, {}, {}, () if lag is None else (lag,), {})}
    return {b: BrokerRead(b, BrokerThrottles(True), metrics, None) for b, metrics in metrics_of.items()}


def fetching(source: int, name: TopicPartition = ORDERS) -> Lag:
    return Lag(name, source, f"ReplicaFetcherThread-0-{source}", 0)


def test_metrics_that_agree_are_no_contradiction() -> None:
    assert StalenessDetector().contradicted_topics(snapshot(), reads(fetching(1))) == set()


def test_a_follower_that_fetches_from_another_broker_shows_a_switch() -> None:
    assert StalenessDetector().contradicted_topics(snapshot(), reads(fetching(3))) == {"orders"}


def test_a_follower_that_fetches_shows_a_leader_where_there_was_none() -> None:
    assert StalenessDetector().contradicted_topics(snapshot(leader=None), reads(fetching(1))) == {"orders"}


def test_a_follower_shows_new_partitions_and_topics() -> None:
    staleness = StalenessDetector()
    assert staleness.contradicted_topics(snapshot(), reads(fetching(1, TopicPartition("orders", 1)))) == {"orders"}
    assert staleness.contradicted_topics(snapshot(), reads(fetching(1, TopicPartition("new", 0)))) == {"new"}


def test_a_leader_without_the_log_shows_a_deleted_topic() -> None:
    assert StalenessDetector().contradicted_topics(snapshot(), reads(logs=())) == {"orders"}


def test_a_broker_that_did_not_answer_contradicts_nothing() -> None:
    silent = {b: BrokerRead(b, BrokerThrottles(False), None, "hangs") for b in (1, 2)}
    assert StalenessDetector().contradicted_topics(snapshot(), silent) == set()


def test_the_same_contradiction_is_reported_once_until_it_was_gone() -> None:
    # A gauge that always names the old leader, or a configuration that exports no logs, must not cost every tick.
    staleness = StalenessDetector()
    raised = [
        staleness.contradicted_topics(snapshot(), reads(lag)) for lag in (fetching(3), fetching(3), None, fetching(3))
    ]
    assert raised == [{"orders"}, set(), set(), {"orders"}]

"""What a snapshot says of leaders, and of what speaks against another one."""

from __future__ import annotations

from cluster.leads import leads_of, same_leaders
from cluster.model import (
    Balancing,
    Broker,
    BrokerRead,
    BrokerThrottles,
    Partition,
    Snapshot,
    TopicConfig,
    TopicPartition,
)
from cluster.traffic import Traffic
from planning.elections import Led, Surroundings
from planning.throttle import PartitionTraffic
from schemas.findings import Role

BROKERS = {b: Broker(b, "h", 9092, b != 4) for b in (1, 2, 3, 4)}
STILL = Partition("still", 0, 2, 0, (1, 2), (2,), ())
MOVING = Partition("t", 0, 1, 0, (3, 1, 4), (1, 4), (), adding=(3,), removing=(4,))
CONFIGS = {
    "still": TopicConfig(None, None, compacted=False, min_insync_replicas=2),
    "t": TopicConfig("0:1,0:4", "0:3", compacted=False),
}


def snapshot(*partitions: Partition) -> Snapshot:
    return Snapshot(BROKERS, {p.name: p for p in partitions}, {}, CONFIGS)


def test_partitions_are_told_with_what_was_measured_of_them() -> None:
    traffic = Traffic({STILL.name: 100.0}, {STILL.name: 30.0})
    leads = leads_of(snapshot(STILL, MOVING), None, traffic)
    assert leads.partitions[STILL.name] == Led(
        "still", 0, 2, (1, 2), (2,), min_insync_replicas=2, write_bytes_per_s=100.0, read_bytes_per_s=30.0
    )
    assert leads.partitions[MOVING.name] == Led("t", 0, 1, (3, 1, 4), (1, 4), moving=True)
    assert leads.alive == {1, 2, 3}


def test_replicas_that_a_move_brings_are_not_lacking() -> None:
    assert leads_of(snapshot(STILL, MOVING)).lacking == {STILL.name}


def test_what_throttles_see_is_told_with_the_followers_that_are_alive() -> None:
    own = Balancing(auto=False, percentage=15)
    reads = {
        1: BrokerRead(1, BrokerThrottles(True, 5, None, "broker", "none"), None, None, own),
        2: BrokerRead(2, BrokerThrottles(known=False), None, None),
    }
    leads = leads_of(snapshot(STILL, MOVING), reads, Traffic({MOVING.name: 7.0}))
    assert leads.throttled == (
        PartitionTraffic("t", 0, 1, (3,), frozenset({1, 4}), frozenset({3}), frozenset({1, 4}), frozenset({3}), 7.0),
    )
    assert leads.throttles == {(1, Role.LEADER): 5, (1, Role.FOLLOWER): None}
    assert leads.balancing == {1: own, 2: Balancing()}
    chosen = leads.surroundings(frozenset({"t"}), frozenset({1}))
    assert chosen == Surroundings(
        leads.alive, leads.throttled, leads.throttles, chosen_topics=frozenset({"t"}), chosen_brokers=frozenset({1})
    )


def test_a_topic_with_one_leader_changed_between_two_samples_is_not_measured() -> None:
    names = [TopicPartition("a", 0), TopicPartition("a", 1), TopicPartition("b", 0)]
    before = [Partition(*name, 1, 0, (1, 2), (1, 2), ()) for name in names]
    after = [Partition(*name, 2 if name == ("a", 1) else 1, 0, (1, 2), (1, 2), ()) for name in names]
    assert [p.name for p in same_leaders(snapshot(*before), snapshot(*after))] == [("b", 0)]
    assert [p.name for p in same_leaders(snapshot(*before), snapshot(*before[1:]))] == [("b", 0)]

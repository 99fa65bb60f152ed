"""Leadership of a snapshot, with the constraints on elections."""

from __future__ import annotations

from headroom.cluster.elections.leadership import followers_behind, leadership_of, unchanged_partitions
from headroom.cluster.elections.traffic import Traffic
from headroom.cluster.model import (
    Broker,
    BrokerRead,
    BrokerThrottles,
    LeaderRebalanceConfig,
    LogReading,
    Metrics,
    Partition,
    Snapshot,
    TopicConfig,
)
from headroom.planning.elections.planner import ClusterConstraints, PartitionState
from headroom.planning.quotas.load import PartitionTraffic
from headroom.schemas.keys import Role, TopicPartition

BROKERS = {b: Broker(b, "h", 9092, b != 4) for b in (1, 2, 3, 4)}
STILL = Partition("still", 0, 2, 0, (1, 2), (2,), ())
MOVING = Partition("t", 0, 1, 0, (3, 1, 4), (1, 4), (), adding=(3,), removing=(4,))
CONFIGS = {
    "still": TopicConfig(None, None, compacted=False, min_insync_replicas=2),
    "t": TopicConfig("0:1,0:4", "0:3", compacted=False),
}


def snapshot(*partitions: Partition) -> Snapshot:
    return Snapshot(BROKERS, {p.name: p for p in partitions}, {}, CONFIGS)


def test_partitions_have_their_measured_traffic() -> None:
    traffic = Traffic({STILL.name: 100.0}, {STILL.name: 30.0})
    leadership = leadership_of(snapshot(STILL, MOVING), None, traffic)
    assert leadership.partitions[STILL.name] == PartitionState(
        TopicPartition("still", 0),
        2,
        (1, 2),
        (2,),
        min_insync_replicas=2,
        write_bytes_per_s=100.0,
        read_bytes_per_s=30.0,
    )
    assert leadership.partitions[MOVING.name] == PartitionState(
        TopicPartition("t", 0), 1, (3, 1, 4), (1, 4), moving=True
    )
    assert leadership.alive == {1, 2, 3}


def test_adding_replicas_do_not_count_as_under_replicated() -> None:
    assert leadership_of(snapshot(STILL, MOVING)).under_replicated == {STILL.name}


def test_throttled_partitions_have_the_followers_that_are_alive() -> None:
    own = LeaderRebalanceConfig(auto=False, percentage=15)
    reads = {
        1: BrokerRead(1, BrokerThrottles(True, 5, None, "broker", "none"), None, None, own),
        2: BrokerRead(2, BrokerThrottles(known=False), None, None),
    }
    leadership = leadership_of(snapshot(STILL, MOVING), reads, Traffic({MOVING.name: 7.0}))
    assert leadership.throttled == (
        PartitionTraffic(
            TopicPartition("t", 0),
            1,
            (3,),
            frozenset({1, 4}),
            frozenset({3}),
            frozenset({1, 4}),
            frozenset({3}),
            7.0,
            down=(4,),
        ),
    )
    assert leadership.throttles == {(1, Role.LEADER): 5, (1, Role.FOLLOWER): None}
    assert leadership.balancing == {1: own, 2: LeaderRebalanceConfig()}
    chosen = leadership.cluster_constraints(frozenset({"t"}), frozenset({1}))
    assert chosen == ClusterConstraints(
        leadership.alive,
        leadership.throttled,
        leadership.throttles,
        chosen_topics=frozenset({"t"}),
        chosen_brokers=frozenset({1}),
    )


def test_a_topic_with_one_leader_changed_between_two_samples_is_not_measured() -> None:
    names = [TopicPartition("a", 0), TopicPartition("a", 1), TopicPartition("b", 0)]
    before = [Partition(*name, 1, 0, (1, 2), (1, 2), ()) for name in names]
    after = [Partition(*name, 2 if name == ("a", 1) else 1, 0, (1, 2), (1, 2), ()) for name in names]
    assert [p.name for p in unchanged_partitions(snapshot(*before), snapshot(*after))] == [("b", 0)]
    assert [p.name for p in unchanged_partitions(snapshot(*before), snapshot(*before[1:]))] == [("b", 0)]


def ends(**brokers: int) -> dict[int, Metrics]:
    """Where the log of ``t-0`` ends on some brokers, ``b1`` for broker 1."""
    return {
        int(broker[1:]): Metrics(1, {}, {}, (), {TopicPartition("t", 0): LogReading(1, end, None, None)})
        for broker, end in brokers.items()
    }


def test_only_a_follower_in_sync_that_is_behind_where_its_leader_was_has_fallen_behind() -> None:
    def behind(leader: int | None, isr: tuple[int, ...], **later: int) -> bool:
        partition = Partition("t", 0, leader, 0, (1, 2, 3), isr, ())
        return bool(followers_behind([partition], ends(b1=100, b2=70), ends(**later)))

    assert not behind(1, (1, 2, 3), b1=150, b2=100, b3=149)
    assert behind(1, (1, 2, 3), b1=150, b2=99, b3=149)
    # Out of sync, gone, or of no leader: other checks are about these.
    assert not behind(1, (1, 3), b1=150, b2=99, b3=149)
    assert not behind(1, (1, 2, 3), b1=150, b3=149)
    assert not behind(None, (), b1=150, b2=99)
    # Broker 2 is the new leader, so its log counts; the earlier end of broker 3's log is unknown.
    assert not behind(2, (1, 2, 3), b1=70, b2=90, b3=70)
    assert not behind(3, (1, 2, 3), b1=1, b2=1, b3=90)

"""Topics, settings and offsets of one cluster, by what its brokers answer."""

from __future__ import annotations

import uuid
from typing import Any

import pytest
from kafka.errors import KafkaTimeoutError
from kafka.protocol.admin import DescribeConfigsResponse, DescribeLogDirsResponse
from kafka.protocol.consumer import ListOffsetsResponse, OffsetForLeaderEpochResponse
from kafka.protocol.metadata import MetadataResponse

from headroom.cluster.migration import migration_cluster as module
from headroom.cluster.migration.migration_cluster import MigrationCluster
from headroom.planning.migration.readings import LogOffsets, MigratingTopic, TopicRules
from headroom.schemas.config import OriginSettings
from headroom.schemas.errors import HeadroomError
from headroom.schemas.keys import TopicPartition

END, START, NEWEST = -1, -2, -3
ORDERS_ID = uuid.UUID(int=7)
NAMES = [TopicPartition("orders", p) for p in (0, 1, 2)]
_Topic = ListOffsetsResponse.ListOffsetsTopicResponse
_Config = DescribeConfigsResponse.DescribeConfigsResult
_Ends = OffsetForLeaderEpochResponse.OffsetForLeaderTopicResult


class OffsetBrokers:
    """Brokers 1 and 2 of a cluster; its topic orders has partitions that they lead, and one without a leader.

    Attributes:
        configs: value by key of the topic's settings; None: this user may not read them.
        offsets: offset and timestamp by partition, time, and isolation level.
        epochs: leader epoch and log end of each partition on its leader.
        earlier: where earlier epochs end, by partition and epoch.
        silent: brokers that do not answer.
        asked: broker, lowest version and isolation level of each request for offsets.
        sized: broker and partitions of each request for log directories, in which both have logs of both partitions.
        shows_directories: whether this user may see the directories.
    """

    def __init__(self, kafka: Any = None) -> None:
        self.configs: dict[str, str] | None = {}
        self.offsets: dict[tuple[TopicPartition, int, int], tuple[int, int]] = {}
        self.epochs: dict[TopicPartition, tuple[int, int]] = {}
        self.earlier: dict[tuple[TopicPartition, int], int] = {}
        self.silent: set[int] = set()
        self.asked: list[tuple[int, int, int]] = []
        self.sized: list[tuple[int, list[tuple[str, int]]]] = []
        self.shows_directories = True

    def client(self) -> None:
        """Connect."""

    def close(self) -> None:
        """Close."""

    def nodes(self) -> list[int]:
        return [1, 2]

    def send(self, request: Any, node: int, timeout_s: float) -> Any:
        if node in self.silent:
            raise KafkaTimeoutError("no answer")
        return getattr(self, type(request).__name__)(request, node)

    def MetadataRequest(self, request: Any, node: int) -> Any:
        assert not request.allow_auto_topic_creation
        topic = MetadataResponse.MetadataResponseTopic
        partitions = [
            topic.MetadataResponsePartition(
                error_code=0,
                partition_index=p,
                leader_id=leader,
                replica_nodes=replicas,
                isr_nodes=[1],
                offline_replicas=[],
            )
            for p, leader, replicas in ((0, 1, [1, 2]), (1, 2, [2]), (2, -1, [1, 2]))
        ]
        topics = [
            topic(error_code=0, name="orders", topic_id=ORDERS_ID, is_internal=False, partitions=partitions),
            topic(error_code=29, name="secret", topic_id=uuid.UUID(int=0), is_internal=False, partitions=[]),
        ]
        if request.topics is not None:
            asked = {own.name for own in request.topics}
            gone = asked.difference(own.name for own in topics)
            topics = [own for own in topics if own.name in asked] + [
                topic(error_code=3, name=name, topic_id=uuid.UUID(int=0), is_internal=False, partitions=[])
                for name in sorted(gone)
            ]
        answer = MetadataResponse(
            throttle_time_ms=0, brokers=[], cluster_id="the id", controller_id=1, topics=topics, error_code=0
        )
        return MetadataResponse.decode(answer.encode(version=12), version=12)

    def DescribeConfigsRequest(self, request: Any, node: int) -> Any:
        ((kind, name, keys),) = request.resources
        assert (kind, name) == (2, "orders")
        configs = self.configs or {}
        found = _Config(
            error_code=29 if self.configs is None else 0,
            error_message=None,
            resource_type=2,
            resource_name=name,
            configs=[
                _Config.DescribeConfigsResourceResult(name=key, value=configs[key], read_only=False, config_source=5)
                for key in keys
                if key in configs
            ],
        )
        answer = DescribeConfigsResponse(throttle_time_ms=0, results=[found])
        return DescribeConfigsResponse.decode(answer.encode(version=4), version=4)

    def ListOffsetsRequest(self, request: Any, node: int) -> Any:
        self.asked.append((node, request._min_version, request.isolation_level))
        topics = [
            _Topic(
                name=topic.name,
                partitions=[
                    self._offset(TopicPartition(topic.name, p.partition_index), p.timestamp, request.isolation_level)
                    for p in topic.partitions
                ],
            )
            for topic in request.topics
        ]
        answer = ListOffsetsResponse(throttle_time_ms=0, topics=topics)
        return ListOffsetsResponse.decode(answer.encode(version=7), version=7)

    def DescribeLogDirsRequest(self, request: Any, node: int) -> Any:
        self.sized.append((node, sorted((t.topic, p) for t in request.topics for p in t.partitions)))
        _Dir = DescribeLogDirsResponse.DescribeLogDirsResult
        _Log = _Dir.DescribeLogDirsTopic
        logs = [_Log.DescribeLogDirsPartition(partition_index=p, partition_size=1_000 * node + p) for p in (0, 1)]
        directory = _Dir(error_code=0, log_dir="/a", topics=[_Log(name="orders", partitions=logs)])
        answer = DescribeLogDirsResponse(throttle_time_ms=0, results=[directory] if self.shows_directories else [])
        return DescribeLogDirsResponse.decode(answer.encode(version=1), version=1)

    def OffsetForLeaderEpochRequest(self, request: Any, node: int) -> Any:
        assert (request.replica_id, request._min_version) == (-1, 3)
        asked = [(own.topic, own.partitions) for own in request.topics]
        topics = [_Ends(topic=t, partitions=[self._end(t, p) for p in partitions]) for t, partitions in asked]
        answer = OffsetForLeaderEpochResponse(throttle_time_ms=0, topics=topics)
        return OffsetForLeaderEpochResponse.decode(answer.encode(version=3), version=3)

    def _end(self, topic: str, asked: Any) -> Any:
        """Answer as ``LeaderEpochFileCache.endOffsetFor``; 74 is FENCED_LEADER_EPOCH."""
        name = TopicPartition(topic, asked.partition)
        epoch, end = self.epochs[name]
        found = end if asked.leader_epoch == epoch else self.earlier.get((name, asked.leader_epoch), -1)
        is_fenced = asked.current_leader_epoch not in (-1, epoch)
        return _Ends.EpochEndOffset(
            error_code=74 if is_fenced else 0,
            partition=asked.partition,
            leader_epoch=-1 if is_fenced else asked.leader_epoch,
            end_offset=-1 if is_fenced else found,
        )

    def _offset(self, name: TopicPartition, time: int, isolation: int) -> Any:
        found = self.offsets.get((name, time, isolation))
        offset, timestamp = found or (-1, -1)
        return _Topic.ListOffsetsPartitionResponse(
            partition_index=name.partition,
            error_code=6 if found is None else 0,
            timestamp=timestamp,
            offset=offset,
            leader_epoch=0,
        )


@pytest.fixture
def brokers(monkeypatch: pytest.MonkeyPatch) -> OffsetBrokers:
    fake = OffsetBrokers()
    monkeypatch.setattr(module, "AdminConnection", lambda kafka: fake)
    return fake


@pytest.fixture
def cluster(brokers: OffsetBrokers) -> MigrationCluster:
    return MigrationCluster(OriginSettings("o:1", request_timeout_ms=1_000), "old")


def test_topics_have_their_leaders_and_the_cluster_its_id(cluster: MigrationCluster) -> None:
    found = cluster.topics()
    assert (found.cluster_id, found.names) == ("the id", {"orders"})
    assert found.topics == {"orders": MigratingTopic(str(ORDERS_ID), {0: 1, 1: 2, 2: None}, 1)}


def test_a_topic_that_this_user_may_not_see_is_not_absent(cluster: MigrationCluster) -> None:
    assert cluster.absent(["orders", "secret", "gone"]) == {"gone"}


def test_settings_are_read_whole_or_unknown(cluster: MigrationCluster, brokers: OffsetBrokers) -> None:
    brokers.configs = {
        "cleanup.policy": "compact,delete",
        "retention.ms": "-1",
        "retention.bytes": "1e9",
        "min.insync.replicas": "2",
        "unclean.leader.election.enable": "true",
        "message.timestamp.type": "LogAppendTime",
    }
    assert cluster.rules(["orders"]) == {
        "orders": TopicRules("compact,delete", -1, None, 2, True, "LogAppendTime", False)
    }
    brokers.configs = {}
    assert cluster.rules(["orders"]) == {"orders": TopicRules()}
    brokers.configs = None
    assert cluster.rules(["orders"]) == {}


def test_each_leader_is_asked_for_its_own_partitions(cluster: MigrationCluster, brokers: OffsetBrokers) -> None:
    topics = cluster.topics().topics
    for name, first in ((NAMES[0], 10), (NAMES[1], 0)):
        brokers.offsets |= {
            (name, START, 0): (first, -1),
            (name, END, 0): (100, -1),
            (name, END, 1): (95, -1),
            (name, NEWEST, 0): (99, 123_456),
        }
    assert cluster.log_offsets(topics) == {
        NAMES[0]: LogOffsets(10, 100, 95, 123_456, 99),
        NAMES[1]: LogOffsets(0, 100, 95, 123_456, 99),
        NAMES[2]: LogOffsets(),
    }
    # Isolation levels since version 2 of the request, and the newest record since 7.
    assert sorted(set(brokers.asked)) == [(1, 2, 0), (1, 2, 1), (1, 7, 0), (2, 2, 0), (2, 2, 1), (2, 7, 0)]
    assert cluster.log_ends(topics)[0] == {NAMES[0]: 100, NAMES[1]: 100}


def test_a_broker_that_does_not_answer_makes_its_partitions_unknown(
    cluster: MigrationCluster, brokers: OffsetBrokers
) -> None:
    topics = cluster.topics().topics
    brokers.offsets = {(NAMES[0], END, 0): (100, -1), (NAMES[1], END, 0): (100, -1)}
    brokers.silent = {2}
    assert cluster.log_ends(topics)[0] == {NAMES[0]: 100}
    found = cluster.log_offsets(topics)
    assert (found[NAMES[0]], found[NAMES[1]]) == (LogOffsets(end=100), LogOffsets())


def test_a_leaders_log_ends_where_its_newest_epoch_does_and_only_it_may_say_so(
    cluster: MigrationCluster, brokers: OffsetBrokers
) -> None:
    """The leader of partition 1 is two epochs on, the first of which ended at 50: that is no log end."""
    topics = {"orders": MigratingTopic(None, {0: 1, 1: 2, 2: None}, 1, {0: 7, 1: 4, 2: 4})}
    brokers.epochs = {NAMES[0]: (7, 180), NAMES[1]: (6, 180)}
    brokers.earlier = {(NAMES[1], 4): 50}
    assert cluster.leader_ends(topics) == {NAMES[0]: 180}
    assert cluster.epoch_ends(topics, {NAMES[1]: [4]}) == {NAMES[1]: {4: 50}}


def test_sizes_are_those_of_the_leaders_logs_and_only_of_these_partitions(
    cluster: MigrationCluster, brokers: OffsetBrokers
) -> None:
    topics = cluster.topics().topics
    assert cluster.log_sizes(topics, NAMES) == ({NAMES[0]: 1_000, NAMES[1]: 2_001}, "")
    # A partition without a leader is not asked about where no other one is.
    assert sorted(brokers.sized) == [(1, [("orders", p) for p in (0, 1, 2)]), (2, [("orders", p) for p in (0, 1, 2)])]
    brokers.sized = []
    assert cluster.log_sizes(topics, [NAMES[1]]) == ({NAMES[1]: 2_001}, "")
    assert brokers.sized == [(2, [("orders", 1)])]
    assert cluster.log_sizes(topics, [NAMES[2]]) == ({}, "")


def test_sizes_that_a_broker_does_not_report_are_unknown_with_the_reason(
    cluster: MigrationCluster, brokers: OffsetBrokers
) -> None:
    topics = cluster.topics().topics
    brokers.silent = {2}
    found, reason = cluster.log_sizes(topics, NAMES)
    assert (found, reason) == ({NAMES[0]: 1_000}, "broker 2 did not report its log directories (KafkaTimeoutError)")
    brokers.silent, brokers.shows_directories = set(), False
    found, reason = cluster.log_sizes(topics, [NAMES[0]])
    assert (found, reason) == ({}, "broker 1 reported no log directory, as without the right to see them")


def test_the_offset_of_a_time(cluster: MigrationCluster, brokers: OffsetBrokers) -> None:
    topics = cluster.topics().topics
    brokers.offsets = {(NAMES[0], 123_000, 0): (42, 123_456), (NAMES[0], 999_000, 0): (-1, -1)}
    assert cluster.offset_at(topics, NAMES[0], 123_000) == 42
    # The leader has no record of that time.
    assert cluster.offset_at(topics, NAMES[0], 999_000) is None


@pytest.mark.parametrize("number", [1, 2])
def test_the_offset_of_a_time_is_no_none_if_no_leader_answers(cluster: MigrationCluster, number: int) -> None:
    """Broker 2 leads partition 1 no more, and partition 2 has no leader."""
    topics = cluster.topics().topics
    with pytest.raises(HeadroomError, match=f"orders-{number} on cluster old: has no leader that answers"):
        cluster.offset_at(topics, NAMES[number], 123_000)


def test_without_any_answer_the_cluster_is_named(cluster: MigrationCluster, brokers: OffsetBrokers) -> None:
    brokers.silent = {1, 2}
    for read in (cluster.topics, lambda: cluster.rules(["orders"])):
        with pytest.raises(HeadroomError, match=r"cluster old: topic.* could not be read"):
            read()

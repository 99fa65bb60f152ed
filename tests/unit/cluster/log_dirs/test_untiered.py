"""Bytes that are not in remote storage yet, by what brokers answer."""

from __future__ import annotations

from typing import Any

import pytest
from kafka.errors import KafkaTimeoutError, UnsupportedVersionError
from kafka.protocol.admin import DescribeConfigsResponse
from kafka.protocol.consumer import ListOffsetsResponse

from headroom.cluster.log_dirs.untiered import with_untiered_bytes
from headroom.cluster.model import Broker, Partition, Snapshot, TopicConfig
from headroom.planning.log_dirs.broker_logs import BrokerLogs
from headroom.schemas.keys import TopicPartition
from tests.unit.builders.log_dirs import MB, A, logs

SKIPS = "follower.fetch.last.tiered.offset.enable"
TIERED = TopicConfig(None, None, compacted=False, remote_storage=True)
ORDERS, AUDIT, PLAIN = (TopicPartition(topic, 0) for topic in ("orders", "audit", "plain"))
END, FIRST, FIRST_LOCAL, LAST_UPLOADED = -1, -2, -4, -5
_Config = DescribeConfigsResponse.DescribeConfigsResult
_Topic = ListOffsetsResponse.ListOffsetsTopicResponse


class TieredBrokers:
    """Brokers that have the setting, and the offsets of partitions with remote storage.

    Attributes:
        setting: value of the setting by broker; None: the broker has no such setting.
        offsets: offset by partition and the timestamp that stands for it.
        unknown: partitions that the asked broker does not lead any more.
        failure: what a request for offsets raises.
        asked: brokers that were asked, by the name of the request.
    """

    def __init__(self) -> None:
        self.setting: dict[int, str | None] = dict.fromkeys((1, 2, 3), "true")
        self.offsets = {
            (ORDERS, END): 1_000,
            (ORDERS, FIRST): 50,
            (ORDERS, FIRST_LOCAL): 200,
            (ORDERS, LAST_UPLOADED): 899,
        }
        self.unknown: set[TopicPartition] = set()
        self.failure: Exception | None = None
        self.asked: list[tuple[str, int]] = []

    def place(self, first: int, first_local: int, last_uploaded: int) -> None:
        """Set the first offset of orders, the first on the disk, and the last in remote storage; its end is 1000."""
        self.offsets |= {
            (ORDERS, FIRST): first,
            (ORDERS, FIRST_LOCAL): first_local,
            (ORDERS, LAST_UPLOADED): last_uploaded,
        }

    def send(self, request: Any, node: int, timeout_s: float) -> Any:
        self.asked.append((type(request).__name__, node))
        return getattr(self, type(request).__name__)(request, node)

    def DescribeConfigsRequest(self, request: Any, node: int) -> Any:
        assert request.resources == [(4, str(node), [SKIPS])]
        value = self.setting[node]
        if value == "silent":
            raise KafkaTimeoutError("no answer")
        one = _Config.DescribeConfigsResourceResult(name=SKIPS, value=value, read_only=False, config_source=5)
        found = _Config(
            error_code=0, error_message=None, resource_type=4, resource_name=str(node), configs=[one] if value else []
        )
        answer = DescribeConfigsResponse(throttle_time_ms=0, results=[found])
        return DescribeConfigsResponse.decode(answer.encode(version=4), version=4)

    def ListOffsetsRequest(self, request: Any, node: int) -> Any:
        if self.failure is not None:
            raise self.failure
        names = [(topic.name, p) for topic in request.topics for p in topic.partitions]
        topics = [
            _Topic(name=topic, partitions=[self._answer(TopicPartition(topic, p.partition_index), p.timestamp)])
            for topic, p in names
        ]
        answer = ListOffsetsResponse(throttle_time_ms=0, topics=topics)
        return ListOffsetsResponse.decode(answer.encode(version=11), version=11)

    def _answer(self, name: TopicPartition, which: int) -> Any:
        return _Topic.ListOffsetsPartitionResponse(
            partition_index=name.partition,
            error_code=6 if name in self.unknown else 0,
            timestamp=-1,
            offset=self.offsets.get((name, which), -1),
            leader_epoch=0,
        )


@pytest.fixture
def brokers() -> TieredBrokers:
    return TieredBrokers()


def snapshot(**configs: TopicConfig) -> Snapshot:
    """Brokers 1 to 3, and partitions on 1 and 2, led by 1."""
    partitions = {name: Partition(*name, 1, 0, (1, 2), (1, 2), ()) for name in (ORDERS, AUDIT, PLAIN)}
    plain = {"plain": TopicConfig(None, None, compacted=False, remote_storage=False)}
    return Snapshot({b: Broker(b, "h", 1, alive=True) for b in (1, 2, 3)}, partitions, {}, {**plain, **configs})


def logs_of_leader(brokers: Any, metadata: Snapshot | None = None) -> BrokerLogs:
    """What is known of the logs of broker 1, with 80 MB of orders, 50 of audit and 10 of the topic without tiers."""
    read: dict[int, BrokerLogs] = {
        1: logs(1, {ORDERS: (A, 80 * MB), AUDIT: (A, 50 * MB), PLAIN: (A, 10 * MB)}),
        2: logs(2, {ORDERS: (A, 70 * MB)}),
    }
    found = with_untiered_bytes(brokers, metadata or snapshot(orders=TIERED), read, 5.0)
    assert found[2] == read[2]
    return found[1]


def untiered(brokers: Any, metadata: Snapshot | None = None) -> dict[TopicPartition, int]:
    return dict(logs_of_leader(brokers, metadata).untiered_bytes)


def test_new_replicas_copy_the_share_of_the_leaders_log_that_is_not_uploaded(brokers: TieredBrokers) -> None:
    # 100 of 800 local records.
    assert untiered(brokers) == {ORDERS: 10 * MB}
    # Four offsets of one leader, and not those of the follower.
    assert [node for name, node in brokers.asked if name == "ListOffsetsRequest"] == [1, 1, 1, 1]


def test_a_cluster_without_remote_storage_is_not_asked(brokers: TieredBrokers) -> None:
    assert untiered(brokers, snapshot()) == {}
    assert brokers.asked == []


@pytest.mark.parametrize("value", ["false", None, "silent"])
def test_all_may_be_copied_where_one_broker_does_not_skip_it(brokers: TieredBrokers, value: str | None) -> None:
    brokers.setting[3] = value
    assert untiered(brokers) == {}


def test_a_dead_broker_has_no_say(brokers: TieredBrokers) -> None:
    metadata = snapshot(orders=TIERED)
    metadata.brokers[3] = Broker(3, "h", 1, alive=False)
    brokers.setting[3] = "false"
    assert untiered(brokers, metadata) == {ORDERS: 10 * MB}


def test_a_compacted_topic_is_copied_whole(brokers: TieredBrokers) -> None:
    compacted = TopicConfig(None, None, compacted=True, remote_storage=True)
    assert untiered(brokers, snapshot(orders=compacted)) == {}


def test_a_topic_whose_settings_are_unknown_is_copied_whole(brokers: TieredBrokers) -> None:
    assert untiered(brokers, snapshot(orders=TopicConfig(None, None, compacted=False))) == {}


@pytest.mark.parametrize(
    ("first", "first_local", "last_uploaded", "copied"),
    [
        pytest.param(200, 200, -1, 80 * MB, id="nothing uploaded"),
        pytest.param(50, 200, 199, 80 * MB, id="nothing of the local log uploaded"),
        pytest.param(50, 200, 100, 80 * MB, id="uploads are off, and a part of the log is gone"),
        pytest.param(50, 200, 999, 0, id="everything uploaded"),
        pytest.param(50, 200, 1_000, 0, id="uploaded since the end was read"),
        pytest.param(50, 1_000, 999, 0, id="empty log"),
    ],
)
def test_the_share_is_between_nothing_and_all(
    brokers: TieredBrokers, first: int, first_local: int, last_uploaded: int, copied: int
) -> None:
    brokers.place(first, first_local, last_uploaded)
    assert untiered(brokers) == {ORDERS: copied}


def test_partitions_are_copied_whole_of_which_the_leader_does_not_know_it(brokers: TieredBrokers) -> None:
    both = snapshot(orders=TIERED, audit=TIERED)
    # It answers -1 to every question for one of them.
    assert untiered(brokers, both) == {ORDERS: 10 * MB}
    # A new leader has not looked for uploaded segments yet: 50 to 199 are only there.
    brokers.offsets |= {(AUDIT, which): brokers.offsets[ORDERS, which] for which in (END, FIRST, FIRST_LOCAL)}
    assert untiered(brokers, both) == {ORDERS: 10 * MB}
    brokers.unknown = {ORDERS}
    assert untiered(brokers, both) == {}


def test_a_log_that_begins_with_the_first_record_is_copied_whole(brokers: TieredBrokers) -> None:
    for last_uploaded in (-1, 899):
        brokers.place(0, 0, last_uploaded)
        assert untiered(brokers) == {}
        assert logs_of_leader(brokers).awaiting_leader == frozenset()


@pytest.mark.parametrize(
    ("first", "first_local", "last_uploaded", "awaits"),
    [
        pytest.param(50, 200, 899, False, id="uploaded"),
        pytest.param(899, 899, 899, False, id="one record of it is left"),
        pytest.param(200, 200, -1, True, id="nothing uploaded yet"),
        pytest.param(900, 900, 899, True, id="all of it has expired"),
        pytest.param(950, 950, 899, True, id="deleted beyond what was uploaded"),
        pytest.param(50, 200, 998, False, id="one record is not uploaded"),
        pytest.param(50, 200, 999, True, id="all is uploaded"),
        pytest.param(50, 1_000, 999, True, id="all is uploaded and gone from the disk"),
        pytest.param(1_000, 1_000, 999, True, id="empty log"),
    ],
)
def test_new_replicas_wait_for_a_leader_that_cannot_say_where_they_begin(
    brokers: TieredBrokers, first: int, first_local: int, last_uploaded: int, awaits: bool
) -> None:
    brokers.place(first, first_local, last_uploaded)
    assert logs_of_leader(brokers).awaiting_leader == ({ORDERS} if awaits else frozenset())
    # Without the setting they copy what is on the disk at once.
    brokers.setting[3] = "false"
    assert logs_of_leader(brokers).awaiting_leader == frozenset()


@pytest.mark.parametrize("failure", [KafkaTimeoutError("slow"), UnsupportedVersionError("old")])
def test_a_leader_that_does_not_answer_has_uploaded_nothing_that_is_known(
    brokers: TieredBrokers, failure: Exception
) -> None:
    brokers.failure = failure
    assert untiered(brokers) == {}

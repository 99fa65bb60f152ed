"""Snapshots of the metadata when brokers fail, with a fake admin connection."""

from __future__ import annotations

from types import SimpleNamespace as Answer
from typing import Any

import pytest
from kafka.errors import IncompatibleBrokerVersion, KafkaTimeoutError, NotControllerError
from kafka.protocol.admin import ListPartitionReassignmentsRequest
from kafka.protocol.metadata import MetadataRequest

from headroom.cluster.connection.failover import BrokerFailover, MetadataError
from headroom.cluster.metadata.snapshot_reader import SnapshotReader
from headroom.schemas.keys import TopicPartition

ORDERS = TopicPartition("orders", 0)
OTHER = TopicPartition("other", 0)


class FakeConnection:
    """Brokers 1 to 3 with two topics; ``silent`` has the broker ids and kinds of request without an answer."""

    def __init__(self) -> None:
        self.forwarding = self
        self.silent: set[Any] = set()
        self.asked: list[tuple[int, str]] = []
        self.replicas = [1, 2]
        self.adding: list[int] = []
        self.topics = ["orders", "other"]
        self.refused = 0
        # The only one that knows of reassignments, in ZooKeeper mode.
        self.controller: int | None = None
        self.lists = {"orders": "0:1", "other": None}

    def nodes(self) -> list[int]:
        return [1, 2, 3]

    def send(self, request: Any, node: int, timeout_s: float) -> Any:
        kind = type(request).__name__
        self.asked.append((node, kind))
        if {node, kind} & self.silent:
            raise KafkaTimeoutError(f"after {timeout_s} s")
        if self.controller not in (None, node) and kind == "ListPartitionReassignmentsRequest":
            return Answer(error_code=NotControllerError.errno, topics=[])
        return {
            "DescribeTopicPartitionsRequest": self.pages,
            "MetadataRequest": self.metadata,
            "ListPartitionReassignmentsRequest": self.reassignments,
            "DescribeConfigsRequest": lambda: self.configs(request),
        }[kind]()

    def pages(self) -> Any:
        raise IncompatibleBrokerVersion("a broker from before the request")

    def metadata(self) -> Any:
        topics = [Answer(error_code=0, name=n, topic_id=n, partitions=[self.partition(n)]) for n in self.topics]
        return Answer(brokers=[Answer(node_id=b, host="h", port=9092, rack=None) for b in (1, 2, 3)], topics=topics)

    def partition(self, topic: str) -> Any:
        replicas = self.replicas if topic == "orders" else [2, 3]
        return Answer(
            partition_index=0, leader_id=2, leader_epoch=4, replica_nodes=replicas, isr_nodes=[2], offline_replicas=[]
        )

    def reassignments(self) -> Any:
        moving = Answer(partition_index=0, adding_replicas=self.adding, removing_replicas=[])
        return Answer(
            error_code=self.refused, topics=[Answer(name="orders", partitions=[moving])] if self.adding else []
        )

    def configs(self, request: Any) -> Any:
        names = [resource[1] for resource in request.resources]
        self.asked[-1] = (self.asked[-1][0], f"configs of {', '.join(names)}")
        config = "leader.replication.throttled.replicas"
        values = {n: [Answer(name=config, value=self.lists[n])] for n in names}
        return Answer(results=[Answer(error_code=0, resource_name=n, configs=values[n]) for n in names])

    def configs_asked(self) -> list[str]:
        return [kind for _, kind in self.asked if kind.startswith("configs")]


class Clock:
    """Monotonic clock that the test advances."""

    now_s = 0.0

    def __call__(self) -> float:
        return self.now_s


def reader(connection: FakeConnection, clock: Clock | None = None) -> SnapshotReader:
    return SnapshotReader(connection, 0.8, 30.0, clock or Clock())  # type: ignore[arg-type]


def test_a_broker_that_hangs_is_skipped_and_not_asked_first_again() -> None:
    connection = FakeConnection()
    connection.silent = {1}
    read = reader(connection)
    read.snapshot()
    assert [node for node, _ in connection.asked[:2]] == [1, 2]
    connection.asked.clear()
    read.snapshot()
    assert {node for node, _ in connection.asked} == {2}


def test_when_no_broker_answers_the_tick_is_left_out_and_the_error_names_each() -> None:
    connection = FakeConnection()
    connection.silent = {1, 2, 3}
    with pytest.raises(MetadataError, match=r"broker 1: .*broker 2: .*broker 3"):
        reader(connection).snapshot()


def test_reassignments_that_cannot_be_listed_stay_the_same_while_replicas_stay() -> None:
    connection = FakeConnection()
    connection.replicas, connection.adding = [1, 2, 3], [3]
    read = reader(connection)
    first = read.snapshot()
    assert (first.partitions[ORDERS].adding, first.reassignments_read) == ((3,), True)
    connection.silent = {"ListPartitionReassignmentsRequest"}
    second = read.snapshot()
    assert (second.partitions[ORDERS].adding, second.reassignments_read) == ((3,), False)
    connection.replicas = [2, 3]
    with pytest.raises(MetadataError, match=r"read \(.*\), and the replicas of orders-0 changed since"):
        read.snapshot()


# An election takes some 15 s. Without a controller brokers report a dead leader as alive, for ever.
def test_the_last_reassignments_count_no_longer_than_an_election_takes() -> None:
    connection, clock = FakeConnection(), Clock()
    connection.replicas, connection.adding = [1, 2, 3], [3]
    read = reader(connection, clock)
    read.snapshot()
    for begin_s in (60, 160):
        connection.silent = {"ListPartitionReassignmentsRequest"}
        for second in (0, 29):
            clock.now_s = begin_s + second
            read.snapshot()
        clock.now_s = begin_s + 31
        with pytest.raises(MetadataError, match=r"for 31 s. See that enough controllers are up: .* as they were last$"):
            read.snapshot()
        # With a controller again the time begins again.
        connection.silent = set()
        read.snapshot()


def test_a_partition_created_after_the_last_read_is_reported_as_new() -> None:
    connection = FakeConnection()
    connection.topics = ["other"]
    read = reader(connection)
    read.snapshot()
    connection.topics, connection.silent = ["orders", "other"], {"ListPartitionReassignmentsRequest"}
    with pytest.raises(MetadataError, match="and orders-0 is new since they were read"):
        read.snapshot()


def test_reassignments_never_read_are_not_invented() -> None:
    connection = FakeConnection()
    connection.silent = {"ListPartitionReassignmentsRequest"}
    with pytest.raises(MetadataError, match="and there is no earlier reading"):
        reader(connection).snapshot()


def test_denied_reassignments_are_reported_as_denied() -> None:
    connection = FakeConnection()
    # 31 is CLUSTER_AUTHORIZATION_FAILED: https://kafka.apache.org/protocol#protocol_error_codes
    connection.refused = 31
    with pytest.raises(MetadataError) as failed:
        reader(connection).snapshot()
    expected = "reassignments could not be read (ClusterAuthorizationFailedError), and there is no earlier reading"
    assert str(failed.value) == expected


def test_lists_are_read_every_tick_where_there_are_some_and_in_turn_elsewhere() -> None:
    connection, clock = FakeConnection(), Clock()
    read = reader(connection, clock)
    read.snapshot()
    clock.now_s = 1.0
    read.snapshot()
    # other is the second of two: first read with half of its 30 s gone.
    clock.now_s = 15.0
    read.snapshot()
    clock.now_s = 16.0
    read.snapshot()
    both, one = "configs of orders, other", "configs of orders"
    assert connection.configs_asked() == [both, one, both, one]


def test_a_topic_that_moves_is_read_every_tick() -> None:
    connection = FakeConnection()
    connection.lists, connection.replicas, connection.adding = {"orders": None, "other": None}, [1, 2, 3], [3]
    read = reader(connection)
    read.snapshot()
    read.snapshot()
    assert connection.configs_asked()[1] == "configs of orders"


def test_lists_that_cannot_be_read_are_last_known_ones_marked_as_such() -> None:
    connection = FakeConnection()
    read = reader(connection)
    assert read.snapshot().topic_configs["orders"].current
    connection.silent = {"DescribeConfigsRequest"}
    config = read.snapshot().topic_configs["orders"]
    assert (config.leader_list, config.current) == ("0:1", False)
    connection.silent = set()
    assert read.snapshot().topic_configs["orders"].current


def test_lists_never_read_leave_the_tick_out() -> None:
    connection = FakeConnection()
    connection.silent = {"DescribeConfigsRequest"}
    with pytest.raises(MetadataError, match="topic configurations"):
        reader(connection).snapshot()


def test_where_brokers_pass_nothing_on_the_controller_is_found_and_asked_first_from_then_on() -> None:
    connection = FakeConnection()
    connection.controller, connection.adding = 3, [3]
    reader = SnapshotReader(connection, 1.0, 60.0)  # type: ignore[arg-type]

    def asked() -> list[int]:
        connection.asked.clear()
        assert reader.snapshot().partitions[ORDERS].adding == (3,)
        return [node for node, kind in connection.asked if kind == "ListPartitionReassignmentsRequest"]

    assert asked() == [1, 2, 3]
    assert asked() == [3]
    # Everything else is asked of whoever answered it last.
    assert {node for node, kind in connection.asked if kind != "ListPartitionReassignmentsRequest"} == {1}
    # Another one is the controller now; then the first of them dies.
    connection.controller = 2
    assert asked() == [3, 1, 2]
    connection.silent, connection.controller = {2}, 1
    assert asked()[-1] == 1
    connection.silent, connection.controller = set(), 4
    with_none = SnapshotReader(connection, 1.0, 60.0)  # type: ignore[arg-type]
    with pytest.raises(MetadataError, match="broker 3: NotControllerError"):
        with_none.snapshot()


def test_while_the_controller_moves_all_are_asked_again_until_the_time_is_over() -> None:
    connection = FakeConnection()
    connection.controller, connection.adding = 4, [3]
    waits: list[float] = []

    def sleep(seconds: float) -> None:
        waits.append(seconds)
        connection.controller = 2

    brokers = BrokerFailover(connection, 1.0, sleep=sleep)  # type: ignore[arg-type]
    answer = brokers.send_to_any_forwarding("reassignments", ListPartitionReassignmentsRequest(), 1.0)
    # All three refuse; then broker 2 is the controller.
    assert (answer.error_code, [node for node, _ in connection.asked]) == (0, [1, 2, 3, 1, 2])
    assert len(waits) == 1


def test_a_broker_that_is_behind_is_asked_last_also_when_it_was_the_only_one_to_answer() -> None:
    connection = FakeConnection()
    brokers = BrokerFailover(connection, 1.0)  # type: ignore[arg-type]

    def asked() -> list[int]:
        connection.asked.clear()
        brokers.send_to_any("metadata", MetadataRequest())
        return [node for node, _ in connection.asked]

    assert asked() == [1]
    brokers.demote_last()
    connection.silent = {2, 3}
    assert asked()[-1] == 1
    connection.silent = set()
    assert asked() == [2]

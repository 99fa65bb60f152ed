"""Running reassignments, with a fake admin connection."""

from __future__ import annotations

from types import SimpleNamespace as Answer
from typing import Any

import pytest
from kafka.errors import KafkaTimeoutError

from headroom.cluster.live.running import Reassignment
from headroom.operations.reassignments.running import read_reassignments
from headroom.schemas.config import ClusterSettings, Settings
from headroom.schemas.errors import HeadroomError
from headroom.schemas.keys import TopicPartition

NONE, NOT_AUTHORIZED, NOT_CONTROLLER, SERVER_ERROR = 0, 31, 41, -1


class FakeConnection:
    """Brokers 1 to 3: those in ``silent`` do not answer, the others with the error in ``errors``.

    Attributes:
        moving: replicas, adding and removing of (topic, partition).
        leaders: leader of (topic, partition); -1: none.
    """

    def __init__(self) -> None:
        self.moving: dict[tuple[str, int], tuple[list[int], list[int], list[int]]] = {}
        self.leaders: dict[tuple[str, int], int] = {}
        self.silent: set[int] = set()
        self.errors: dict[int, int] = {}
        self.topics_asked: list[str] = []

    def client(self) -> None:
        """Connect."""

    def close(self) -> None:
        """Close."""

    def nodes(self) -> list[int]:
        return [1, 2, 3]

    def send(self, request: Any, node: int, timeout_s: float) -> Any:
        if node in self.silent:
            raise KafkaTimeoutError(f"after {timeout_s} s")
        return getattr(self, type(request).__name__)(request, node)

    def ListPartitionReassignmentsRequest(self, request: Any, node: int) -> Any:
        assert request.topics is None, "all reassignments are asked for"
        topics = [
            Answer(
                name=topic,
                partitions=[
                    Answer(partition_index=p, replicas=all_, adding_replicas=adding, removing_replicas=removing)
                ],
            )
            for (topic, p), (all_, adding, removing) in self.moving.items()
        ]
        return Answer(error_code=self.errors.get(node, NONE), topics=topics)

    def MetadataRequest(self, request: Any, node: int) -> Any:
        names = [topic.name for topic in request.topics]
        self.topics_asked += names
        return Answer(topics=[Answer(name=name, partitions=self._partitions(name)) for name in names])

    def _partitions(self, name: str) -> list[Any]:
        return [Answer(partition_index=p, leader_id=leader) for (t, p), leader in self.leaders.items() if t == name]


@pytest.fixture
def connection(monkeypatch: pytest.MonkeyPatch) -> FakeConnection:
    fake = FakeConnection()
    monkeypatch.setattr("headroom.cluster.live.live_cluster.AdminConnection", lambda cluster: fake)
    return fake


def test_the_target_is_the_replicas_without_those_removed_in_their_order() -> None:
    # [1, 2] is moved to [3, 2]: the controller lists the target first, then the removing replicas.
    assert Reassignment(TopicPartition("t", 0), 1, (3, 2, 1), (3,), (1,)).target == (3, 2)
    assert Reassignment(TopicPartition("t", 0), 1, (1, 2, 3), (3,), ()).target == (1, 2, 3)


def test_reassignments_are_sorted_and_have_their_leaders(connection: FakeConnection) -> None:
    connection.moving = {("b", 10): ([2, 1], [], [1]), ("b", 9): ([3, 1], [3], []), ("a", 0): ([1, 2], [2], [])}
    connection.leaders = {("b", 10): 1, ("b", 9): -1, ("b", 3): 2}
    assert read_reassignments(Settings()) == [
        Reassignment(TopicPartition("a", 0), None, (1, 2), (2,), ()),
        Reassignment(TopicPartition("b", 9), None, (3, 1), (3,), ()),
        Reassignment(TopicPartition("b", 10), 1, (2, 1), (), (1,)),
    ]
    assert connection.topics_asked == ["a", "b"]


def test_without_any_reassignment_no_leader_is_asked_for(connection: FakeConnection) -> None:
    assert read_reassignments(Settings()) == []
    assert connection.topics_asked == []


def test_another_broker_is_asked_when_one_is_silent_or_not_the_controller(connection: FakeConnection) -> None:
    connection.moving, connection.silent, connection.errors = {("a", 0): ([1, 2], [2], [])}, {1}, {2: NOT_CONTROLLER}
    assert [r.name.topic for r in read_reassignments(Settings())] == ["a"]


def test_without_the_right_the_error_names_it(connection: FakeConnection) -> None:
    connection.errors = {1: NOT_AUTHORIZED}
    with pytest.raises(HeadroomError, match="Grant DESCRIBE on the cluster"):
        read_reassignments(Settings())


def test_if_no_broker_has_them_each_is_named_with_its_answer(connection: FakeConnection) -> None:
    connection.silent, connection.errors = {1, 3}, {2: NOT_CONTROLLER}
    # While no broker is the controller, all are asked again until the time is over.
    settings = Settings(cluster=ClusterSettings(request_timeout_ms=200))
    with pytest.raises(HeadroomError, match=r"broker 1: KafkaTimeoutError; broker 2: NotController.*; broker 3"):
        read_reassignments(settings)

"""Requests for preferred leader elections, with a fake admin connection."""

from __future__ import annotations

from types import SimpleNamespace as Answer
from typing import Any

import pytest
from kafka.errors import KafkaTimeoutError

from headroom.cluster.admin.elect_leaders import ElectionResults, elect_preferred
from headroom.schemas.errors import HeadroomError

NONE, TIMED_OUT, NOT_AUTHORIZED, NOT_CONTROLLER = 0, 7, 31, 41
UNAVAILABLE, NOT_NEEDED = 80, 84


class FakeConnection:
    """Brokers 1 to 3: those in ``silent`` do not answer, the others with the error in ``errors``.

    Attributes:
        asked: brokers that were asked.
        requests: what they were asked.
    """

    def __init__(self, results: dict[tuple[str, int], int] | None = None) -> None:
        self.results = results or {}
        self.silent: set[int] = set()
        self.errors: dict[int, int] = {}
        # The error that a broker gives for every partition.
        self.of_each: dict[int, int] = {}
        self.asked: list[int] = []
        self.requests: list[Any] = []

    def nodes(self) -> list[int]:
        return [1, 2, 3]

    def send(self, request: Any, node: int, timeout_s: float) -> Any:
        self.asked.append(node)
        self.requests.append(request)
        if node in self.silent:
            raise KafkaTimeoutError(f"after {timeout_s} s")
        results = [
            Answer(
                topic=topic,
                partition_result=[Answer(partition_id=partition, error_code=self.of_each.get(node, code))],
            )
            for (topic, partition), code in self.results.items()
        ]
        return Answer(API_VERSION=2, error_code=self.errors.get(node, NONE), replica_election_results=results)


def elect(connection: Any, *names: tuple[str, int]) -> ElectionResults:
    return elect_preferred(connection, names, 5.0)


def test_a_request_names_its_partitions_by_topic_and_asks_for_the_preferred() -> None:
    connection = FakeConnection({("b", 1): NONE, ("a", 3): NONE, ("a", 0): NONE})
    assert elect(connection, ("b", 1), ("a", 3), ("a", 0)).elected == (("a", 0), ("a", 3), ("b", 1))
    (request,) = connection.requests
    assert [(t.topic, t.partitions) for t in request.topic_partitions] == [("a", [0, 3]), ("b", [1])]
    assert (request.election_type, request.timeout_ms) == (0, 5000)


def test_no_partitions_are_never_asked_for() -> None:
    connection = FakeConnection()
    with pytest.raises(ValueError, match="whole cluster"):
        elect(connection)
    assert connection.requests == []


def test_not_needed_is_no_failure_and_all_else_is() -> None:
    connection = FakeConnection({("t", 0): NONE, ("t", 1): NOT_NEEDED, ("t", 2): UNAVAILABLE})
    assert elect(connection, *(("t", number) for number in range(4))) == ElectionResults(
        (("t", 0),), (("t", 1),), {("t", 2): "PREFERRED_LEADER_NOT_AVAILABLE", ("t", 3): "no answer"}
    )


def test_another_broker_is_asked_when_one_is_silent_or_not_the_controller() -> None:
    connection = FakeConnection({("t", 0): NONE})
    connection.silent, connection.errors = {1}, {2: NOT_CONTROLLER}
    assert elect(connection, ("t", 0)).elected == (("t", 0),)
    assert connection.asked == [1, 2, 3]


def test_in_zookeeper_mode_a_broker_returns_not_controller_for_each_partition() -> None:
    connection = FakeConnection({("t", 0): NONE, ("t", 1): NOT_NEEDED})
    connection.of_each = {1: NOT_CONTROLLER, 2: NOT_CONTROLLER}
    assert elect(connection, ("t", 0), ("t", 1)) == ElectionResults((("t", 0),), (("t", 1),))
    assert connection.asked == [1, 2, 3]


def test_a_missing_permission_is_named() -> None:
    connection = FakeConnection()
    connection.errors = {1: NOT_AUTHORIZED}
    with pytest.raises(HeadroomError, match="Grant ALTER on the cluster"):
        elect(connection, ("t", 0))


def test_a_request_that_no_broker_accepts_reports_every_answer() -> None:
    connection = FakeConnection()
    connection.silent, connection.errors = {1}, {2: TIMED_OUT}
    with pytest.raises(HeadroomError, match=r"broker 1: KafkaTimeoutError; broker 2: RequestTimedOutError\)"):
        elect(connection, ("t", 0))

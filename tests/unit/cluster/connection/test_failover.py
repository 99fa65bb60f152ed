"""Failover of the requests of commands: elections and configuration changes."""

from __future__ import annotations

from types import SimpleNamespace as Answer
from typing import Any

import pytest
from kafka.errors import KafkaTimeoutError

from headroom.cluster.admin.alter_configs import ConfigChange, alter_each
from headroom.cluster.admin.config_keys import LEADER_LIST, TOPIC
from headroom.cluster.admin.elect_leaders import elect_preferred
from headroom.cluster.connection.failover import BrokerFailover
from headroom.schemas.errors import HeadroomError
from headroom.schemas.keys import TopicPartition
from tests.unit.fakes.admin_connection import Clock

BROKERS = list(range(1, 11))
TIMEOUT_S = 5.0


class Hung:
    """Ten brokers, of which those in ``hung`` take a request and never answer; waiting for them moves the clock."""

    def __init__(self, clock: Clock, hung: list[int]) -> None:
        self.clock = clock
        self.hung = hung
        self.asked: list[int] = []

    def nodes(self) -> list[int]:
        return BROKERS

    def send(self, request: Any, node: int, timeout_s: float) -> Any:
        self.asked.append(node)
        if node in self.hung:
            self.clock.now_s += timeout_s
            raise KafkaTimeoutError(f"after {timeout_s} s")
        result = Answer(topic="t", partition_result=[Answer(partition_id=0, error_code=0)])
        return Answer(API_VERSION=2, error_code=0, replica_election_results=[result], responses=[Answer(error_code=0)])


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    """The clock of every failover that is made without one."""
    clock = Clock()
    monkeypatch.setattr(BrokerFailover.__init__, "__defaults__", (clock, lambda seconds: None))
    return clock


def test_ten_hung_brokers_cost_an_election_request_one_deadline_and_not_ten(clock: Clock) -> None:
    connection: Any = Hung(clock, BROKERS)
    with pytest.raises(HeadroomError, match=r"was taken by no broker \(broker 1: KafkaTimeoutError; broker 2: Kafka"):
        elect_preferred(connection, [TopicPartition("t", 0)], TIMEOUT_S)
    # Two brokers got their whole time.
    assert (connection.asked, clock.now_s) == ([1, 2], 2 * TIMEOUT_S)


def test_ten_hung_brokers_cost_a_change_of_a_topic_one_deadline_too(clock: Clock) -> None:
    connection: Any = Hung(clock, BROKERS)
    (failure,) = alter_each(connection, [ConfigChange(TOPIC, "t", {LEADER_LIST: None})], TIMEOUT_S)
    assert failure is not None
    assert (failure.reason, failure.refused, clock.now_s) == ("KafkaTimeoutError", False, 2 * TIMEOUT_S)


def test_a_broker_that_hangs_costs_its_own_time_and_the_next_one_has_as_much(clock: Clock) -> None:
    connection: Any = Hung(clock, [1])
    assert elect_preferred(connection, [TopicPartition("t", 0)], TIMEOUT_S).elected == (("t", 0),)
    assert (connection.asked, clock.now_s) == ([1, 2], TIMEOUT_S)

"""What the library knows of kafka-python's clients."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from types import SimpleNamespace
from typing import Any

import pytest
from kafka import KafkaConsumer, TopicPartition
from kafka.errors import GroupAuthorizationFailedError
from kafka.future import Future
from kafka.producer.transaction_manager import ProducerIdAndEpoch, TransactionManager, TransactionState
from kafka.protocol.consumer.metadata import ConsumerProtocolAssignment

from headroom.routing.clients import keep_joins, renew_producer_id
from tests.support.waiting import until
from tests.unit.builders.agreements import TOPIC


def ready_manager() -> TransactionManager:
    """An idempotent producer's, which has an id."""
    manager = TransactionManager()
    manager.init_producer_id()
    manager.set_producer_id_and_epoch(ProducerIdAndEpoch(17, 0))
    manager._transition_to(TransactionState.READY)
    manager._pending_requests.clear()
    return manager


def test_a_producer_that_gave_its_id_up_asks_for_another_one() -> None:
    manager = ready_manager()
    producer = SimpleNamespace(_transaction_manager=manager)
    assert not renew_producer_id(producer)
    # As kafka-python does for an expired record that was sent before.
    manager.reset_producer_id()
    manager.init_producer_id()
    assert manager._pending_requests == [], "kafka-python asks again by itself: this is needed no more"
    assert renew_producer_id(producer)
    manager.init_producer_id()
    assert len(manager._pending_requests) == 1
    # It asks once.
    assert not renew_producer_id(producer)


def test_other_producers_are_left_alone() -> None:
    assert not renew_producer_id(SimpleNamespace(_transaction_manager=None))
    assert not renew_producer_id(SimpleNamespace())
    assert not renew_producer_id(SimpleNamespace(_transaction_manager=TransactionManager()))
    assert not renew_producer_id(SimpleNamespace(_transaction_manager=TransactionManager(transactional_id="t")))


class JoiningConsumer:
    """A consumer whose group's coordinator answers only when a test lets it."""

    def __init__(self) -> None:
        # A version spares it the search for a broker; nothing listens at the address.
        self.consumer = KafkaConsumer(
            TOPIC, bootstrap_servers="127.0.0.1:1", api_version=(3, 9), group_id="g", enable_auto_commit=False
        )
        self.requests: list[tuple[str, Future]] = []
        self.consumer._manager.send = self._send
        coordinator = self.consumer._coordinator
        coordinator.coordinator = lambda: "coordinator-1"
        # Of the one member of the group, which leads it.
        coordinator._perform_assignment = lambda *_: {}

    def _send(self, request: Any, node_id: Any = None, request_timeout_ms: Any = None) -> Future:
        future = Future()
        self.requests.append((type(request).__name__, future))
        return future

    @property
    def joins(self) -> list[Future]:
        return [future for name, future in self.requests if name == "JoinGroupRequest"]

    def answer(self, name: str, response: Any) -> None:
        """Answer the last request of a kind, and wait until that was taken in."""
        until(lambda: any(sent == name for sent, _ in self.requests), lambda: self.requests)
        future = [future for sent, future in self.requests if sent == name][-1]

        async def answer() -> None:
            future.success(response) if not isinstance(response, Exception) else future.failure(response)

        self.consumer._net.run(answer)

    def answer_join(self, protocol: str = "range") -> None:
        self.answer(
            "JoinGroupRequest",
            SimpleNamespace(
                error_code=0,
                protocol_type="consumer",
                protocol_name=protocol,
                generation_id=3,
                member_id="m",
                leader="m",
                members=[],
            ),
        )
        assignment = ConsumerProtocolAssignment(version=0, assigned_partitions=[(TOPIC, [0, 1])], user_data=b"")
        self.answer(
            "SyncGroupRequest",
            SimpleNamespace(
                error_code=0, protocol_type="consumer", protocol_name=protocol, assignment=assignment.encode()
            ),
        )
        until(lambda: self.consumer._coordinator._join_task.is_done, lambda: self.requests)

    def close(self) -> None:
        self.consumer._coordinator.coordinator = lambda: None
        self.consumer.close(autocommit=False, timeout_ms=0)


@pytest.fixture
def joining() -> Iterator[JoiningConsumer]:
    with closing(JoiningConsumer()) as joining:
        yield joining


def test_a_join_that_ends_between_two_polls_is_lost_by_kafka_python(joining: JoiningConsumer) -> None:
    joining.consumer.poll(timeout_ms=0)
    joining.answer_join()
    joining.consumer.poll(timeout_ms=0)
    assert len(joining.joins) == 2, "kafka-python keeps the join by itself: keep_joins is needed no more"
    assert joining.consumer.assignment() == set()


@pytest.mark.parametrize("timeout_ms", [0, 50])
def test_a_join_that_ends_between_two_polls_is_kept(joining: JoiningConsumer, timeout_ms: int) -> None:
    keep_joins(joining.consumer)
    joining.consumer.poll(timeout_ms=timeout_ms)
    # One that has no answer yet is continued.
    joining.consumer.poll(timeout_ms=timeout_ms)
    joining.answer_join()
    joining.consumer.poll(timeout_ms=timeout_ms)
    assert joining.consumer.assignment() == {TopicPartition(TOPIC, 0), TopicPartition(TOPIC, 1)}
    assert len(joining.joins) == 1


def test_an_error_that_comes_between_two_polls_is_raised(joining: JoiningConsumer) -> None:
    keep_joins(joining.consumer)
    joining.consumer.poll(timeout_ms=0)
    joining.answer("JoinGroupRequest", GroupAuthorizationFailedError("g"))
    until(lambda: joining.consumer._coordinator._join_task.is_done, lambda: joining.requests)
    with pytest.raises(GroupAuthorizationFailedError):
        joining.consumer.poll(timeout_ms=0)


def test_a_member_that_has_left_meanwhile_joins_again(joining: JoiningConsumer) -> None:
    keep_joins(joining.consumer)
    joining.consumer.poll(timeout_ms=0)
    joining.answer_join()
    joining.consumer._coordinator.reset_generation()
    joining.consumer.poll(timeout_ms=0)
    assert (len(joining.joins), joining.consumer.assignment()) == (2, set())


def test_consumers_that_are_not_of_kafka_python_are_left_alone() -> None:
    keep_joins(SimpleNamespace())

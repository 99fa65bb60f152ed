"""Brokers that all gave way to others, under other ids or addresses: the bootstrap servers are asked again."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
from kafka.errors import KafkaConnectionError, KafkaError, KafkaTimeoutError, NodeNotReadyError, UnknownBrokerIdError

from headroom.cluster.connection import admin_connection
from headroom.cluster.connection.admin_connection import AdminConnection
from headroom.schemas.config import ClusterSettings
from headroom.schemas.errors import HeadroomError


class Client:
    """kafka-python's client with the brokers that it knows; those of ``up`` answer.

    Attributes:
        error: error of the others.
    """

    error: type[KafkaError] = KafkaConnectionError

    def __init__(self, world: World, known: set[int]) -> None:
        self._world = world
        self._node = 0
        self.known = known
        self.closed = False
        brokers = [SimpleNamespace(node_id=node) for node in sorted(known)]
        cluster = SimpleNamespace(brokers=lambda: brokers, request_update=lambda: None)
        self._manager = SimpleNamespace(run=self._run, cluster=cluster)

    def _run(self, exchange: Any) -> str:
        if not self.known & self._world.up:
            raise Client.error
        return "answer"

    def close(self) -> None:
        self.closed = True


class World:
    """A cluster, and the clients that were connected to it.

    Attributes:
        up: ids of its brokers.
        now_s: monotonic seconds.
        clients: in the order of their connection.
    """

    def __init__(self) -> None:
        self.up = {1, 2}
        self.now_s = 0.0
        self.clients: list[Client] = []

    def connect(self, kafka: ClusterSettings) -> Client:
        if not self.up:
            raise HeadroomError("cluster", "no broker could be reached", "Look.")
        self.clients.append(Client(self, set(self.up)))
        return self.clients[-1]

    def monotonic(self) -> float:
        return self.now_s


@pytest.fixture
def world(monkeypatch: pytest.MonkeyPatch) -> World:
    world = World()
    monkeypatch.setattr(admin_connection, "_connect", world.connect)
    monkeypatch.setattr(admin_connection, "time", world)
    monkeypatch.setattr(Client, "error", KafkaConnectionError)
    return world


def fails(connection: AdminConnection) -> None:
    with pytest.raises(KafkaError):
        connection.send(None, 1, 1.0)
    if connection._connecting is not None:
        connection._connecting.exception(60.0)


@pytest.mark.parametrize("error", [KafkaConnectionError, KafkaTimeoutError, NodeNotReadyError, UnknownBrokerIdError])
def test_after_a_minute_without_an_answer_the_new_brokers_are_found(
    world: World, monkeypatch: pytest.MonkeyPatch, error: type[KafkaError]
) -> None:
    monkeypatch.setattr(Client, "error", error)
    connection = AdminConnection(ClusterSettings("b:1"))
    assert connection.send(None, 1, 1.0) == "answer"
    # No request for long is no silence of the brokers.
    world.now_s, world.up = 1000.0, {3, 4}
    fails(connection)
    world.now_s += 59.0
    fails(connection)
    assert len(world.clients) == 1
    world.now_s += 1.0
    fails(connection)
    assert [client.closed for client in world.clients] == [True, False]
    assert sorted(connection.nodes()) == [3, 4]
    assert connection.send(None, 3, 1.0) == "answer"


def test_while_no_broker_is_up_the_known_ones_stay_and_are_used_once_they_are_back(world: World) -> None:
    connection = AdminConnection(ClusterSettings("b:1"))
    assert connection.send(None, 1, 1.0) == "answer"
    world.up = set()
    for world.now_s in (0.0, 60.0, 61.0, 120.0):
        fails(connection)
    world.up = {1, 2}
    assert connection.send(None, 1, 1.0) == "answer"
    assert [client.closed for client in world.clients] == [False]
    # The next silence counts from its own first request.
    world.up, world.now_s = {3}, 500.0
    fails(connection)
    assert len(world.clients) == 1


@pytest.mark.parametrize("closed", [True, False])
def test_a_client_that_comes_too_late_is_closed(world: World, monkeypatch: pytest.MonkeyPatch, closed: bool) -> None:
    connection = AdminConnection(ClusterSettings("b:1"))
    assert connection.send(None, 1, 1.0) == "answer"

    def connect(kafka: ClusterSettings) -> Client:
        if closed:
            connection.close()
        else:
            assert connection.send(None, 1, 1.0) == "answer"
        return world.connect(kafka)

    world.up = {3}
    fails(connection)
    world.now_s = 60.0
    monkeypatch.setattr(admin_connection, "_connect", connect)
    world.up = {1, 3}
    connection._connect_again_if_silent(connection.client())
    assert connection._connecting is not None
    assert connection._connecting.exception(60.0) is None
    assert [client.closed for client in world.clients] == [closed, True]

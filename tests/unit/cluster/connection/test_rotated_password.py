"""A password that changes while a connection is kept: it is read again, and a refusal is explained."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from kafka.errors import KafkaTimeoutError, SaslAuthenticationFailedError

from cluster.connection import admin_connection
from cluster.connection.admin_connection import AdminConnection
from cluster.connection.failover import BrokerFailover, MetadataError
from cluster.connection.refusal import why_refused
from schemas.config import ClusterSettings, SecurityProtocol
from tests.unit.fakes.kafka_listeners import Listener, listening

REFUSED = SaslAuthenticationFailedError("Invalid username or password")


def settings_of(file: Path, servers: str = "b:1") -> ClusterSettings:
    return ClusterSettings(servers, SecurityProtocol.SASL_PLAINTEXT, "PLAIN", "headroom", sasl_password_file=str(file))


class Client:
    """kafka-python's client as far as a connection uses it: brokers accept the password ``accepted``."""

    accepted = "old"

    def __init__(self, password: str) -> None:
        self.config = {"sasl_plain_password": password}
        self.closed = False
        self._manager = SimpleNamespace(
            run=self._run, _auth_failures={1: REFUSED}, cluster=SimpleNamespace(brokers=list)
        )

    def _run(self, exchange: Any) -> str:
        if self.closed or self.config["sasl_plain_password"] != Client.accepted:
            raise REFUSED
        return "answer"

    def close(self) -> None:
        self.closed = True


@pytest.fixture
def clients(monkeypatch: pytest.MonkeyPatch) -> list[Client]:
    """The clients that are made, each with the password of that time; brokers accept the first one to begin with."""
    made: list[Client] = []

    def connect(kafka: ClusterSettings) -> Client:
        made.append(Client(admin_connection.sasl_password(kafka) or ""))
        return made[-1]

    monkeypatch.setattr(admin_connection, "_connect", connect)
    monkeypatch.setattr(Client, "accepted", "old")
    return made


def test_a_password_that_was_changed_in_its_file_is_used_for_the_next_request(
    tmp_path: Path, clients: list[Client], caplog: pytest.LogCaptureFixture
) -> None:
    file = tmp_path / "password"
    file.write_text("old")
    connection = AdminConnection(settings_of(file))
    assert connection.send(None, 1, 1.0) == "answer"
    Client.accepted = "new"
    file.write_text("new")
    with pytest.raises(SaslAuthenticationFailedError):
        connection.send(None, 1, 1.0)
    assert connection.send(None, 1, 1.0) == "answer"
    assert [client.closed for client in clients] == [True, False]
    assert caplog.messages == [
        "cluster.bootstrap_servers b:1 refuses the password, which has been changed: it is read again"
    ]


def test_a_broker_that_refuses_an_unchanged_password_is_asked_again_by_the_same_client(
    tmp_path: Path, clients: list[Client]
) -> None:
    file = tmp_path / "password"
    file.write_text("old")
    connection = AdminConnection(settings_of(file))
    Client.accepted = "new"
    for _ in range(2):
        with pytest.raises(SaslAuthenticationFailedError):
            connection.send(None, 1, 1.0)
    assert [client.closed for client in clients] == [False]
    assert clients[0]._manager._auth_failures == {}


class Brokers:
    """Connection to two brokers, each of which fails in its own way."""

    def __init__(self, *errors: Exception) -> None:
        self.forwarding = self
        self._errors = errors
        self.closed = 0

    def nodes(self) -> list[int]:
        return list(range(1, len(self._errors) + 1))

    def send(self, request: Any, node: int, timeout_s: float) -> Any:
        raise self._errors[node - 1]

    def close(self) -> None:
        self.closed += 1


@pytest.mark.parametrize(
    ("errors", "closed"),
    [((REFUSED, REFUSED), 1), ((REFUSED, KafkaTimeoutError()), 0), ((KafkaTimeoutError(),) * 2, 0)],
)
def test_where_all_brokers_refuse_the_next_request_connects_again_and_names_the_reason(
    errors: tuple[Exception, ...], closed: int
) -> None:
    brokers: Any = Brokers(*errors)
    with pytest.raises(MetadataError):
        BrokerFailover(brokers, 1.0).send_to_any("topics", None)
    assert brokers.closed == closed


@pytest.mark.parametrize("by_file", [True, False])
def test_a_refusal_says_when_a_new_password_counts(tmp_path: Path, by_file: bool) -> None:
    file = tmp_path / "password"
    file.write_text("wrong")
    with listening(Listener({"headroom": "right"})) as server:
        kafka = settings_of(file, server)
        if not by_file:
            kafka = ClusterSettings(server, SecurityProtocol.SASL_PLAINTEXT, "PLAIN", "headroom", "wrong")
        options = admin_connection.connection_options(kafka)
        found = why_refused(kafka, options, [server], "cluster")
    assert found is not None
    assert (f"A new password in {file} is read at the next try" in found.remedy) == by_file

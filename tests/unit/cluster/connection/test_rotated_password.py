"""A password that changes while a connection is kept: it is read again, and a refusal is explained."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from kafka.errors import KafkaConnectionError, KafkaError, KafkaTimeoutError, SaslAuthenticationFailedError

from headroom.cluster.connection import admin_connection, refusal
from headroom.cluster.connection.admin_connection import AdminConnection
from headroom.cluster.connection.refusal import why_refused
from headroom.schemas.config import ClusterSettings, SecurityProtocol
from tests.unit.fakes.kafka_listeners import Listener, listening

DISCONNECTED = KafkaConnectionError("socket disconnected")
REFUSED = SaslAuthenticationFailedError("Invalid username or password")


@pytest.fixture(autouse=True)
def _patient(monkeypatch: pytest.MonkeyPatch) -> None:
    # Listeners of these tests answer at once, but for a busy machine.
    monkeypatch.setattr(refusal, "TIMEOUT_S", 60.0)


def settings_of(file: Path, servers: str = "b:1") -> ClusterSettings:
    return ClusterSettings(servers, SecurityProtocol.SASL_PLAINTEXT, "PLAIN", "headroom", sasl_password_file=str(file))


class Client:
    """kafka-python's client as far as a connection uses it: brokers accept the password ``accepted``."""

    accepted = "old"
    # kafka-python reports some refusals as such, and others as a lost connection.
    error: Exception = REFUSED

    def __init__(self, password: str) -> None:
        self.config = {"sasl_plain_password": password}
        self.closed = False
        brokers = [SimpleNamespace(node_id=node) for node in (1, 2)]
        cluster = SimpleNamespace(brokers=lambda: brokers)
        self._manager = SimpleNamespace(run=self._run, _auth_failures={1: REFUSED}, cluster=cluster)

    def _run(self, exchange: Any) -> str:
        if self.closed or self.config["sasl_plain_password"] != Client.accepted:
            raise Client.error
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


@pytest.mark.parametrize("error", [REFUSED, DISCONNECTED])
def test_a_password_that_was_changed_in_its_file_is_used_for_the_next_request(
    tmp_path: Path,
    clients: list[Client],
    caplog: pytest.LogCaptureFixture,
    monkeypatch: pytest.MonkeyPatch,
    error: KafkaError,
) -> None:
    file = tmp_path / "password"
    file.write_text("old")
    connection = AdminConnection(settings_of(file))
    assert connection.send(None, 1, 1.0) == "answer"
    monkeypatch.setattr(Client, "accepted", "new")
    monkeypatch.setattr(Client, "error", error)
    file.write_text("new")
    with pytest.raises(type(error)):
        connection.send(None, 1, 1.0)
    assert connection.send(None, 1, 1.0) == "answer"
    assert [client.closed for client in clients] == [True, False]
    (line,) = caplog.messages
    assert line == "cluster.bootstrap_servers b:1: the password has been changed, and is read again"


@pytest.mark.parametrize(
    ("error", "nodes", "closed"),
    [
        # One broker of two: the client stays, and asks it again.
        (REFUSED, [1, 1], False),
        (DISCONNECTED, [1, 1], False),
        # All of them: the next request connects again, which gives the reason.
        (DISCONNECTED, [1, 2], True),
        (REFUSED, [1, 2], True),
        (KafkaTimeoutError(), [1, 2], False),
    ],
)
def test_an_unchanged_password_is_tried_by_a_new_client_once_all_brokers_have_ended_the_connection(
    tmp_path: Path,
    clients: list[Client],
    monkeypatch: pytest.MonkeyPatch,
    error: KafkaError,
    nodes: list[int],
    closed: bool,
) -> None:
    file = tmp_path / "password"
    file.write_text("old")
    connection = AdminConnection(settings_of(file))
    monkeypatch.setattr(Client, "accepted", "new")
    monkeypatch.setattr(Client, "error", error)
    for node in nodes:
        with pytest.raises(type(error)):
            connection.send(None, node, 1.0)
    assert [client.closed for client in clients] == [closed]
    assert (1 in clients[0]._manager._auth_failures) == isinstance(error, KafkaTimeoutError)


def test_without_a_password_a_lost_connection_changes_nothing(
    clients: list[Client], monkeypatch: pytest.MonkeyPatch
) -> None:
    connection = AdminConnection(ClusterSettings("b:1"))
    monkeypatch.setattr(Client, "error", DISCONNECTED)
    for node in (1, 2):
        with pytest.raises(KafkaConnectionError):
            connection.send(None, node, 1.0)
    assert [client.closed for client in clients] == [False]


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

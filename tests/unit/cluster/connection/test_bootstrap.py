"""Connecting by whichever bootstrap server answers first; servers are played by functions."""

from __future__ import annotations

import threading
from collections.abc import Iterator

import pytest
from kafka.errors import KafkaTimeoutError, SaslAuthenticationFailedError

from headroom.cluster.connection.bootstrap import connect_to_first
from tests.support.waiting import until

# Ample for a busy machine: no test waits this long unless it fails.
LONG_S = 60.0


class Servers:
    """Connects to servers: ``hangs`` answers when the test releases it, ``refuses`` refuses every connection."""

    def __init__(self) -> None:
        self.tried: list[str] = []
        self.discarded: list[str] = []
        self.late = threading.Event()
        self.was_discarded = threading.Event()

    def connect(self, server: str) -> str:
        self.tried.append(server)
        if server.startswith("hangs"):
            self.late.wait(LONG_S)
        if server.startswith("refuses"):
            raise SaslAuthenticationFailedError(server)
        if server.startswith("silent"):
            raise KafkaTimeoutError(server)
        return server

    def discard(self, client: str) -> None:
        self.discarded.append(client)
        self.was_discarded.set()

    def first(self, *names: str, timeout_s: float = LONG_S) -> str:
        return connect_to_first(names, self.connect, self.discard, timeout_s)


@pytest.fixture
def servers(monkeypatch: pytest.MonkeyPatch) -> Iterator[Servers]:
    monkeypatch.setattr("headroom.cluster.connection.bootstrap.random.sample", lambda items, count: list(items)[:count])
    started = Servers()
    yield started
    started.late.set()


def test_a_server_that_answers_is_the_only_one_tried(servers: Servers) -> None:
    assert servers.first("a", "b", "c") == "a"
    assert servers.tried == ["a"]


def test_servers_that_hang_are_skipped_and_discarded_when_they_answer_late(servers: Servers) -> None:
    assert servers.first("hangs", "b") == "b"
    assert servers.discarded == []
    servers.late.set()
    assert servers.was_discarded.wait(LONG_S)
    assert servers.discarded == ["hangs"]


def test_a_refusal_sends_on_to_the_next_server(servers: Servers) -> None:
    assert servers.first("refuses", "b") == "b"


def test_when_all_fail_the_refusal_is_reported_rather_than_the_timeout(servers: Servers) -> None:
    with pytest.raises(SaslAuthenticationFailedError):
        servers.first("silent", "refuses", "silent too")


def test_when_all_hang_the_wait_ends_in_time_and_none_is_left_open(servers: Servers) -> None:
    with pytest.raises(KafkaTimeoutError, match="no bootstrap server answered"):
        servers.first("hangs", "hangs too", timeout_s=0.3)
    # The thread of the second may begin after the wait.
    until(lambda: servers.tried == ["hangs", "hangs too"], lambda: servers.tried)
    servers.late.set()
    assert servers.was_discarded.wait(LONG_S)

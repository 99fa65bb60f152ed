"""The HTTP server under clients that send nothing, send slowly, or do not read."""

from __future__ import annotations

import contextlib
import logging
import select
import socket
import threading
import time
import urllib.request
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from http.server import BaseHTTPRequestHandler

import pytest

from headroom.cli.watch.bounded_server import BoundedServer
from tests.unit.alerts.delivery.test_outbox import until

MOST, DEADLINE_S = 8, 1.0


class Handler(BaseHTTPRequestHandler):
    """Responds at once; on ``/large`` with more than the socket buffers hold, on ``/broken`` not at all."""

    def do_GET(self) -> None:
        if self.path == "/broken":
            raise ValueError("of the handler")
        self.send_response(200)
        self.end_headers()
        self.wfile.write(b"x" * (50_000_000 if self.path == "/large" else 2))

    def log_message(self, format: str, *args: object) -> None:
        pass


@contextmanager
def serving(most: int = MOST, deadline_s: float = DEADLINE_S) -> Iterator[BoundedServer]:
    server = BoundedServer("127.0.0.1", 0, Handler, most, deadline_s)
    thread = threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True)
    thread.start()
    try:
        yield server
    finally:
        server.shutdown()
        server.server_close()
        thread.join(10)


def connection(server: BoundedServer, text: bytes = b"") -> socket.socket:
    made = socket.create_connection(("127.0.0.1", server.server_address[1]), 10)
    made.sendall(text)
    return made


def ended(client: socket.socket) -> bool:
    """Return whether the server has closed a connection without a response."""
    if not select.select([client], [], [], 0)[0]:
        return False
    with contextlib.suppress(ConnectionError):
        return client.recv(1) == b""
    return True


def answered(server: BoundedServer) -> bytes:
    with urllib.request.urlopen(f"http://127.0.0.1:{server.server_address[1]}/", timeout=10) as answer:
        return bytes(answer.read())


def test_of_too_many_connections_the_oldest_end_and_a_scrape_is_answered() -> None:
    with serving(deadline_s=60) as server, ExitStack() as open_ones:
        idle = [open_ones.enter_context(connection(server, b"GET / HTTP/1.1\r\n")) for _ in range(5 * MOST)]
        # All but the last eight, and one more for the scrape.
        assert answered(server) == b"xx"
        until(lambda: sum(map(ended, idle)) > 4 * MOST, lambda: sum(map(ended, idle)))
        assert not ended(idle[-1])


@pytest.mark.parametrize("text", [b"", b"GET / HTTP/1.1\r\n", b"GET /large HTTP/1.1\r\n\r\n"])
def test_a_connection_ends_at_its_deadline(text: bytes) -> None:
    """Its client sends nothing, sends part of a request, or does not read the response."""
    # Servers of other tests may still have connections.
    others = _handlers()
    # Its handler lives long enough to be seen.
    with serving(deadline_s=3.0) as server, connection(server, text):
        until(lambda: bool(_handlers() - others), _handlers)
        began_s = time.monotonic()
        until(lambda: not _handlers() - others, _handlers, 60.0)
        assert time.monotonic() - began_s < 3.0 + 60


def test_a_request_that_drips_ends_at_its_deadline() -> None:
    with serving() as server, connection(server, b"GET / HTTP/1.1\r\n") as client:
        began_s = time.monotonic()
        with contextlib.suppress(ConnectionError):
            # Each header arrives before a timeout that restarts with every header.
            while time.monotonic() - began_s < DEADLINE_S + 60 and not ended(client):
                client.sendall(b"X: y\r\n")
                time.sleep(0.05)
        assert time.monotonic() - began_s < DEADLINE_S + 60


def test_errors_are_logged_once_a_minute_and_without_a_traceback(caplog: pytest.LogCaptureFixture) -> None:
    with serving() as server, caplog.at_level(logging.WARNING):
        for _ in range(3):
            with connection(server, b"GET /broken HTTP/1.1\r\n\r\n") as client:
                assert client.recv(1) == b""
        assert answered(server) == b"xx"
    assert [(record.getMessage()[:47], record.exc_info) for record in caplog.records] == [
        ("a request could not be answered (ValueError); f", None)
    ]


def _handlers() -> set[threading.Thread]:
    return {thread for thread in threading.enumerate() if "process_request_thread" in thread.name}

"""A local HTTP server in the place of an agent, which answers as well or as badly as a test wants."""

from __future__ import annotations

import ssl
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

ElectionResults = Callable[["Agent"], None]


class Agent(BaseHTTPRequestHandler):
    """One connection to the agent; ``asked`` has path and headers of every request, ``connections`` counts them."""

    protocol_version = "HTTP/1.1"
    # Each write is a packet, as a test that trickles or cuts means it.
    wbufsize = 0

    def do_GET(self) -> None:
        """Answer as the test wants it."""
        server = self.server
        assert isinstance(server, AgentServer)
        server.asked.append((self.path, dict(self.headers)))
        server.answers(self)

    def do_POST(self) -> None:
        """Answer as the test wants it, once the question is read."""
        self.body = self.rfile.read(int(self.headers["Content-Length"]))
        self.do_GET()

    def setup(self) -> None:
        """Count the connection."""
        assert isinstance(self.server, AgentServer)
        self.server.connections += 1
        super().setup()

    def respond(self, body: bytes, status: int = 200, length: int | None = None) -> None:
        """Answer with a body; ``length`` is the Content-Length header, None for the real length."""
        self.send_response(status)
        self.send_header("Content-Length", str(len(body) if length is None else length))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:
        """Keep the test's output clean."""


class AgentServer(ThreadingHTTPServer):
    """The agent's server on a free port.

    Attributes:
        asked: path and headers of each request so far.
        connections: how many were made.
    """

    daemon_threads = True

    def __init__(self, answers: ElectionResults, tls: ssl.SSLContext | None) -> None:
        super().__init__(("127.0.0.1", 0), Agent)
        self.answers = answers
        self.asked: list[tuple[str, dict[str, str]]] = []
        self.connections = 0
        if tls is not None:
            self.socket = tls.wrap_socket(self.socket, server_side=True)

    @property
    def endpoint(self) -> str:
        """Return ``host:port``."""
        return f"127.0.0.1:{self.server_port}"

    def handle_error(self, request: object, client_address: object) -> None:
        """Ignore errors of clients that disconnected, which some tests provoke."""


@contextmanager
def agent(answers: ElectionResults, tls: ssl.SSLContext | None = None) -> Iterator[AgentServer]:
    """Run an agent for the length of the block."""
    server = AgentServer(answers, tls)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
    thread.start()
    try:
        yield server
    finally:
        server.shutdown()
        server.server_close()
        thread.join(5)


def saying(body: bytes, status: int = 200) -> ElectionResults:
    """Return a behaviour that answers with a body."""
    return lambda connection: connection.respond(body, status)

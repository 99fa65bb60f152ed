"""Local servers with invalid answers, which a test writes byte by byte."""

from __future__ import annotations

import contextlib
import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

# Is given a connection and the request that came by it.
Handler = Callable[[socket.socket, bytes], None]

OK = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n"


class BadServer:
    """Takes connections and lets the handler write to each.

    Args:
        handler: writes the answer; the connection is closed afterwards.
        reads: whether the request is read first.

    Attributes:
        requests: what was asked, as it came; empty where it is not read.
    """

    def __init__(self, handler: Handler, reads: bool = True) -> None:
        self._listening = socket.create_server(("127.0.0.1", 0))
        self._handler = handler
        self._reads = reads
        self.requests: list[bytes] = []
        self.port = self._listening.getsockname()[1]
        self._accepting = threading.Thread(target=self._accept, daemon=True)
        self._accepting.start()

    def _accept(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                connection, _ = self._listening.accept()
                threading.Thread(target=self._serve, args=(connection,), daemon=True).start()

    def _serve(self, connection: socket.socket) -> None:
        # A client that has given up ends the handler.
        with connection, contextlib.suppress(OSError):
            request = _request(connection) if self._reads else b""
            self.requests.append(request)
            self._handler(connection, request)

    def close(self) -> None:
        end_accepting(self._listening, self._accepting)
        self._listening.close()


def end_accepting(listening: socket.socket, accepting: threading.Thread) -> None:
    """End the thread that accepts connections of a socket, before the socket is closed.

    Otherwise the thread may go on with the socket that has got the same number since, and answer in another's place.
    """
    with contextlib.suppress(OSError):
        listening.shutdown(socket.SHUT_RDWR)
    accepting.join(10)


def _request(connection: socket.socket) -> bytes:
    data = b""
    while b"\r\n\r\n" not in data:
        data += _received(connection)
    head, _, body = data.partition(b"\r\n\r\n")
    lengths = [line.split(b":")[1] for line in head.split(b"\r\n") if line.lower().startswith(b"content-length:")]
    while len(body) < int(lengths[0] if lengths else 0):
        body += _received(connection)
    return head + b"\r\n\r\n" + body


def _received(connection: socket.socket) -> bytes:
    """Return the received bytes; stops when the client disconnects in the middle of a request."""
    data = connection.recv(65536)
    if not data:
        raise ConnectionError("the client has gone")
    return data


@contextmanager
def bad_server(handler: Handler, reads: bool = True) -> Iterator[BadServer]:
    """Run such a server for the duration of the block."""
    server = BadServer(handler, reads)
    try:
        yield server
    finally:
        server.close()


def saying(answer: bytes) -> Handler:
    """Return a handler that writes an answer."""
    return lambda connection, _: connection.sendall(answer)


def dripping(first: bytes, piece: bytes, every_s: float = 0.05) -> Handler:
    """Return a handler that writes a start, then repeats a chunk until the client disconnects."""

    def drip(connection: socket.socket, _: bytes) -> None:
        connection.sendall(first)
        while True:
            connection.sendall(piece)
            time.sleep(every_s)

    return drip


def flooding(first: bytes, piece: bytes) -> Handler:
    """Return a handler that writes something, and then a piece without an end, as fast as it is read."""
    return dripping(first, piece, 0.0)


def echoing(status: str = "200 OK") -> Handler:
    """Return a handler that repeats the whole request in its answer."""

    def echo(connection: socket.socket, request: bytes) -> None:
        connection.sendall(f"HTTP/1.1 {status}\r\nContent-Length: {len(request)}\r\n\r\n".encode() + request)

    return echo

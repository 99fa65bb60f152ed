"""A server on 127.0.0.1 that answers each request with whatever bytes it was given last."""

from __future__ import annotations

import socket
import threading
from contextlib import suppress
from types import TracebackType

_PIECE_BYTES = 1 << 16
_PATIENCE_S = 2.0
OK = b"HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n"


class AnyAnswer:
    """The server; it serves one connection at a time and closes each after its answer.

    Attributes:
        says: what it answers, status line and all.
        port: where it listens.
    """

    def __init__(self) -> None:
        self.says = b""
        self._socket = socket.create_server(("127.0.0.1", 0))
        self.port = int(self._socket.getsockname()[1])
        self._thread = threading.Thread(target=self._serve, name="any answer", daemon=True)

    def __enter__(self) -> AnyAnswer:
        """Return this server, listening."""
        self._thread.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        """Stop."""
        self._socket.close()

    def _serve(self) -> None:
        while True:
            try:
                connection, _ = self._socket.accept()
            except OSError:
                return
            with connection, suppress(OSError):
                connection.settimeout(_PATIENCE_S)
                _read_request(connection)
                connection.sendall(self.says)
                connection.shutdown(socket.SHUT_WR)


def _read_request(connection: socket.socket) -> None:
    said = b""
    while b"\r\n\r\n" not in said:
        piece = connection.recv(_PIECE_BYTES)
        if not piece:
            return
        said += piece
    head, _, body = said.partition(b"\r\n\r\n")
    lengths = [line.split(b":")[1] for line in head.lower().split(b"\r\n") if line.startswith(b"content-length:")]
    left = int(lengths[0]) - len(body) if lengths else 0
    while left > 0 and (piece := connection.recv(_PIECE_BYTES)):
        left -= len(piece)

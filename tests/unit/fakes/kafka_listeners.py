"""Listeners that speak the first requests of Kafka's protocol, with TLS and SASL or without, on this machine."""

from __future__ import annotations

import contextlib
import socket
import ssl
import struct
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field

from tests.unit.fakes.bad_servers import end_accepting

_SASL_HANDSHAKE = 17


@dataclass
class Listener:
    """One listener.

    Attributes:
        users: user and password that it accepts by PLAIN; None: it does not use SASL.
        mechanisms: those that it offers.
        tls: context of its TLS; None: without.
        refusal: what it answers to a wrong password; None: it ends the connection.
        tokens: what came as a token of SASL so far.
    """

    users: Mapping[str, str] | None = None
    mechanisms: tuple[str, ...] = ("PLAIN",)
    tls: ssl.SSLContext | None = None
    refusal: str | None = "Invalid username or password"
    tokens: list[bytes] = field(default_factory=list)

    def serve(self, connection: socket.socket) -> None:
        """Answer until the client disconnects, or sends a request that this listener does not understand."""
        # As a broker does with bytes that are no request of Kafka's: it ends the connection.
        with contextlib.suppress(OSError, struct.error, ValueError), connection:
            spoken = _secured(connection, self.tls) if self.tls else connection
            with spoken:
                while (answer := self._answer(*_request(spoken))) is not None:
                    spoken.sendall(struct.pack(">ii", len(answer) + 4, 1) + answer)

    def _answer(self, key: int, body: bytes) -> bytes | None:
        if key == _SASL_HANDSHAKE:
            if self.users is None:
                return struct.pack(">hi", 34, 0)
            offered = b"".join(map(_text, self.mechanisms))
            asked = body[2:].decode()
            return struct.pack(">hi", 0 if asked in self.mechanisms else 33, len(self.mechanisms)) + offered
        self.tokens.append(body[4:])
        _, user, password = body[4:].decode().split("\0")
        if (self.users or {}).get(user) == password:
            return struct.pack(">hhi", 0, -1, 0)
        return None if self.refusal is None else struct.pack(">h", 58) + _text(self.refusal) + struct.pack(">i", 0)


def _secured(connection: socket.socket, tls: ssl.SSLContext) -> ssl.SSLSocket:
    secured = tls.wrap_socket(connection, server_side=True, do_handshake_on_connect=False)
    try:
        secured.do_handshake()
    except ssl.SSLError as error:
        # The alert on its certificate would be lost if what the client has sent meanwhile stayed unread.
        while "CERTIFICATE" in (error.reason or "") and socket.socket.recv(secured, 65536):
            pass
        raise
    return secured


def _text(text: str) -> bytes:
    return struct.pack(">h", len(text.encode())) + text.encode()


def _request(connection: socket.socket) -> tuple[int, bytes]:
    (length,) = struct.unpack(">i", _read(connection, 4))
    # socket.request.max.bytes is 100 MB; TLS begins with what would be a request of 352 MB.
    if not 0 < length < 100_000_000:
        raise ValueError(length)
    data = _read(connection, length)
    key, _, _, client = struct.unpack_from(">hhih", data)
    return key, data[10 + client :]


def _read(connection: socket.socket, count: int) -> bytes:
    data = b""
    while len(data) < count:
        piece = connection.recv(count - len(data))
        if not piece:
            raise ValueError("ended")
        data += piece
    return data


@contextmanager
def listening(listener: Listener) -> Iterator[str]:
    """Run a listener for the length of the block, at the ``host:port`` given."""
    with socket.create_server(("127.0.0.1", 0)) as server:

        def accept() -> None:
            with contextlib.suppress(OSError):
                while True:
                    threading.Thread(target=listener.serve, args=(server.accept()[0],), daemon=True).start()

        accepting = threading.Thread(target=accept, daemon=True)
        accepting.start()
        try:
            yield f"127.0.0.1:{server.getsockname()[1]}"
        finally:
            end_accepting(server, accepting)

"""The first requests of a broker connection on a bare socket, to diagnose why a client cannot connect.

kafka-python discards the reason why a broker closed the connection: a wrong password and a TLS port both appear as a
disconnected socket.
"""

from __future__ import annotations

import socket
import ssl
import struct
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

_CLIENT_ID = b"headroom"
# API keys of Kafka's protocol.
_SASL_HANDSHAKE, _SASL_AUTHENTICATE = 17, 36
# Answers to these requests have some hundred bytes; a longer one is not from a Kafka broker.
_MOST_BYTES = 1_000_000


class SilentServerError(TimeoutError):
    """The server took the connection, and did not answer in time."""


class NoKafkaError(OSError):
    """The server does not speak Kafka's protocol, or closed the connection instead of answering."""


@dataclass(frozen=True)
class Offer:
    """A listener's answer to ``SaslHandshake``.

    Attributes:
        sasl: whether the listener uses SASL at all.
        accepted: whether it accepts the requested mechanism.
        mechanisms: the mechanisms that it offers.
    """

    sasl: bool
    accepted: bool
    mechanisms: tuple[str, ...]


class Wire:
    """A connection to a broker for one request at a time.

    Args:
        connection: connected socket, TLS or not.
        deadline_s: deadline for all answers, monotonic seconds.
    """

    def __init__(self, connection: socket.socket, deadline_s: float) -> None:
        self._connection = connection
        self._deadline_s = deadline_s

    def offer(self, mechanism: str) -> Offer:
        """Return the listener's answer to ``SaslHandshake``.

        Raises:
            OSError: it did not answer; NoKafkaError: it ended the connection, or is no Kafka broker.
        """
        name = mechanism.encode()
        answer = self._ask(_SASL_HANDSHAKE, 1, struct.pack(">h", len(name)) + name)
        code, count = struct.unpack_from(">hi", answer)
        names, at = [], 6
        for _ in range(count):
            offered, at = _read_text(answer, at)
            names.append(offered)
        # 33 is UNSUPPORTED_SASL_MECHANISM, 34 ILLEGAL_SASL_STATE: a listener without SASL.
        return Offer(code != 34, code == 0, tuple(names))

    def authenticate(self, token: bytes) -> tuple[str | None, bytes]:
        """Send a SASL token; return the reason for a refusal (None if accepted) and the broker's token.

        Raises:
            OSError: it did not answer; NoKafkaError: it ended the connection.
        """
        answer = self._ask(_SASL_AUTHENTICATE, 0, struct.pack(">i", len(token)) + token)
        (code,) = struct.unpack_from(">h", answer)
        message, at = _read_text(answer, 2)
        (length,) = struct.unpack_from(">i", answer, at)
        return (message or f"error {code}") if code else None, answer[at + 4 : at + 4 + max(0, length)]

    def _ask(self, key: int, version: int, body: bytes) -> bytes:
        head = struct.pack(">hhih", key, version, 1, len(_CLIENT_ID)) + _CLIENT_ID
        self._connection.settimeout(self._left_s())
        self._connection.sendall(struct.pack(">i", len(head) + len(body)) + head + body)
        length, correlation = struct.unpack(">ii", self._read(8))
        if not 4 <= length <= _MOST_BYTES or correlation != 1:
            raise NoKafkaError("no answer of Kafka's")
        answer = self._read(length - 4)
        if len(answer) < 6:
            raise NoKafkaError("no answer of Kafka's")
        return answer

    def _read(self, count: int) -> bytes:
        data = b""
        while len(data) < count:
            self._connection.settimeout(self._left_s())
            piece = self._connection.recv(count - len(data))
            if not piece:
                raise NoKafkaError("the connection was ended")
            data += piece
        return data

    def _left_s(self) -> float:
        left_s = self._deadline_s - time.monotonic()
        if left_s <= 0:
            raise TimeoutError
        return left_s


@contextmanager
def wire(host: str, port: int, tls: ssl.SSLContext | None, timeout_s: float) -> Iterator[Wire]:
    """Yield a connection to a listener.

    Args:
        host: name or address.
        port: port.
        tls: TLS context; None: without TLS.
        timeout_s: longest time for all requests together, seconds.

    Raises:
        OSError: it cannot be reached, or TLS fails; SilentServerError: it took the connection, and did not answer.
    """
    deadline_s = time.monotonic() + timeout_s
    with socket.create_connection((host, port), timeout_s) as plain:
        try:
            if tls is None:
                yield Wire(plain, deadline_s)
                return
            with tls.wrap_socket(plain, server_hostname=host.rstrip(".")) as secured:
                yield Wire(secured, deadline_s)
        except TimeoutError:
            raise SilentServerError from None


def _read_text(data: bytes, at: int) -> tuple[str, int]:
    try:
        (length,) = struct.unpack_from(">h", data, at)
    except struct.error:
        raise NoKafkaError("no answer of Kafka's") from None
    end = at + 2 + max(0, length)
    return data[at + 2 : end].decode("utf-8", "replace"), end

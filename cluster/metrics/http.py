"""HTTP client for brokers' agents: kept connections, one deadline and one size limit per answer.

It is Python's own client with bounded socket waits. Usually a timeout applies to each chunk that arrives, so an agent
that trickles its answer never times out.
"""

from __future__ import annotations

import base64
import io
import socket
import ssl
import time
from collections.abc import Callable, Mapping
from functools import partial
from http.client import HTTPConnection, HTTPException, HTTPResponse, HTTPSConnection, IncompleteRead
from typing import Any, NamedTuple

from headroom.cluster.metrics.source import HANGS, MetricsError
from headroom.cluster.secrets import secret
from headroom.schemas.config import CollectSettings
from headroom.schemas.errors import HeadroomError
from headroom.schemas.redaction import redact
from headroom.schemas.text import one_line

# An exporter without a filter needs 20 % of this for 10,000 replicas.
MAX_BYTES = 64_000_000
_CHUNK_BYTES = 1 << 18
# Limits of an agent's error text. The longer one applies before redaction, so that no secret is cut in two.
_MAX_SHOWN_CHARACTERS, _MAX_ERROR_CHARACTERS = 200, 4096
# Rule and remedy by HTTP status.
_REFUSED = {
    401: ("user, password or token refused", "See collect.http_username and the files of password and token."),
    403: ("access refused", "Let this machine through where the agent's access is set."),
    404: ("has nothing at this path", "Set collect.http_path to where the agent answers."),
}
# jmx_exporter until then answers 500.
_STARTING = "Wait until the time of startDelaySeconds in the exporter's file is over."
_HTTP_SSL = "See collect.http_ssl, and that collect.source is what listens there."
# Errors of a kept connection that the agent closed while it was idle.
_CLOSED = (ConnectionError, ssl.SSLEOFError, ssl.SSLZeroReturnError)


class Request(NamedTuple):
    """An HTTP request: GET if ``body`` is None, otherwise POST."""

    path: str
    body: bytes | None
    headers: Mapping[str, str]


class Response(NamedTuple):
    """An answer's body, and its time: half way from the request to the first byte, epoch milliseconds."""

    read_ms: int
    body: bytes


class Deadline:
    """Deadline for one complete read.

    Args:
        timeout_s: time from now, seconds.
    """

    def __init__(self, timeout_s: float) -> None:
        self._at_s = time.monotonic() + timeout_s

    def left_s(self) -> float:
        """Return the remaining seconds.

        Raises:
            TimeoutError: the deadline has passed.
        """
        left_s = self._at_s - time.monotonic()
        if left_s <= 0:
            raise TimeoutError
        return left_s


class HttpReader:
    """Reads from brokers' agents over one kept connection each. At most one thread at a time per broker.

    Args:
        collect: settings with user, token and TLS.
    """

    def __init__(self, collect: CollectSettings) -> None:
        self._collect = collect
        self._connections: dict[int, tuple[str, HTTPConnection]] = {}

    def ask(self, broker: int, endpoint: str, request: Request, deadline: Deadline) -> Response:
        """Return the agent's answer to a request.

        Raises:
            MetricsError: no complete and successful answer before the deadline.
            HeadroomError: a file of the settings cannot be used.
        """
        headers = {**request.headers, **self._authorization()}
        while True:
            connection = self._connection(broker, endpoint)
            reused = connection.sock is not None
            try:
                return _exchange(connection, request._replace(headers=headers), deadline)
            except (OSError, HTTPException, _HttpError) as error:
                connection.close()
                if reused and isinstance(error, _CLOSED):
                    continue
                rule, remedy = _rule_and_remedy(error)
                # Without the query of the path, which may be long.
                scheme, path = "https" if self._collect.http_ssl else "http", request.path.partition("?")[0]
                raise MetricsError(f"{scheme}://{endpoint}{path}", self.safe_line(rule), remedy) from None

    def safe_line(self, text: str) -> str:
        """Return an agent's text as one printable line of bounded length, with the sent secrets redacted."""
        authorization = self._authorization().get("Authorization", "")
        scheme, _, credentials = authorization.partition(" ")
        password = base64.b64decode(credentials).decode().partition(":")[2] if scheme == "Basic" else None
        return one_line(redact(text, [authorization, credentials, password]), _MAX_SHOWN_CHARACTERS)

    def close(self) -> None:
        """Close every connection."""
        for _, connection in self._connections.values():
            connection.close()
        self._connections.clear()

    def _connection(self, broker: int, endpoint: str) -> HTTPConnection:
        known = self._connections.get(broker)
        if known is None or known[0] != endpoint:
            if known is not None:
                known[1].close()
            known = (endpoint, self._new(endpoint))
            self._connections[broker] = known
        return known[1]

    def _new(self, endpoint: str) -> HTTPConnection:
        host, _, port = endpoint.rpartition(":")
        if not self._collect.http_ssl:
            return HTTPConnection(host.strip("[]"), int(port))
        return HTTPSConnection(host.strip("[]"), int(port), context=tls_context(self._collect))

    def _authorization(self) -> dict[str, str]:
        collect = self._collect
        token = secret(collect.http_token, collect.http_token_file, "collect.http_token_file")
        if token is not None:
            if not token.isascii() or not token.isprintable():
                raise HeadroomError(
                    "collect.http_token",
                    "has a character that no header can carry",
                    "Remove that character from the token.",
                )
            return {"Authorization": f"Bearer {token}"}
        if collect.http_username:
            password = secret(collect.http_password, collect.http_password_file, "collect.http_password_file")
            credentials = f"{collect.http_username}:{password or ''}".encode()
            return {"Authorization": f"Basic {base64.b64encode(credentials).decode()}"}
        return {}


def tls_context(collect: CollectSettings) -> ssl.SSLContext:
    """Return the TLS context for the agents, with the client certificate if one is set.

    Raises:
        HeadroomError: a file cannot be used.
    """
    try:
        context = ssl.create_default_context(cafile=collect.http_cafile)
    except OSError as error:
        raise _unusable("http_cafile", collect.http_cafile, error) from None
    context.check_hostname = collect.http_check_hostname
    if collect.http_certfile:
        try:
            # Without a password OpenSSL prompts at the terminal for that of an encrypted key.
            password = collect.http_key_password or ""
            context.load_cert_chain(collect.http_certfile, collect.http_keyfile, password)
        except OSError as error:
            raise _unusable("http_certfile", collect.http_certfile, error) from None
    return context


def _unusable(key: str, file: str | None, error: OSError) -> HeadroomError:
    reason = "it does not hold what it should, or its password is wrong" if isinstance(error, ssl.SSLError) else ""
    return HeadroomError(
        f"collect.{key}", f"cannot use {file}: {reason or error.strerror}", "Check the file and its password."
    )


class _HttpError(Exception):
    """An unusable answer: the violated rule, and a remedy."""

    def __init__(self, rule: str, remedy: str) -> None:
        self.rule = rule
        self.remedy = remedy
        super().__init__(rule)


def _exchange(connection: HTTPConnection, request: Request, deadline: Deadline) -> Response:
    if connection.sock is None:
        connection.timeout = deadline.left_s()
        connection.connect()
    connection.sock.settimeout(deadline.left_s())
    connection.response_class = partial(_DeadlineResponse, deadline.left_s)  # type: ignore[assignment]
    sent_s, began_s = time.time(), time.monotonic()
    connection.request("GET" if request.body is None else "POST", request.path, request.body, dict(request.headers))
    response = connection.getresponse()
    # Elapsed time by the monotonic clock, because the wall clock may be set during the request.
    waited_s = time.monotonic() - began_s
    if response.status != 200:
        raise _HttpError(*_REFUSED.get(response.status) or _failure(response))
    return Response(int((sent_s + waited_s / 2) * 1000), _body(response))


def _failure(response: HTTPResponse) -> tuple[str, str]:
    """Return rule and remedy for an answer with an error: its status, and the first line of its body."""
    try:
        body = response.read1(_MAX_ERROR_CHARACTERS)
    # The status says more than that its body did not arrive.
    except (OSError, HTTPException):
        body = b""
    lines = body.decode("utf-8", "replace").strip().splitlines()
    # A page of HTML begins with its markup.
    line = f": {lines[0]}" if lines and not lines[0].startswith("<") else ""
    remedy = _STARTING if "startDelaySeconds" in line else "See the log of the agent, or of the broker."
    return f"answered {response.status} {response.reason[:_MAX_ERROR_CHARACTERS]}{line}", remedy


def _body(response: HTTPResponse) -> bytes:
    chunks, size = [], 0
    while chunk := response.read1(_CHUNK_BYTES):
        chunks.append(chunk)
        size += len(chunk)
        if size > MAX_BYTES:
            rule = f"the answer is larger than {MAX_BYTES // 1_000_000} MB"
            raise _HttpError(rule, "Let the agent export less: docker/jmx_exporter.yml names all that is needed.")
    if response.length:
        raise IncompleteRead(b"", response.length)
    # Closes only the response, so that the connection can be reused.
    response.close()
    return b"".join(chunks)


class _DeadlineResponse(HTTPResponse):
    """A response whose every wait, including that for the headers, ends at the deadline."""

    def __init__(self, left_s: Callable[[], float], sock: socket.socket, *args: Any, **kwargs: Any) -> None:
        super().__init__(sock, *args, **kwargs)
        # Around the reader that http.client made: that one keeps the socket open after "Connection: close", when the
        # connection has already given it up.
        self.fp = io.BufferedReader(_DeadlineReader(self.fp.detach(), sock, left_s), _CHUNK_BYTES)


class _DeadlineReader(io.RawIOBase):
    """Raw reader of a socket; the timeout of each read is the remaining time."""

    def __init__(self, raw: io.RawIOBase, sock: socket.socket, left_s: Callable[[], float]) -> None:
        self._raw = raw
        self._sock = sock
        self._left_s = left_s

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int | None:
        self._sock.settimeout(self._left_s())
        return self._raw.readinto(buffer)

    def close(self) -> None:
        self._raw.close()
        super().close()


def _rule_and_remedy(error: Exception) -> tuple[str, str]:
    if isinstance(error, _HttpError):
        return error.rule, error.remedy
    if isinstance(error, ssl.SSLCertVerificationError):
        return f"TLS failed: {error.verify_message}", "See collect.http_cafile, or the agent's certificate."
    rule = getattr(error, "strerror", None) or str(error) or type(error).__name__
    known = (rule_and_remedy for kind, rule_and_remedy in _FAILURES if isinstance(error, kind))
    return next(known, (rule, "See that the agent can be reached from here."))


# Rule and remedy by type of error.
_FAILURES: tuple[tuple[type[Exception], tuple[str, str]], ...] = (
    (ssl.SSLError, ("TLS failed", "See collect.http_ssl, collect.http_cafile and collect.http_certfile.")),
    (TimeoutError, ("did not answer in time", HANGS)),
    (
        ConnectionRefusedError,
        (
            "connection refused",
            "Start the broker with the agent, or set collect.port or [collect.endpoints] to where it listens.",
        ),
    ),
    (socket.gaierror, ("host name unknown", "Set the broker's host:port under [collect.endpoints].")),
    (
        IncompleteRead,
        (
            "the answer was cut off",
            "See the agent's log, and whether something in between limits the size of answers.",
        ),
    ),
    (ConnectionError, ("closed the connection without an answer", _HTTP_SSL)),
    (HTTPException, ("what answers there does not speak HTTP", _HTTP_SSL)),
)

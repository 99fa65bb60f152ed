"""HTTP exchange with one deadline for the whole exchange, a bounded response, and no redirects.

Python's timeouts apply to each single wait, so a server that sends its response, TLS handshake or ``100 Continue`` very
slowly outlasts them. Here a request runs on its own thread, and its connection is shut at the deadline: in name
resolution, proxy, handshake or body. Redirects are not followed: the token, the signature and the alert would go to a
host that is not in the settings.
"""

from __future__ import annotations

import contextlib
import socket
import ssl
import threading
import urllib.error
import urllib.request
from collections.abc import Callable
from dataclasses import dataclass
from http.client import HTTPConnection, HTTPException, HTTPMessage, HTTPSConnection
from typing import IO, Any

# More than enough for a response that is only logged.
MOST_BYTES = 1 << 16
_PIECE_BYTES = 1 << 16


@dataclass(frozen=True)
class HttpAnswer:
    """Response of a server.

    Attributes:
        status: HTTP status.
        body: body, or the part that arrived in time and within the limit.
        whole: whether the body is complete.
        retry_after: header ``Retry-After``; None if there is none.
    """

    status: int
    body: bytes
    whole: bool
    retry_after: str | None


def exchange(
    request: urllib.request.Request, tls: ssl.SSLContext, timeout_s: float, most_bytes: int = MOST_BYTES
) -> HttpAnswer:
    """Return the response to a request, whatever its status. Proxies of the environment are used.

    Args:
        request: URL, method, headers and body.
        tls: TLS context of HTTPS connections.
        timeout_s: deadline for the whole exchange, in seconds. If the status arrived in time, the response is
            returned with a possibly truncated body.
        most_bytes: largest number of body bytes to read.

    Raises:
        TimeoutError: no status arrived in time.
        OSError: the server was not reached, or its certificate is not trusted.
        HTTPException: the response is not HTTP.
    """
    call = _Call(request, tls, timeout_s, most_bytes)
    thread = threading.Thread(target=call.run, name="exchange", daemon=True)
    thread.start()
    thread.join(timeout_s)
    return call.finish()


class _Call:
    """A running request on its own thread, with the response received so far."""

    def __init__(self, request: urllib.request.Request, tls: ssl.SSLContext, timeout_s: float, most_bytes: int) -> None:
        self._request = request
        self._tls = tls
        self._timeout_s = timeout_s
        self._most_bytes = most_bytes
        self._lock = threading.Lock()
        self._deadline_passed = False
        self._connections: list[socket.socket] = []
        self._status_and_retry: tuple[int, str | None] | None = None
        self._body = bytearray()
        self._whole = False
        self._error: Exception | None = None

    def run(self) -> None:
        try:
            self._read(self._open())
        except Exception as error:
            reason = getattr(error, "reason", None)
            self._error = reason if isinstance(reason, Exception) else error
        finally:
            self._drop_connections()

    def finish(self) -> HttpAnswer:
        """Return the response received so far, and abort the rest."""
        with self._lock:
            self._deadline_passed = True
            # Later errors are consequences of the deadline.
            error = self._error
            for connection in self._connections:
                # A shutdown ends every wait on the connection, with or without TLS, on any thread.
                with contextlib.suppress(OSError):
                    connection.shutdown(socket.SHUT_RDWR)
            if self._status_and_retry is not None:
                return HttpAnswer(self._status_and_retry[0], bytes(self._body), self._whole, self._status_and_retry[1])
            raise error or TimeoutError

    def _open(self) -> Any:
        handlers = (_Http(self._connection), _Https(self._connection, self._tls), _NoRedirect)
        try:
            return urllib.request.build_opener(*handlers).open(self._request, timeout=self._timeout_s)
        except urllib.error.HTTPError as error:
            # An error status is a response too.
            return error

    def _read(self, response: Any) -> None:
        with response:
            with self._lock:
                self._status_and_retry = int(response.status), response.headers.get("Retry-After")
            # A body that breaks off counts as truncated.
            with contextlib.suppress(OSError, HTTPException):
                while len(self._body) <= self._most_bytes:
                    piece = response.read1(_PIECE_BYTES)
                    with self._lock:
                        if not piece or self._deadline_passed:
                            self._whole = not piece
                            return
                        self._body += piece[: self._most_bytes + 1 - len(self._body)]
                with self._lock:
                    del self._body[self._most_bytes :]

    def _connection(self, kind: type[HTTPConnection], host: str, **options: Any) -> HTTPConnection:
        connection = kind(host, **options)
        connection._create_connection = self._connect  # type: ignore[attr-defined]
        return connection

    def _connect(self, *address: Any, **options: Any) -> socket.socket:
        made = socket.create_connection(*address, **options)
        with self._lock:
            if self._deadline_passed:
                # A request that was reported as failed must not send anything.
                made.close()
                raise TimeoutError
            # A duplicate handle, because TLS takes over the socket itself.
            self._connections.append(made.dup())
        return made

    def _drop_connections(self) -> None:
        with self._lock:
            for connection in self._connections:
                connection.close()
            self._connections.clear()


# Returns a connection of a class to a host.
_Connect = Callable[..., HTTPConnection]


class _Http(urllib.request.HTTPHandler):
    def __init__(self, connection: _Connect) -> None:
        super().__init__()
        self._connection = connection

    def http_open(self, req: urllib.request.Request) -> Any:
        def made(host: str, **options: Any) -> HTTPConnection:
            return self._connection(HTTPConnection, host, **options)

        return self.do_open(made, req)


class _Https(urllib.request.HTTPSHandler):
    def __init__(self, connection: _Connect, context: ssl.SSLContext) -> None:
        super().__init__(context=context)
        self._connection = connection
        self._tls = context

    def https_open(self, req: urllib.request.Request) -> Any:
        def made(host: str, **options: Any) -> HTTPConnection:
            return self._connection(HTTPSConnection, host, context=self._tls, **options)

        return self.do_open(made, req)


class _NoRedirect(urllib.request.HTTPRedirectHandler):
    def redirect_request(
        self, req: urllib.request.Request, fp: IO[bytes], code: int, msg: str, headers: HTTPMessage, newurl: str
    ) -> None:
        return None

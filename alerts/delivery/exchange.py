"""One exchange with a web server: one deadline for all of it, a bounded answer, and no redirects.

Python's timeouts hold for each wait, so a server that drips its answer, its TLS handshake or ``100 Continue`` outlasts
them. Here a request runs on a thread of its own, and at the deadline its connection is shut, wherever it is: in the
look-up of a name, with a proxy, in a handshake or in the body. A redirect is not followed: the token, the signature and
the alert would go to a host that no setting names.
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

# Of an answer that is only shown this is more than enough.
MOST_BYTES = 1 << 16
_PIECE_BYTES = 1 << 16


@dataclass(frozen=True)
class HttpAnswer:
    """What a server answered.

    Attributes:
        status: HTTP status.
        body: the body, or as much of it as came in time and within the limit.
        whole: whether that is all of it.
        retry_after: header ``Retry-After``; None: there is none.
    """

    status: int
    body: bytes
    whole: bool
    retry_after: str | None


def exchange(
    request: urllib.request.Request, tls: ssl.SSLContext, timeout_s: float, most_bytes: int = MOST_BYTES
) -> HttpAnswer:
    """Return the answer to a request, of any status. Proxies of the environment are used.

    Args:
        request: URL, method, headers and body.
        tls: context of connections by HTTPS.
        timeout_s: longest time for everything together. An answer whose status came in time is an answer, though its
            body may be cut.
        most_bytes: most of the body that is read.

    Raises:
        TimeoutError: no status came in time.
        OSError: the server was not reached, or its certificate is not trusted.
        HTTPException: what it answered is not HTTP.
    """
    call = _Call(request, tls, timeout_s, most_bytes)
    thread = threading.Thread(target=call.run, name="exchange", daemon=True)
    thread.start()
    thread.join(timeout_s)
    return call.finish()


class _Call:
    """A request under way on its thread, and what of its answer has come so far."""

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
        """Return what has come by now, and give up what is still under way."""
        with self._lock:
            self._deadline_passed = True
            # What fails from here on fails because of the deadline.
            error = self._error
            for connection in self._connections:
                # It ends every wait on the connection, TLS or not, on whichever thread.
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
            # An answer too.
            return error

    def _read(self, response: Any) -> None:
        with response:
            with self._lock:
                self._status_and_retry = int(response.status), response.headers.get("Retry-After")
            # A body that breaks off is as much of an answer as one that is cut.
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
                # Nothing must be sent of a request that has already been reported as failed.
                made.close()
                raise TimeoutError
            # A handle of our own: TLS takes over the socket itself.
            self._connections.append(made.dup())
        return made

    def _drop_connections(self) -> None:
        with self._lock:
            for connection in self._connections:
                connection.close()
            self._connections.clear()


# Makes a connection of a class to a host.
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

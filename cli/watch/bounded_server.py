"""A web server that clients cannot exhaust: a bounded number of connections, each for a bounded time."""

from __future__ import annotations

import contextlib
import logging
import socket
import sys
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from socketserver import TCPServer
from typing import Any

log = logging.getLogger(__name__)

# A scrape takes some milliseconds, so that the oldest of so many connections is one that says nothing, or drips.
MAX_CONNECTIONS = 32
# For the whole of a request and its answer.
DEADLINE_S = 10.0
# A client may cause errors as fast as it likes; the log has one in so long.
_LOG_EVERY_S = 60.0


class BoundedServer(ThreadingHTTPServer):
    """Answers each connection on a thread of its own, and ends the oldest when there are too many.

    Args:
        host: name or address to listen on.
        port: port; 0: any that is free.
        handler: answers requests.
        max_connections: most at one time.
        deadline_s: longest time for one, seconds.
    """

    daemon_threads = True
    # Else newer Pythons let a second process have the same port, and a client would reach either.
    allow_reuse_port = False
    # With the default, 5, the system drops a scrape's first packets while many clients connect at once.
    request_queue_size = 128

    def __init__(
        self,
        host: str,
        port: int,
        handler: type[BaseHTTPRequestHandler],
        max_connections: int = MAX_CONNECTIONS,
        deadline_s: float = DEADLINE_S,
    ) -> None:
        self._max_connections = max_connections
        self._deadline_s = deadline_s
        self._guard = threading.Lock()
        # In the order in which they came, with the time of that.
        self._connections: dict[Any, float] = {}
        self._logged_s: float | None = None
        self.address_family = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0][0]
        super().__init__((host, port), handler)

    def server_bind(self) -> None:
        """Take the address, without the look-up of its name, which may last long where there is no DNS."""
        TCPServer.server_bind(self)

    def process_request(self, request: Any, client_address: Any) -> None:
        """Begin to answer a connection, in place of the oldest one if there are too many."""
        with self._guard:
            if len(self._connections) >= self._max_connections:
                self._end(next(iter(self._connections)))
            self._connections[request] = time.monotonic()
        super().process_request(request, client_address)

    def service_actions(self) -> None:
        """End the connections whose time is over; called several times a second."""
        before_s = time.monotonic() - self._deadline_s
        with self._guard:
            for connection in [c for c, since_s in self._connections.items() if since_s < before_s]:
                self._end(connection)

    def shutdown_request(self, request: Any) -> None:
        """Close a connection that has been answered, or ended."""
        with self._guard:
            self._connections.pop(request, None)
        super().shutdown_request(request)

    def server_close(self) -> None:
        """Close the address, and end the connections that are still being answered."""
        super().server_close()
        with self._guard:
            for connection in list(self._connections):
                self._end(connection)

    def handle_error(self, request: object, client_address: object) -> None:
        """Log a request that failed, now and then; that a client went away is no failure."""
        error = sys.exc_info()[1]
        if not isinstance(error, OSError):
            self.log_failure(type(error).__name__)

    def log_failure(self, reason: str) -> None:
        """Log that a request failed, unless another has lately."""
        now_s = time.monotonic()
        if self._logged_s is None or now_s - self._logged_s >= _LOG_EVERY_S:
            self._logged_s = now_s
            log.warning("a request could not be answered (%s); further ones are not logged for a minute", reason)
        log.debug("a request could not be answered", exc_info=True)

    def _end(self, connection: socket.socket) -> None:
        """Let whatever waits on a connection fail at once; its own thread closes it."""
        del self._connections[connection]
        with contextlib.suppress(OSError):
            connection.shutdown(socket.SHUT_RDWR)

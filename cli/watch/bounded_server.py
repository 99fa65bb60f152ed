"""HTTP server with a limited number of connections and a time limit for each, so that clients cannot exhaust it."""

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

# A scrape takes milliseconds, so the oldest of 32 connections is one that is idle or very slow.
MAX_CONNECTIONS = 32
# For a whole request and its response.
DEADLINE_S = 10.0
# A client can cause errors at any rate; the log gets at most one per minute.
_LOG_EVERY_S = 60.0


class BoundedServer(ThreadingHTTPServer):
    """Handles each connection in its own thread, and closes the oldest connection when there are too many.

    Args:
        host: name or address to listen on.
        port: port; 0 for a free one.
        handler: request handler.
        max_connections: maximum number of open connections.
        deadline_s: longest time per connection, in seconds.
    """

    daemon_threads = True
    # Otherwise newer versions of Python let a second process listen on the same port.
    allow_reuse_port = False
    # With the default of 5, the kernel drops a scrape's first packets while many clients connect at once.
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
        self._lock = threading.Lock()
        # Oldest first, with the time of arrival in seconds.
        self._connections: dict[Any, float] = {}
        self._logged_s: float | None = None
        self.address_family = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0][0]
        super().__init__((host, port), handler)

    def server_bind(self) -> None:
        """Bind without the base class's reverse lookup of the name, which may take long without DNS."""
        TCPServer.server_bind(self)

    def process_request(self, request: Any, client_address: Any) -> None:
        """Handle a connection in its own thread, and close the oldest one if there are too many."""
        with self._lock:
            if len(self._connections) >= self._max_connections:
                self._close(next(iter(self._connections)))
            self._connections[request] = time.monotonic()
        super().process_request(request, client_address)

    def service_actions(self) -> None:
        """Close connections past their deadline; called several times per second."""
        before_s = time.monotonic() - self._deadline_s
        with self._lock:
            for connection in [c for c, since_s in self._connections.items() if since_s < before_s]:
                self._close(connection)

    def shutdown_request(self, request: Any) -> None:
        """Close a connection after its response, or after its end."""
        with self._lock:
            self._connections.pop(request, None)
        super().shutdown_request(request)

    def server_close(self) -> None:
        """Stop listening, and close the open connections."""
        super().server_close()
        with self._lock:
            for connection in list(self._connections):
                self._close(connection)

    def handle_error(self, request: object, client_address: object) -> None:
        """Log a failed request, at a limited rate; a client that disconnected is not a failure."""
        error = sys.exc_info()[1]
        if not isinstance(error, OSError):
            self.log_failure(type(error).__name__)

    def log_failure(self, reason: str) -> None:
        """Log a failed request, at most once per minute."""
        now_s = time.monotonic()
        if self._logged_s is None or now_s - self._logged_s >= _LOG_EVERY_S:
            self._logged_s = now_s
            log.warning("a request could not be answered (%s); further ones are not logged for a minute", reason)
        log.debug("a request could not be answered", exc_info=True)

    def _close(self, connection: socket.socket) -> None:
        """Shut a connection down, so that its thread fails at once and closes it."""
        del self._connections[connection]
        with contextlib.suppress(OSError):
            connection.shutdown(socket.SHUT_RDWR)

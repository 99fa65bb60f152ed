"""Serves the page until it is stopped."""

from __future__ import annotations

import logging
import socket
import threading
import webbrowser
from collections.abc import Callable

import uvicorn
from fastapi import FastAPI

from headroom.schemas.errors import HeadroomError

log = logging.getLogger(__name__)

# Requests that are answered at once; each open page is one.
_MOST_REQUESTS = 400
_KEEP_ALIVE_S = 5
# Streams of open pages end with the server, not before it.
_SHUTDOWN_S = 1


def bind(host: str, port: int) -> socket.socket:
    """Return a socket that is bound to an address.

    Raises:
        HeadroomError: the address is not available.
    """
    # Only text has an IPv6 address in brackets.
    name = host.strip("[]")
    try:
        family = socket.getaddrinfo(name, port, type=socket.SOCK_STREAM)[0][0]
        bound = socket.create_server((name, port), family=family, backlog=128)
    except OSError as error:
        raise HeadroomError(
            f"--listen {host}:{port}",
            f"cannot be listened on ({error.strerror or error})",
            "Choose another port, such as --listen 127.0.0.1:0 for a free one, or an address of this machine.",
        ) from None
    return bound


def url_of(bound: socket.socket) -> str:
    """Return the address of the page."""
    host, port = bound.getsockname()[:2]
    return f"http://{f'[{host}]' if ':' in host else host}:{port}/"


def serve(
    app: FastAPI, bound: socket.socket, stop: threading.Event, on_started: Callable[[], None] = lambda: None
) -> None:
    """Serve an application until SIGINT or SIGTERM, or until an event is set.

    Args:
        app: the application.
        bound: socket that it listens on.
        stop: ends it too.
        on_started: is called once it answers.
    """
    config = uvicorn.Config(
        app,
        log_level="warning",
        access_log=False,
        server_header=False,
        date_header=False,
        # Whoever connects is who is trusted, and not whom a header names.
        proxy_headers=False,
        limit_concurrency=_MOST_REQUESTS,
        timeout_keep_alive=_KEEP_ALIVE_S,
        timeout_graceful_shutdown=_SHUTDOWN_S,
        lifespan="on",
    )
    logging.getLogger("uvicorn.error").addFilter(_WithoutSlowReaders())
    server = _Server(config, on_started, app.state.end_streams)

    def end() -> None:
        stop.wait()
        server.should_exit = True

    threading.Thread(target=end, name="stop", daemon=True).start()
    server.run(sockets=[bound])


class _WithoutSlowReaders(logging.Filter):
    """Leaves out the line about a stream that was ended because its reader did not read: that is no fault."""

    def filter(self, record: logging.LogRecord) -> bool:
        return record.msg != "ASGI callable returned without completing response."


class _Server(uvicorn.Server):
    """A server that says when it answers, and ends the streams of open pages before it waits for requests."""

    def __init__(self, config: uvicorn.Config, on_started: Callable[[], None], end_streams: Callable[[], None]) -> None:
        super().__init__(config)
        self._on_started = on_started
        self._end_streams = end_streams

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        if self.started:
            self._on_started()

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        self._end_streams()
        await super().shutdown(sockets)


def open_browser(url: str) -> None:
    """Open the page in a browser of this machine, if there is one."""
    try:
        if webbrowser.open(url):
            return
    except webbrowser.Error as error:
        log.debug("no browser: %s", error)
    log.warning("no browser of this machine could be opened; open %s yourself", url)

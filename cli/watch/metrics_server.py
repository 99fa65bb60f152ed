"""HTTP server of the process that runs the alert path: /metrics for Prometheus, /health for probes."""

from __future__ import annotations

import json
import logging
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler
from importlib.metadata import PackageNotFoundError, version

from prometheus_client import CollectorRegistry
from prometheus_client.exposition import choose_encoder

from headroom.alerts.metrics import Health, Limits, MetricsCollector, MetricsState, health
from headroom.cli.common.output import echo
from headroom.cli.config.several_files import ConfiguredClusters
from headroom.cli.watch.bounded_server import BoundedServer
from headroom.schemas.config import MetricsSettings
from headroom.schemas.errors import HeadroomError
from headroom.streaming.clock import now_ms

log = logging.getLogger(__name__)

_POLL_S = 0.2
_JSON = "application/json"


def limits_of(clusters: ConfiguredClusters) -> dict[str, Limits]:
    """Return the limits of the age of ticks, by configured cluster."""
    metrics = clusters.settings.metrics
    every = (clusters.settings, *(watched.settings for watched in clusters.others))
    intervals_s = {settings.cluster.name: settings.collect.interval_s for settings in every}
    return {name: Limits(metrics.stale_s(s), metrics.first_s(s)) for name, s in intervals_s.items()}


@contextmanager
def serving_metrics(clusters: ConfiguredClusters, clock_ms: Callable[[], int] = now_ms) -> Iterator[MetricsState]:
    """Yield the state behind the metrics, and serve it until the block ends.

    If the server is disabled or the default port is in use, the state is yielded without a server.

    Args:
        clusters: settings of all clusters; the first file configures the server.
        clock_ms: returns the current time in epoch milliseconds.

    Raises:
        HeadroomError: the address of ``metrics.listen`` is not available.
    """
    # Also without a server, because the alert path reports to it.
    state = MetricsState([name for name, _ in clusters.configs], clock_ms)
    server = open_server(clusters.settings.metrics)
    if server is None:
        yield state
        return
    serve(server, state, clusters)
    try:
        yield state
    finally:
        server.shutdown()
        server.server_close()


def serve(server: MetricsServer, state: MetricsState, clusters: ConfiguredClusters) -> None:
    """Start to serve in a daemon thread, which ends with the process at the latest."""
    limits, metrics, registry = limits_of(clusters), clusters.settings.metrics, CollectorRegistry()
    # Ticks may come from a cluster that only another process configures. It gets the limits of the first cluster.
    default = limits[clusters.settings.cluster.name]
    MetricsCollector(state, lambda name: limits.get(name, default).stale_s, metrics.top_n, _version(), registry)
    server.registry = registry
    server.check_health = lambda: health(state.snapshot(), limits)
    threading.Thread(target=server.serve_forever, args=(_POLL_S,), name="metrics", daemon=True).start()
    echo(f"Metrics: {server.url}/metrics, health: {server.url}/health", err=True)


def open_server(settings: MetricsSettings) -> MetricsServer | None:
    """Return a server that is bound to its address but not serving yet; None if there is none.

    If ``metrics.listen`` is not set and the default port is in use, a warning is logged: a second watch on the machine
    runs without a server.

    Raises:
        HeadroomError: the address of ``metrics.listen`` is not available.
    """
    address = settings.address()
    if not address:
        return None
    host, _, port = address.rpartition(":")
    try:
        return MetricsServer(host.strip("[]"), int(port))
    except OSError as error:
        rule = f"cannot listen on {address} ({error.strerror or error})"
        remedy = 'Set metrics.listen to an address of this machine with a free port, or to "off".'
        if settings.listen is not None:
            raise HeadroomError("metrics.listen", rule, remedy) from None
        log.warning("there is no /metrics and no /health: %s. %s", rule, remedy)
        return None


class MetricsServer(BoundedServer):
    """Serves the metrics of a registry and a health check; a failure ends only the request that caused it.

    Args:
        host: name or address to listen on.
        port: port; 0 for a free one.

    Attributes:
        registry: registry of the metrics.
        check_health: returns the current health.
    """

    registry: CollectorRegistry
    check_health: Callable[[], Health]

    def __init__(self, host: str, port: int) -> None:
        super().__init__(host, port, _Handler)

    @property
    def url(self) -> str:
        """Return the URL of the server."""
        host, port = str(self.server_address[0]), self.server_address[1]
        return f"http://{f'[{host}]' if ':' in host else host}:{port}"


class _Handler(BaseHTTPRequestHandler):
    """Handler of one request."""

    server: MetricsServer
    server_version = "headroom"
    sys_version = ""

    def do_GET(self) -> None:
        """Respond with metrics or health; an exception becomes a response with code 500."""
        try:
            answer = self._content(self.path.partition("?")[0])
        except Exception as error:
            self.server.log_failure(type(error).__name__)
            answer = 500, _JSON, _json({"error": "this could not be answered; the log names the error"})
        self._answer(*answer)

    # A probe may request only the status.
    do_HEAD = do_GET

    def _content(self, path: str) -> tuple[int, str, bytes]:
        if path == "/metrics":
            # A folded header contains line breaks, and parts of it are copied into the response's header.
            encode, content_type = choose_encoder(" ".join((self.headers.get("Accept") or "").split()))
            return 200, content_type, encode(self.server.registry)
        if path == "/health":
            status = self.server.check_health()
            return 200 if status.healthy else 503, _JSON, _json(status.as_json())
        return 404, _JSON, _json({"error": "there are /metrics and /health"})

    def _answer(self, status: int, content_type: str, body: bytes) -> None:
        self.send_response(status)
        self.send_header("Content-Type", content_type)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:
        """Do not log requests: Prometheus sends one every few seconds."""


def _json(value: object) -> bytes:
    return json.dumps(value).encode() + b"\n"


def _version() -> str:
    try:
        return version("headroom")
    except PackageNotFoundError:
        return "unknown"

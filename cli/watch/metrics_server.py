"""The HTTP server of the process that judges: /metrics for Prometheus, /health for probes."""

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

from alerts.metrics import Health, Limits, MetricsCollector, MetricsState, health
from cli.common.output import echo
from cli.watch.bounded_server import BoundedServer
from cli.watch.pipeline import ConfiguredClusters
from schemas.config import MetricsSettings
from schemas.errors import HeadroomError
from streaming.tables.suppression_rows import now_ms

log = logging.getLogger(__name__)

_POLL_S = 0.2
_JSON = "application/json"


def limits_of(clusters: ConfiguredClusters) -> dict[str, Limits]:
    """Return how old the ticks of each configured cluster may be."""
    metrics = clusters.settings.metrics
    every = (clusters.settings, *(watched.settings for watched in clusters.others))
    intervals_s = {settings.cluster.name: settings.collect.interval_s for settings in every}
    return {name: Limits(metrics.stale_s(s), metrics.first_s(s)) for name, s in intervals_s.items()}


@contextmanager
def serving_metrics(clusters: ConfiguredClusters, clock_ms: Callable[[], int] = now_ms) -> Iterator[MetricsState]:
    """Give the state that listens to the alert path, and serve it until the end.

    It is clusters without a server too, where none is wished or the default port is taken.

    Args:
        clusters: settings; those of the first file hold for the server.
        clock_ms: gives the time now, epoch milliseconds.

    Raises:
        HeadroomError: the address that ``metrics.listen`` names cannot be had.
    """
    live = MetricsState([name for name, _ in clusters.configs], clock_ms)
    server = open_server(clusters.settings.metrics)
    if server is None:
        yield live
        return
    serve(server, live, clusters)
    try:
        yield live
    finally:
        server.shutdown()
        server.server_close()


def serve(server: MetricsServer, live: MetricsState, clusters: ConfiguredClusters) -> None:
    """Begin to answer, in a thread that ends with the process at the latest."""
    limits, metrics, registry = limits_of(clusters), clusters.settings.metrics, CollectorRegistry()
    # A cluster that only another process's file names has the limits of the first one here.
    default = limits[clusters.settings.cluster.name]
    MetricsCollector(live, lambda name: limits.get(name, default).stale_s, metrics.top_n, _version(), registry)
    server.registry = registry
    server.check_health = lambda: health(live.snapshot(), limits)
    threading.Thread(target=server.serve_forever, args=(_POLL_S,), name="metrics", daemon=True).start()
    echo(f"Metrics: {server.url}/metrics, health: {server.url}/health", err=True)


def open_server(settings: MetricsSettings) -> MetricsServer | None:
    """Return a server that has its address and does not answer yet; None: there is to be none.

    Without ``metrics.listen`` a port that is taken ends nothing: of two watches on a machine the second does without.

    Raises:
        HeadroomError: the address that ``metrics.listen`` names cannot be had.
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
    """Answers with a registry and a judgement; what it cannot tell is an error of the one request.

    Args:
        host: name or address to listen on.
        port: port; 0: any that is free.

    Attributes:
        registry: of the metrics.
        check_health: gives the health now.
    """

    registry: CollectorRegistry
    check_health: Callable[[], Health]

    def __init__(self, host: str, port: int) -> None:
        super().__init__(host, port, _Handler)

    @property
    def url(self) -> str:
        """Return where it is found."""
        host, port = str(self.server_address[0]), self.server_address[1]
        return f"http://{f'[{host}]' if ':' in host else host}:{port}"


class _Handler(BaseHTTPRequestHandler):
    """One request."""

    server: MetricsServer
    server_version = "headroom"
    sys_version = ""

    def do_GET(self) -> None:
        """Answer with metrics or health; a failure is an error of this request alone."""
        try:
            answer = self._content(self.path.partition("?")[0])
        except Exception as error:
            self.server.log_failure(type(error).__name__)
            answer = 500, _JSON, _json({"error": "this could not be answered; the log names the error"})
        self._answer(*answer)

    # A probe may ask for the status alone.
    do_HEAD = do_GET

    def _content(self, path: str) -> tuple[int, str, bytes]:
        if path == "/metrics":
            # A header that was folded has line breaks in it, and its version goes into the answer's own.
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
        """Say nothing of requests: there is one every few seconds for ever."""


def _json(value: object) -> bytes:
    return json.dumps(value).encode() + b"\n"


def _version() -> str:
    try:
        return version("headroom")
    except PackageNotFoundError:
        return "unknown"

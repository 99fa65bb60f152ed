"""Metrics source for JMX over RMI: one reader per broker, so that a broker that hangs delays only itself."""

from __future__ import annotations

import re
from typing import Any

from py4j.protocol import Py4JError, Py4JJavaError, Py4JNetworkError

from headroom.cluster.metrics.mbeans import ReadPlan
from headroom.cluster.metrics.rmi.jmx_gateway import JmxGateway
from headroom.cluster.metrics.rmi.jmx_request import JmxRequest
from headroom.cluster.metrics.source import HANGS, MetricsError, check_plausible
from headroom.cluster.model import Metrics
from headroom.schemas.text import one_line

_REACH = "See that java.rmi.server.hostname and the RMI port can be reached from here, and collect.jmx_*."
# Pattern of a Java exception's text, with rule and remedy.
_FAILURES = (
    ("Connection refused", "connection refused", f"Start the broker with JMX_PORT set. {_REACH}"),
    ("Read timed out|time is up", "did not answer in time", f"{HANGS} Very many replicas: see docs/sources.md."),
    ("UnknownHost", "host name unknown", _REACH),
    (
        "SecurityException|[Aa]uthentication|Credentials",
        "user or password refused",
        "See collect.jmx_username and collect.jmx_password_file.",
    ),
    ("SSL|certificate|PKIX", "TLS failed", "See collect.jmx_ssl and collect.jmx_truststore."),
)


class JmxSource:
    """Reads metrics by JMX over RMI. At most one thread at a time per broker.

    Args:
        gateway: the gateway JVM; started before a read if it does not run.
    """

    def __init__(self, gateway: JmxGateway) -> None:
        self._gateway = gateway
        self._readers: dict[int, tuple[str, int | None, Any]] = {}
        self._requests: dict[int, JmxRequest] = {}

    def start(self) -> None:
        """Start the gateway JVM if it does not run.

        Raises:
            HeadroomError: Java or PySpark's jars are missing, or the JVM did not start.
        """
        self._gateway.start()

    def stop(self) -> None:
        """Stop the gateway JVM, which also ends every read that hangs."""
        self._gateway.stop()

    def read(self, broker: int, endpoint: str, plan: ReadPlan, timeout_s: float) -> Metrics:
        """Return the broker's metrics.

        Raises:
            MetricsError: the broker could not be reached, or did not answer within ``timeout_s`` seconds.
        """
        request = self._request(broker, plan)
        try:
            answer = self._reader(broker, endpoint).read(request.text, max(1, int(timeout_s * 1000)))
        except Py4JJavaError as error:
            # The next reader reads the password again: it may have been changed.
            self._readers.pop(broker, None)
            raise _failure(str(error.java_exception), endpoint) from None
        except (Py4JNetworkError, Py4JError, OSError):
            raise MetricsError(
                f"JMX {endpoint}", "the JVM that reads JMX went away", "Wait for the next tick: it is started again."
            ) from None
        return check_plausible(request.parse(answer), broker, plan, f"JMX {endpoint}")

    def _request(self, broker: int, plan: ReadPlan) -> JmxRequest:
        # A plan is the same object while nothing changes, so its thousands of lines are built once.
        cached = self._requests.get(broker)
        if cached is None or cached.plan is not plan:
            cached = self._requests[broker] = JmxRequest(plan)
        return cached

    def _reader(self, broker: int, endpoint: str) -> Any:
        self._gateway.ensure_runs()
        cached = self._readers.get(broker)
        if cached is None or cached[:2] != (endpoint, self._gateway.process_id):
            cached = (endpoint, self._gateway.process_id, self._gateway.reader(endpoint))
            self._readers[broker] = cached
        return cached[2]


def _failure(text: str, endpoint: str) -> MetricsError:
    """Return the error for a Java exception with this text."""
    for pattern, rule, remedy in _FAILURES:
        if re.search(pattern, text):
            return MetricsError(f"JMX {endpoint}", rule, remedy)
    return MetricsError(f"JMX {endpoint}", one_line(text.partition("\n")[0], 200), _REACH)

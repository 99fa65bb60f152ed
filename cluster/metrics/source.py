"""Protocol of the metrics sources, and the plausibility check that all of them apply."""

from __future__ import annotations

from typing import Protocol

from headroom.cluster.metrics.mbeans import ReadPlan
from headroom.cluster.model import Metrics
from headroom.schemas.errors import HeadroomError

# Partitions change fetchers and topics come and go during a tick, so a few more lags than replicas are normal.
_LAGS_PER_REPLICA = 2
_MIN_LAGS_LIMIT = 1000
# A read may take longer than its tick waits; its result then counts in the next tick. So a busy broker yields metrics
# every other tick instead of none.
_MIN_READ_S = 3.0
# Remedies that several sources have.
HANGS = "See whether the broker hangs or its machine is overloaded, or raise collect.broker_timeout_s."
NOT_ITS_OWN = "See that collect.source is what listens there, whole and by itself, and see the agent's log."


class MetricsError(HeadroomError):
    """One broker's metrics could not be read; the text goes into ``tick_end``."""


class MetricsSource(Protocol):
    """Source of brokers' metrics. At most one thread at a time per broker; brokers are read in parallel."""

    def start(self) -> None:
        """Start the source if it does not run yet. Raises HeadroomError."""
        ...

    def read(self, broker: int, endpoint: str, plan: ReadPlan, timeout_s: float) -> Metrics:
        """Return the broker's metrics. Raises MetricsError if it does not answer within ``timeout_s`` seconds."""
        ...

    def stop(self) -> None:
        """Close all connections and end all processes of the source."""
        ...


def read_s(timeout_s: float) -> float:
    """Return the longest time for one read of a broker, seconds.

    Args:
        timeout_s: longest wait of a tick for the read, seconds.
    """
    return max(timeout_s, _MIN_READ_S)


def check_plausible(metrics: Metrics, broker: int, plan: ReadPlan, source: str) -> Metrics:
    """Return the metrics if they plausibly belong to the broker.

    Raises:
        MetricsError: there are no Kafka metrics, they are another broker's, or there are far more replicas than the
            broker has.
    """
    if not (metrics.gauges or metrics.counters or metrics.lags or metrics.logs):
        raise MetricsError(
            source,
            "answers, but has no Kafka metrics yet",
            "Wait until the broker has started; see that the agent is its own and lets Kafka's MBeans through.",
        )
    if metrics.broker_ids and broker not in metrics.broker_ids:
        others = ", ".join(map(str, sorted(metrics.broker_ids)))
        raise MetricsError(
            source,
            f"is the address of broker {others}, not of broker {broker}",
            f"Set {broker} under [collect.endpoints] to its own address; two of them may be exchanged.",
        )
    if plan.replicas is not None and len(metrics.lags) > _LAGS_PER_REPLICA * plan.replicas + _MIN_LAGS_LIMIT:
        raise MetricsError(
            source,
            f"reports {len(metrics.lags)} lags, but the broker has {plan.replicas} replicas",
            "See that [collect.endpoints] names this broker's own agent, and that the agent reports no other broker.",
        )
    return metrics

"""What every source of brokers' metrics offers, and what all of them refuse."""

from __future__ import annotations

from typing import Protocol

from cluster.metrics.mbeans import ReadPlan
from cluster.model import Metrics
from schemas.errors import HeadroomError

# Fetchers change hands and topics come and go during a tick, so some more lags than replicas are no surprise.
_LAGS_PER_REPLICA = 2
_LAGS_AT_LEAST = 1000
# A read may take longer than its tick waits, and counts in the next one then: of a broker that is busy something is
# known every other tick, and not nothing.
_READ_AT_LEAST_S = 3.0
# Remedies that several sources have.
HANGS = "See whether the broker hangs or its machine is overloaded, or raise collect.broker_timeout_s."
NOT_ITS_OWN = "See that collect.source is what listens there, whole and by itself, and see the agent's log."


class MetricsError(HeadroomError):
    """One broker's metrics could not be read; the text is fit for ``tick_end``."""


class MetricsSource(Protocol):
    """Where brokers' metrics are read. One thread at a time may read one broker; different brokers side by side."""

    def start(self) -> None:
        """Get ready; cheap when it is already. Raises HeadroomError when it cannot."""
        ...

    def read(self, broker: int, endpoint: str, plan: ReadPlan, timeout_s: float) -> Metrics:
        """Return what the broker's MBeans say. Raises MetricsError when it does not answer in time."""
        ...

    def stop(self) -> None:
        """Let go of everything."""
        ...


def read_s(timeout_s: float) -> float:
    """Return how long one read of a broker may take in all, seconds.

    Args:
        timeout_s: how long a tick waits for it, seconds.
    """
    return max(timeout_s, _READ_AT_LEAST_S)


def check_plausible(metrics: Metrics, plan: ReadPlan, where: str) -> Metrics:
    """Return the metrics, if they can be those of the broker that was asked.

    Raises:
        MetricsError: they are none of Kafka's, or tell of far more replicas than the broker has.
    """
    if not (metrics.gauges or metrics.counters or metrics.lags or metrics.logs):
        raise MetricsError(
            where,
            "answers, but has no Kafka metrics yet",
            "Wait until the broker has started; see that the agent is its own and lets Kafka's MBeans through.",
        )
    if plan.replicas is not None and len(metrics.lags) > _LAGS_PER_REPLICA * plan.replicas + _LAGS_AT_LEAST:
        raise MetricsError(
            where,
            f"tells {len(metrics.lags)} lags, but the broker has {plan.replicas} replicas",
            "See that [collect.endpoints] names this broker's own agent, and one that tells of no other broker.",
        )
    return metrics

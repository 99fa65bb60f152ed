"""What every source of brokers' metrics offers, and what all of them refuse."""

from __future__ import annotations

from typing import Protocol

from cluster.mbeans import Plan
from cluster.model import Metrics

# Fetchers change hands and topics come and go during a tick, so some more lags than replicas are no surprise.
_LAGS_PER_REPLICA = 2
_LAGS_AT_LEAST = 1000


class MetricsError(Exception):
    """A broker's metrics could not be read; the text says why, in words fit for ``tick_end``."""


class MetricsSource(Protocol):
    """Where brokers' metrics are read. One thread at a time may read one broker; different brokers side by side."""

    def start(self) -> None:
        """Get ready; cheap when it is already. Raises HeadroomError when it cannot."""
        ...

    def read(self, broker: int, endpoint: str, plan: Plan, timeout_s: float) -> Metrics:
        """Return what the broker's MBeans say. Raises MetricsError when it does not answer in time."""
        ...

    def stop(self) -> None:
        """Let go of everything."""
        ...


def plausible(metrics: Metrics, plan: Plan, where: str) -> Metrics:
    """Return the metrics, if they can be those of the broker that was asked.

    Raises:
        MetricsError: they are none of Kafka's, or tell of far more replicas than the broker has.
    """
    if not (metrics.gauges or metrics.counters or metrics.lags or metrics.logs):
        raise MetricsError(f"{where}: answers, but has no Kafka metrics yet")
    if plan.replicas is not None and len(metrics.lags) > _LAGS_PER_REPLICA * plan.replicas + _LAGS_AT_LEAST:
        raise MetricsError(f"{where}: tells {len(metrics.lags)} lags, but the broker has {plan.replicas} replicas")
    return metrics

"""State of the alert path as Prometheus metrics and as a health check."""

from headroom.alerts.metrics.collector import MetricsCollector
from headroom.alerts.metrics.health import Health, health
from headroom.alerts.metrics.state import Collected, Limits, MetricsSnapshot, MetricsState

__all__ = ["Collected", "Health", "Limits", "MetricsCollector", "MetricsSnapshot", "MetricsState", "health"]

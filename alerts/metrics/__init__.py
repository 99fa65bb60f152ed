"""State of the alert path as Prometheus metrics and as a health check."""

from alerts.metrics.collector import MetricsCollector
from alerts.metrics.health import Health, health
from alerts.metrics.state import Collected, Limits, MetricsSnapshot, MetricsState

__all__ = ["Collected", "Health", "Limits", "MetricsCollector", "MetricsSnapshot", "MetricsState", "health"]

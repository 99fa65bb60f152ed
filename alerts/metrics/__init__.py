"""What the alert path last told, as metrics and as a judgement of its own health."""

from alerts.metrics.collector import MetricsCollector
from alerts.metrics.health import Health, health
from alerts.metrics.state import Collected, Limits, MetricsState, Snapshot

__all__ = ["Collected", "Health", "Limits", "MetricsCollector", "MetricsState", "Snapshot", "health"]

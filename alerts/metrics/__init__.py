"""What the alert path last told, as metrics and as a judgement of its own health."""

from alerts.metrics.collector import MetricsCollector
from alerts.metrics.health import Health, health
from alerts.metrics.state import Collected, Limits, LiveState, Snapshot

__all__ = ["Collected", "Health", "Limits", "LiveState", "MetricsCollector", "Snapshot", "health"]

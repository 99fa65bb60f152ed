"""Scrape of a hand-made state, parsed as by Prometheus."""

from __future__ import annotations

from typing import Any

from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.metrics_core import Metric
from prometheus_client.parser import text_string_to_metric_families

from headroom.alerts.metrics import MetricsCollector, MetricsSnapshot, MetricsState
from headroom.schemas.alerts import AlertEvent
from tests.unit.builders.throttle_status import TICK_MS

STALE_S = 30.0
Series = tuple[str, tuple[tuple[str, str], ...]]


class Scene:
    """A state of cluster ``orders`` with a clock that the test advances."""

    def __init__(self, top_n: int = 50) -> None:
        self.now_ms = TICK_MS
        self.live = MetricsState(["orders"], lambda: self.now_ms)
        self.registry = CollectorRegistry()
        MetricsCollector(self.live, lambda cluster: STALE_S, top_n, "1.2.3", self.registry)

    def snapshot(self) -> MetricsSnapshot:
        return self.live.snapshot()

    def families(self) -> list[Metric]:
        return list(text_string_to_metric_families(generate_latest(self.registry).decode()))

    def values(self, name: str, **labels: str) -> list[float]:
        """The values of the series of one name that have these labels, and perhaps others."""
        samples = [sample for family in self.families() for sample in family.samples if sample.name == name]
        return [sample.value for sample in samples if labels.items() <= sample.labels.items()]

    def labels_of(self, name: str, label: str) -> list[str]:
        samples = [sample for family in self.families() for sample in family.samples if sample.name == name]
        return [sample.labels[label] for sample in samples]


def event(state: str, tick_ms: int = TICK_MS, subject: str = "broker 1 as leader", **more: Any) -> AlertEvent:
    fields: dict[str, Any] = {
        "alert_id": "a1",
        "kind": "throttle_below_leader_write",
        "severity": "warning",
        "state": state,
        "cluster": "orders",
        "subject": subject,
        "summary": "",
        "evidence": "{}",
        "recommendation": "{}",
        "tick_ms": tick_ms,
        "event_ms": tick_ms,
    }
    return AlertEvent(**fields | more)

"""Prometheus collector: builds all metrics at every scrape, so that no series outlives its broker, move or tick."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from itertools import chain

from prometheus_client.metrics_core import Metric
from prometheus_client.registry import Collector, CollectorRegistry

from headroom.alerts.metrics.balance_samples import balance_samples
from headroom.alerts.metrics.histogram import BucketCounts
from headroom.alerts.metrics.load_samples import load_samples, proposal_samples
from headroom.alerts.metrics.migration_samples import migration_samples
from headroom.alerts.metrics.samples import Sample, partition_samples, throttle_samples
from headroom.alerts.metrics.state import MetricsSnapshot, MetricsState
from headroom.schemas import metrics
from headroom.schemas.alerts import AlertState
from headroom.schemas.metrics import METRICS, MetricSpec

# Leader balances are read from their gold table, so they arrive later than throttle statuses: allow twice the age.
_BALANCES_LATE = 2
# Loads of brokers are a minute apart.
_MINUTES_LATE_S = 120.0


class MetricsCollector(Collector):
    """Collects the metrics of ``schemas.metrics``.

    Args:
        state: state of the alert path.
        stale_s: returns the age from which a cluster's values are stale, in seconds.
        top_n: largest number of partitions with series per cluster.
        version: version of Headroom.
        registry: registry to register with.
    """

    def __init__(
        self,
        state: MetricsState,
        stale_s: Callable[[str], float],
        top_n: int,
        version: str,
        registry: CollectorRegistry,
    ) -> None:
        self._state = state
        self._stale_s = stale_s
        self._top_n = top_n
        self._version = version
        registry.register(self)

    def describe(self) -> Iterable[Metric]:
        """Return every metric without samples, as the registry needs them at registration."""
        return [_family(spec) for spec in METRICS]

    def collect(self) -> Iterator[Metric]:
        """Yield the metrics that currently have a series."""
        now = self._state.snapshot()
        families = {spec.name: _family(spec) for spec in METRICS}
        groups = (
            self._moves(now),
            self._balances(now),
            self._loads(now),
            self._migrations(now),
            _alerts(now),
            _ticks(now),
            _quarantine(now),
            _deliveries(now),
            ((metrics.BUILD_INFO, (self._version,), 1.0),),
        )
        for spec, labels, value in chain.from_iterable(groups):
            families[spec.name].add_sample(spec.name, dict(zip(spec.labels, labels, strict=True)), value)
        for spec, labels, counts in _durations(now):
            _add_counts(families[spec.name], dict(zip(spec.labels, labels, strict=True)), counts)
        yield from (family for family in families.values() if family.samples)

    def _moves(self, now: MetricsSnapshot) -> Iterator[Sample]:
        for cluster, tick in now.ticks.items():
            # Without this limit, old values would appear as current ones.
            if tick.age_s(now.now_ms) < self._stale_s(cluster):
                yield from throttle_samples(cluster, tick.value)
                yield from partition_samples(cluster, tick.value, self._top_n)
                if cluster in now.unanswered:
                    yield metrics.UNANSWERED_BROKERS, (cluster,), float(now.unanswered[cluster])

    def _balances(self, now: MetricsSnapshot) -> Iterator[Sample]:
        for cluster, last in now.balances.items():
            if last.age_s(now.now_ms) < _BALANCES_LATE * self._stale_s(cluster):
                yield from balance_samples(cluster, last.value)

    def _migrations(self, now: MetricsSnapshot) -> Iterator[Sample]:
        for cluster, last in now.migrations.items():
            if last.age_s(now.now_ms) < self._stale_s(cluster):
                yield from migration_samples(cluster, last.value)

    def _loads(self, now: MetricsSnapshot) -> Iterator[Sample]:
        for cluster, last in now.loads.items():
            if last.age_s(now.now_ms) < _MINUTES_LATE_S + _BALANCES_LATE * self._stale_s(cluster):
                yield from load_samples(cluster, last.value)
        # A proposal counts until the next one: what it promised is compared with what comes.
        for cluster, advice in now.proposals.items():
            yield from proposal_samples(cluster, advice)


def _family(spec: MetricSpec) -> Metric:
    return Metric(spec.name.removesuffix("_total"), spec.meaning, spec.type.value)


def _alerts(now: MetricsSnapshot) -> Iterator[Sample]:
    active = Counter(
        (cluster, kind, alert.severity, alert.state)
        for (cluster, kind, _), alert in now.alerts.items()
        if alert.state != AlertState.RESOLVED.value
    )
    for labels, count in sorted(active.items()):
        yield metrics.ALERTS, labels, float(count)
    for key, events in sorted(now.events.items()):
        yield metrics.ALERT_EVENTS, key, float(events)


def _ticks(now: MetricsSnapshot) -> Iterator[Sample]:
    for cluster, tick in now.ticks.items():
        yield metrics.TICK_AGE, (cluster,), tick.age_s(now.now_ms)
        yield metrics.TICK_TIMESTAMP, (cluster,), tick.tick_ms / 1000
        yield metrics.ROWS, (cluster,), float(now.rows[cluster])
    for cluster, errors in now.errors.items():
        yield metrics.COLLECTOR_ERRORS, (cluster,), float(errors)
        yield metrics.SKIPPED_TICKS, (cluster,), float(now.skipped[cluster])


def _quarantine(now: MetricsSnapshot) -> Iterator[Sample]:
    if now.quarantined is not None:
        yield metrics.QUARANTINED, (), float(now.quarantined)


def _deliveries(now: MetricsSnapshot) -> Iterator[Sample]:
    for figures in now.deliveries:
        yield metrics.UNDELIVERED, (figures.receiver,), float(figures.undelivered)
        if figures.last_delivery_ms is not None:
            yield metrics.LAST_DELIVERY, (figures.receiver,), figures.last_delivery_ms / 1000


def _durations(now: MetricsSnapshot) -> Iterator[tuple[MetricSpec, tuple[str, ...], BucketCounts]]:
    yield metrics.BATCH, (), now.batches
    for cluster, counts in now.decisions.items():
        yield metrics.DECISION, (cluster,), counts
    for cluster, counts in now.collections.items():
        yield metrics.COLLECT, (cluster,), counts


def _add_counts(family: Metric, labels: dict[str, str], counts: BucketCounts) -> None:
    for bound, count in counts.cumulative():
        family.add_sample(f"{family.name}_bucket", {**labels, "le": bound}, count)
    family.add_sample(f"{family.name}_count", labels, sum(counts.counts))
    family.add_sample(f"{family.name}_sum", labels, counts.total_s)

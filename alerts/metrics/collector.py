"""The state of the alert path as metrics, made anew at every scrape, so that no series outlives what it tells of."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily
from prometheus_client.metrics_core import Metric
from prometheus_client.registry import Collector, CollectorRegistry

from alerts.metrics.counts import Counts
from alerts.metrics.live import LiveState, Snapshot
from alerts.metrics.moves import Sample, partition_samples, side_samples
from schemas import metrics
from schemas.findings import State
from schemas.metrics import METRICS, MetricSpec, MetricType

_FAMILIES = {MetricType.GAUGE: GaugeMetricFamily, MetricType.COUNTER: CounterMetricFamily}


class MetricsCollector(Collector):
    """Gives the metrics of ``schemas.metrics``.

    Args:
        live: state of the alert path.
        stale_s: gives the age in seconds from which a cluster's numbers are of the past.
        top_n: most partitions of a cluster that have series.
        version: version of Headroom.
        registry: takes it up.
    """

    def __init__(
        self, live: LiveState, stale_s: Callable[[str], float], top_n: int, version: str, registry: CollectorRegistry
    ) -> None:
        self._live = live
        self._stale_s = stale_s
        self._top_n = top_n
        self._version = version
        registry.register(self)

    def describe(self) -> Iterable[Metric]:
        """Return every metric without a sample: the registry asks for it when it takes the collector up."""
        return [_family(spec) for spec in METRICS]

    def collect(self) -> Iterator[Metric]:
        """Yield the metrics that have a series now."""
        now = self._live.snapshot()
        families = {spec: _family(spec) for spec in METRICS}
        for spec, labels, value in (*self._moves(now), *_alerts(now), *_ticks(now), self._build()):
            families[spec].add_metric(labels, value)
        for spec, labels, counts in _histograms(now):
            families[spec].add_metric(labels, counts.cumulative(), counts.total_s)
        yield from (family for family in families.values() if family.samples)

    def _moves(self, now: Snapshot) -> Iterator[Sample]:
        for cluster, tick in now.ticks.items():
            # Old numbers would be told as those of now.
            if tick.age_s(now.now_ms) < self._stale_s(cluster):
                yield from side_samples(cluster, tick.sides)
                yield from partition_samples(cluster, tick.sides, self._top_n)

    def _build(self) -> Sample:
        return metrics.BUILD_INFO, (self._version,), 1.0


def _family(spec: MetricSpec) -> Metric:
    if spec.type is MetricType.HISTOGRAM:
        return HistogramMetricFamily(spec.name, spec.meaning, labels=spec.labels)
    return _FAMILIES[spec.type](spec.name, spec.meaning, labels=spec.labels)


def _alerts(now: Snapshot) -> Iterator[Sample]:
    standing = Counter(
        (cluster, kind, alert.severity, alert.state)
        for (cluster, kind, _), alert in now.alerts.items()
        if alert.state != State.RESOLVED.value
    )
    yield from _counted(metrics.ALERTS, standing)
    yield from _counted(metrics.ALERT_EVENTS, now.events)


def _counted(spec: MetricSpec, counts: Mapping[tuple[str, ...], int]) -> Iterator[Sample]:
    for labels, count in sorted(counts.items()):
        yield spec, labels, float(count)


def _ticks(now: Snapshot) -> Iterator[Sample]:
    for cluster, tick in now.ticks.items():
        yield metrics.TICK_AGE, (cluster,), tick.age_s(now.now_ms)
        yield metrics.TICK_TIMESTAMP, (cluster,), tick.tick_ms / 1000
        yield metrics.ROWS, (cluster,), float(now.rows[cluster])


def _histograms(now: Snapshot) -> Iterator[tuple[MetricSpec, Sequence[str], Counts]]:
    yield metrics.BATCH, (), now.batches
    for cluster, counts in now.decisions.items():
        yield metrics.DECISION, (cluster,), counts

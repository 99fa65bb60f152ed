"""Factory of metrics sources."""

from __future__ import annotations

from headroom.cluster.metrics.exporter.jmx_exporter import PrometheusSource
from headroom.cluster.metrics.http import HttpReader
from headroom.cluster.metrics.jolokia import JolokiaSource
from headroom.cluster.metrics.rmi.jmx import JmxSource
from headroom.cluster.metrics.rmi.jmx_gateway import JmxGateway
from headroom.cluster.metrics.source import MetricsSource
from headroom.schemas.config import CollectSettings, Source


def metrics_sources(collect: CollectSettings) -> tuple[MetricsSource, MetricsSource]:
    """Return two sources of ``collect.source``, of which neither waits for the reads of the other, not started yet."""
    if collect.source is Source.JMX:
        # One JVM serves both.
        gateway = JmxGateway(collect)
        return JmxSource(gateway), JmxSource(gateway)
    return metrics_source(collect), metrics_source(collect)


def metrics_source(collect: CollectSettings) -> MetricsSource:
    """Return the source of ``collect.source``, not started yet."""
    if collect.source is Source.JOLOKIA:
        return JolokiaSource(HttpReader(collect), collect.http_path)
    if collect.source is Source.PROMETHEUS:
        return PrometheusSource(HttpReader(collect), collect.http_path)
    return JmxSource(JmxGateway(collect))

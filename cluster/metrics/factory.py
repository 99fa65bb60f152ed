"""The source of brokers' metrics that the settings name."""

from __future__ import annotations

from cluster.http_reader import HttpReader
from cluster.jmx import JmxSource
from cluster.jmx_gateway import JmxGateway
from cluster.jolokia import JolokiaSource
from cluster.metrics_source import MetricsSource
from cluster.prometheus import PrometheusSource
from schemas.config import CollectSettings, Source


def metrics_source(collect: CollectSettings) -> MetricsSource:
    """Return the source that ``collect.source`` names, not started yet."""
    if collect.source is Source.JOLOKIA:
        return JolokiaSource(HttpReader(collect), collect.http_path)
    if collect.source is Source.PROMETHEUS:
        return PrometheusSource(HttpReader(collect), collect.http_path)
    return JmxSource(JmxGateway(collect))

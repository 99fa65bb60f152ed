"""Loads that a broker's source leaves out, with the goals of ``headroom balance`` that are lost for it."""

from __future__ import annotations

from collections.abc import Iterator

from headroom.cluster.metrics.load_meters import (
    FETCH_REQUESTS,
    FOLLOWER_FETCH_P99,
    HANDLER_IDLE,
    LOG_FLUSH_P999,
    PRODUCE_P99,
    PRODUCE_REQUESTS,
    fetch_requests,
    produce_requests,
    topic_consumed,
)
from headroom.cluster.metrics.missing_metrics import MissingMetric, as_rate_suffix
from headroom.cluster.model import Metrics

_GAUGES = (
    (LOG_FLUSH_P999, "LogFlushStats LogFlushRateAndTimeMs 999thPercentile", "slow brokers are not detected"),
    (PRODUCE_P99, "RequestMetrics TotalTimeMs of Produce 99thPercentile", "no times of produce requests"),
    (
        FOLLOWER_FETCH_P99,
        "RequestMetrics TotalTimeMs of FetchFollower 99thPercentile",
        "no times of followers' fetches",
    ),
)


def find_missing_load(metrics: Metrics) -> list[MissingMetric]:
    """Return the loads that are missing from a broker's answer.

    A broker has meters of a topic only after its first request, so those of topics are missing if the broker's own
    meter shows that there were requests, or is missing too.
    """
    gauges = (MissingMetric(name, consequence) for meter, name, consequence in _GAUGES if meter not in metrics.gauges)
    return [*_missing_counters(metrics), *gauges]


def _missing_counters(metrics: Metrics) -> Iterator[MissingMetric]:
    for meter, name, goal in (
        (produce_requests(), PRODUCE_REQUESTS, "requests"),
        (fetch_requests(), FETCH_REQUESTS, "requests"),
        (topic_consumed(), "BytesOutPerSec", "network_out"),
    ):
        total = metrics.counters.get(meter)
        any_topic = any(counter.topic is not None and counter.meter == meter.meter for counter in metrics.counters)
        if not any_topic and (total is None or total.value):
            suffix = as_rate_suffix(meter.meter, metrics)
            consequence = f"the goal {goal} of headroom balance is lost"
            yield MissingMetric(f"BrokerTopicMetrics {name} of topics{suffix}", consequence, certain=total is None)
    if HANDLER_IDLE not in metrics.counters:
        suffix = as_rate_suffix(HANDLER_IDLE.meter, metrics)
        name = f"KafkaRequestHandlerPool RequestHandlerAvgIdlePercent Count{suffix}"
        yield MissingMetric(name, "no idle ratio of the request handlers")

"""What cannot be told of a broker because its source leaves out metrics, and how to have them told."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from cluster.metrics.mbeans import ReadPlan, topic_bytes, topic_messages
from cluster.model import Meter, Metrics
from schemas.config import Source

_BYTES_IN = Meter("BrokerTopicMetrics.BytesInPerSec")
REMEDIES = {
    Source.JMX: "See that this is the broker's own JMX port, with nothing before it that filters.",
    Source.JOLOKIA: "Allow it in the agent's jolokia-access.xml; docker/jolokia-access.xml allows all that is needed.",
    Source.PROMETHEUS: (
        "Export it: add it to includeObjectNames and the rules; docker/jmx_exporter.yml has all that is needed."
    ),
}


# Of a number, as many as tell what it is.
_DIGITS = 24


class MissingMetric(NamedTuple):
    """A metric that was not told, and what is not known without it.

    Attributes:
        metric: the MBean.
        lost: what is not known.
        certain: whether the broker has it; false: it may have none just now.
        passing: whether a broker lacks it for a moment too, from when it begins to follow until its first fetch.
    """

    metric: str
    lost: str
    certain: bool = True
    passing: bool = False


def find_missing_metrics(plan: ReadPlan, metrics: Metrics) -> list[MissingMetric]:
    """Return what a broker's answer leaves out although the broker has it.

    The byte-rate of the quotas is never among them: brokers have it only while a throttle is at work.
    """
    return list(_losses(plan, metrics))


def describe_missing(found: list[MissingMetric], source: Source) -> str | None:
    """Return what is certainly lost, and what to do about it where brokers are read so; None: nothing is."""
    parts = "; ".join(f"{loss.metric} (without it: {loss.lost})" for loss in found if loss.certain)
    return f"answers, but leaves out {parts}. {REMEDIES[source]}" if parts else None


def disbelieved(metrics: Metrics) -> str | None:
    """Return which numbers no broker can mean, and what to do about it; None: there are none."""
    if not metrics.impossible:
        return None
    mbean, value = metrics.impossible[0]
    others = f", and {len(metrics.impossible) - 1} more numbers" if len(metrics.impossible) > 1 else ""
    return (
        f"answers that {mbean} is {str(value)[:_DIGITS]}{others}, which no broker can mean. "
        "See what answers in the broker's place, and the agent's log."
    )


def _losses(plan: ReadPlan, metrics: Metrics) -> Iterator[MissingMetric]:
    if metrics.started_ms is None:
        yield MissingMetric("java.lang:type=Runtime StartTime", "no rate, for a restart would not be seen")
    yield from _lost_logs(plan, metrics)
    yield from _lost_topics(plan, metrics)
    if plan.follows and not metrics.lags:
        yield MissingMetric(
            "FetcherLagMetrics ConsumerLag", "no replication lag of this broker's replicas", passing=True
        )
    if plan.follows and not any(meter.fetcher for meter in metrics.counters):
        metric = f"FetcherStats BytesPerSec{_as_rate('FetcherStats.BytesPerSec', metrics)}"
        yield MissingMetric(metric, "no rate per fetcher", passing=True)
    if not any(meter.meter.startswith("ReplicaManager.") for meter in metrics.gauges):
        yield MissingMetric("ReplicaManager", "no counts of under-replicated and moving partitions")
    if _BYTES_IN not in metrics.counters:
        yield MissingMetric(
            f"BrokerTopicMetrics{_as_rate(_BYTES_IN.meter, metrics)}", "no traffic of the broker as a whole"
        )


def _lost_logs(plan: ReadPlan, metrics: Metrics) -> Iterator[MissingMetric]:
    wanted = {*plan.leads, *plan.watched}
    missing = len(wanted - metrics.logs.keys())
    # Topics are made and deleted between the metadata and this; more than a few of them are not.
    if wanted and missing > max(len(wanted) // 10, 3 if metrics.logs else 0):
        passing = " of these; those of partitions just made or deleted lack for a tick or two" if metrics.logs else ""
        lost = f"no write rate, progress or verdict{passing}"
        yield MissingMetric(f"Log LogEndOffset of {missing} of {len(wanted)} logs", lost)
    watched = [metrics.logs[name] for name in plan.watched if name in metrics.logs]
    for part, values in (
        ("Size", [log.size_bytes for log in watched]),
        ("LogStartOffset", [log.log_start_offset for log in watched]),
    ):
        if watched and all(value is None for value in values):
            yield MissingMetric(f"Log {part}", "write rates only from the mean size of a topic's messages")


def _lost_topics(plan: ReadPlan, metrics: Metrics) -> Iterator[MissingMetric]:
    # A topic has meters once something was written to it; the broker's own meter is always there, and tells whether.
    whole = metrics.counters.get(_BYTES_IN)
    if not plan.topics or (whole is not None and whole.value == 0):
        return
    for name, meter_of in (("BytesInPerSec", topic_bytes), ("MessagesInPerSec", topic_messages)):
        if not any(meter_of(topic) in metrics.counters for topic in plan.topics):
            rate = _as_rate(f"BrokerTopicMetrics.{name}", metrics)
            lost = "no write rate of compacted or trimmed topics"
            yield MissingMetric(f"BrokerTopicMetrics {name} of topics{rate}", lost, certain=whole is None)


def _as_rate(meter: str, metrics: Metrics) -> str:
    return " as a count (only as a rate, which lags behind by minutes)" if meter in metrics.rates_only else ""

"""Metrics that a broker's source does not export, with their consequences and remedies."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from headroom.cluster.metrics.mbeans import ReadPlan, topic_bytes, topic_messages
from headroom.cluster.model import Meter, Metrics
from headroom.schemas.config import Source
from headroom.schemas.keys import TopicPartition

_BYTES_IN = Meter("BrokerTopicMetrics.BytesInPerSec")
REMEDIES = {
    Source.JMX: "See that this is the broker's own JMX port, with nothing before it that filters.",
    Source.JOLOKIA: "Allow it in the agent's jolokia-access.xml; docker/jolokia-access.xml allows all that is needed.",
    Source.PROMETHEUS: (
        "Export it: add it to includeObjectNames and the rules; docker/jmx_exporter.yml has all that is needed."
    ),
}
# Signs of topic names that \w of a rule does not match.
_SIGN = re.compile(r"[.-]")
# Most topics in a text.
_MAX_TOPICS = 5
# Maximum characters of a number in a text.
_DIGITS = 24


class MissingMetric(NamedTuple):
    """A metric that is missing from a broker's answer.

    Attributes:
        metric: the MBean.
        consequence: the values that are unknown without it.
        certain: whether the broker surely has the metric.
        transient: whether it is also missing for a moment: of a replica that is just created or deleted, or from when a
            broker starts to follow until its first fetch. It counts from the second answer on.
        at_once: whether a transient metric counts in the first answer of a broker all the same.
    """

    metric: str
    consequence: str
    certain: bool = True
    transient: bool = False
    at_once: bool = False

    @property
    def base(self) -> str:
        """The metric without the topics or logs that lack it, which may change from answer to answer."""
        return self.metric.partition(" of ")[0]


def find_missing_metrics(plan: ReadPlan, metrics: Metrics) -> list[MissingMetric]:
    """Return the metrics that are missing from a broker's answer.

    The byte-rate of the quotas is never among them, because brokers have it only while a throttle is active.
    """
    return list(_iterate_missing(plan, metrics))


def describe_missing(missing: list[MissingMetric], source: Source) -> str | None:
    """Return a text with the certainly missing metrics and the remedy for this source; None if there are none."""
    parts = "; ".join(f"{m.metric} (without it: {m.consequence})" for m in missing if m.certain)
    return f"answers, but leaves out {parts}. {REMEDIES[source]}" if parts else None


def describe_impossible(metrics: Metrics) -> str | None:
    """Return a text with the values outside their valid range and a remedy; None if there are none."""
    if not metrics.impossible:
        return None
    mbean, value = metrics.impossible[0]
    others = f", and {len(metrics.impossible) - 1} more numbers" if len(metrics.impossible) > 1 else ""
    return (
        f"answers that {mbean} is {str(value)[:_DIGITS]}{others}, which no broker can mean. "
        "See what answers in the broker's place, and the agent's log."
    )


def _iterate_missing(plan: ReadPlan, metrics: Metrics) -> Iterator[MissingMetric]:
    if metrics.started_ms is None:
        is_counted = _BYTES_IN in metrics.counters
        consequence = (
            "a restart shows only in counters that fall"
            if is_counted
            else "no rate, because a restart would not be detected"
        )
        yield MissingMetric("java.lang:type=Runtime StartTime", consequence, certain=not is_counted)
    yield from _missing_logs(plan, metrics)
    yield from _missing_topic_meters(plan, metrics)
    if plan.follows and not metrics.lags:
        yield MissingMetric(
            "FetcherLagMetrics ConsumerLag", "no replication lag of this broker's replicas", transient=True
        )
    if plan.follows and not any(meter.fetcher for meter in metrics.counters):
        metric = f"FetcherStats BytesPerSec{as_rate_suffix('FetcherStats.BytesPerSec', metrics)}"
        yield MissingMetric(metric, "no rate per fetcher", transient=True)
    if not any(meter.meter.startswith("ReplicaManager.") for meter in metrics.gauges):
        yield MissingMetric("ReplicaManager", "no counts of under-replicated and moving partitions")
    if _BYTES_IN not in metrics.counters:
        yield MissingMetric(
            f"BrokerTopicMetrics{as_rate_suffix(_BYTES_IN.meter, metrics)}", "no traffic of the broker as a whole"
        )


def _missing_logs(plan: ReadPlan, metrics: Metrics) -> Iterator[MissingMetric]:
    wanted = {*plan.leads, *plan.watched}
    absent = wanted - metrics.logs.keys()
    missing = len(absent)
    left_out = _left_out_by_name(absent, metrics)
    if left_out:
        names = f"{', '.join(left_out[:_MAX_TOPICS])}{' ...' if len(left_out) > _MAX_TOPICS else ''}"
        consequence = (
            "no write rate, progress or verdict of these: a rule with topic=(\\w+) leaves out names with dots or "
            "dashes; those just created or deleted are missing for a tick or two"
        )
        yield MissingMetric(f"Log LogEndOffset of topics {names}", consequence, transient=True, at_once=True)
        missing = 0
    # A few logs may be missing because topics are created and deleted between metadata and metrics.
    if wanted and missing > max(len(wanted) // 10, 3 if metrics.logs else 0):
        scope = (
            " of these; those of partitions just created or deleted are missing for a tick or two"
            if metrics.logs
            else ""
        )
        consequence = f"no write rate, progress or verdict{scope}"
        yield MissingMetric(
            f"Log LogEndOffset of {missing} of {len(wanted)} logs", consequence, transient=True, at_once=True
        )
    watched = [metrics.logs[name] for name in plan.watched if name in metrics.logs]
    for part, values in (
        ("Size", [log.size_bytes for log in watched]),
        ("LogStartOffset", [log.log_start_offset for log in watched]),
    ):
        if watched and all(value is None for value in values):
            yield MissingMetric(f"Log {part}", "write rates only from the mean size of a topic's messages")


def _left_out_by_name(absent: Iterable[TopicPartition], metrics: Metrics) -> list[str]:
    """Return the topics of absent logs if their names explain it: all have a sign that no topic of a log has."""
    topics = sorted({name.topic for name in absent})
    has_others = metrics.logs and not any(_SIGN.search(name.topic) for name in metrics.logs)
    return topics if has_others and all(map(_SIGN.search, topics)) else []


def _missing_topic_meters(plan: ReadPlan, metrics: Metrics) -> Iterator[MissingMetric]:
    # A topic has meters only after its first write; the broker's own meter always exists and shows writes.
    broker_bytes = metrics.counters.get(_BYTES_IN)
    if not plan.topics or (broker_bytes is not None and broker_bytes.value == 0):
        return
    for name, meter_of in (("BytesInPerSec", topic_bytes), ("MessagesInPerSec", topic_messages)):
        if not any(meter_of(topic) in metrics.counters for topic in plan.topics):
            rate = as_rate_suffix(f"BrokerTopicMetrics.{name}", metrics)
            consequence = "no write rate of compacted or trimmed topics"
            yield MissingMetric(f"BrokerTopicMetrics {name} of topics{rate}", consequence, certain=broker_bytes is None)


def as_rate_suffix(meter: str, metrics: Metrics) -> str:
    """Return what a text adds to the name of a meter that is exported only as a rate; empty for others."""
    return " as a count (only as a rate, which lags behind by minutes)" if meter in metrics.rates_only else ""

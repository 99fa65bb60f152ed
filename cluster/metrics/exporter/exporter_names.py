"""Maps the metric names and labels of common jmx_exporter configurations to MBeans.

A configuration may lower the case of names and labels, omit ``PerSec``, or add ``_total``, ``_count``, ``_value`` or an
attribute's name. Without rules it puts the MBean's name in a label. Patterns are greedy, so one of three keys may end
up in the name of the metric or of a label, together with the fetcher. Some configurations export only rates, under
names that others give to counts.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from functools import lru_cache
from typing import NamedTuple

from headroom.cluster.metrics.load_meters import (
    BROKER_IDLE,
    FETCH_REQUESTS,
    FLUSH_TIMES,
    FOLLOWER_FETCH,
    HANDLER_POOL,
    PERCENTILES,
    PROCESS_IDLE,
    PRODUCE,
    PRODUCE_REQUESTS,
    TIMES,
)
from headroom.cluster.metrics.mbeans import (
    APP_INFO,
    BROKER_METERS,
    EXPORTER,
    FUTURE,
    GAUGES,
    LOG_PARTS,
    QUOTAS,
    TOPIC_METERS,
)

_DOMAIN = re.compile(r"(?:^|_)kafka_(server|log|network)_(.+)$")
# Keys of the MBean within the metric's name: a fetcher, and with it a partition or the broker fetched from.
_KEYS_IN_NAME = re.compile(
    r"_client_?id_replicafetcherthread_(\d+)_(\d+)"
    r"(?:_topic_(?P<topic>.+)_partition_(?P<partition>\d+)|_brokerhost_.+_brokerport_\d+)?(?P<rest>_value|_count|_total)?$"
)
_FETCHER_IN_LABEL = re.compile(r"client_?id_replicafetcherthread_(\d+)_(\d+)", re.IGNORECASE)
# In a label's value: a greedy rule puts the key into another label, and the exporter adds the object name
# (_objectname) to samples that would otherwise have equal labels.
_FUTURE_IN_VALUE = f"{FUTURE}=true"
_GAUGE = re.compile(r"(?:total)?(.*?)(?:value)?")
_RATES = "(?:one|five|fifteen)minuterate|meanrate"
_METER = re.compile(rf"(?:total)?(.*?)(?:persec)?(?:total|count|({_RATES}))?(?:count|total|({_RATES}))?(?:alltopics)?")
# A percentile: 99thPercentile in the name, or none there and the label quantile.
_PERCENTILE = re.compile(r"(.*?)(?:(\d+)thpercentile)?")

# Labels, in lower case and without signs, and the keys of MBeans that they are made of.
_KEYS = {
    "topic": "topic",
    "partition": "partition",
    "name": "name",
    "isfuture": FUTURE,
    "request": "request",
    "quantile": "quantile",
    "id": "id",
}
_REQUESTS = {request.lower(): request for request in (PRODUCE, FOLLOWER_FETCH)}


def _plain_names(names: Iterable[str], ending: str = "") -> dict[str, str]:
    return {name.removesuffix(ending).lower(): name for name in names}


_METERS = {
    "BrokerTopicMetrics": {
        **_plain_names({*BROKER_METERS, *TOPIC_METERS}, "PerSec"),
        # Without their first word, which some configurations add to all counts.
        "producerequests": PRODUCE_REQUESTS,
        "fetchrequests": FETCH_REQUESTS,
    },
    "FetcherStats": {"bytes": "BytesPerSec"},
    HANDLER_POOL: _plain_names((BROKER_IDLE, PROCESS_IDLE)),
}
_TIMES = {"RequestMetrics": TIMES, "LogFlushStats": FLUSH_TIMES}
_GAUGES = {
    "FetcherLagMetrics": {"consumerlag": "ConsumerLag"},
    "ReplicaManager": _plain_names(GAUGES),
}
# Of kafka_log_Log_LogEndOffset, kafka_log_logendoffset and kafka_log_size, after a first "log" is taken off.
_LOGS = {**_plain_names(LOG_PARTS), "endoffset": "LogEndOffset", "startoffset": "LogStartOffset"}


# 1 if the exporter could not read the broker: the other values are then of an earlier scrape, or incomplete.
SCRAPE_ERROR = "jmx_scrape_error"


class Meaning(NamedTuple):
    """The MBean behind a metric name.

    Attributes:
        metric: the metric name.
        kind: type of the MBean.
        name: name of the MBean; None if the label ``name`` has it, or there is none.
        counts: whether the value may be a count; false: it is a gauge.
        rate: whether the value is the broker's own mean rate, which is not used.
        factor: factor for the values.
        fetcher: fetcher in the metric's name; None if there is none.
        topic: topic in the metric's name, as spelled there; None if there is none.
        partition: partition in the metric's name; None if there is none.
        quantile: quantile that the label ``quantile`` must have, 0 to 1; None if the metric's name has it, or none is
            meant.
    """

    metric: str
    kind: str
    name: str | None
    counts: bool = False
    rate: bool = False
    factor: float = 1
    fetcher: str | None = None
    topic: str | None = None
    partition: str | None = None
    quantile: float | None = None


def meaning_of(metric: str) -> Meaning | None:
    """Return the meaning of a metric name; None if the metric is not used."""
    lower = metric.lower()
    if lower.endswith("java_lang_runtime_starttime"):
        return Meaning(metric, "Runtime", None)
    if lower.endswith("kafka_server_app_info_starttimems"):
        return Meaning(metric, APP_INFO.kind, None)
    if lower == SCRAPE_ERROR:
        return Meaning(metric, SCRAPE_ERROR, None)
    if lower == "process_start_time_seconds":
        return Meaning(metric, "Runtime", EXPORTER, factor=1000)
    domain = _DOMAIN.search(lower)
    if domain is None:
        return None
    inner = _KEYS_IN_NAME.search(domain[2])
    plain = (domain[2][: inner.start()] + (inner["rest"] or "") if inner else domain[2]).replace("_", "")
    meaning = _of_percentile(metric, plain) or (
        _of_log(metric, plain) if domain[1] == "log" else _of_server(metric, plain)
    )
    if meaning is None or inner is None:
        return meaning
    return meaning._replace(fetcher=_thread(inner[1], inner[2]), topic=inner["topic"], partition=inner["partition"])


def keys_in(meaning: Meaning, labels: dict[str, str], topic_of: Callable[[str], str | None]) -> dict[str, str]:
    """Return the keys of the MBean behind a sample, including ``name`` and ``is-future`` if a label has them.

    Args:
        meaning: meaning of the metric.
        labels: labels of the sample.
        topic_of: returns the topic with this spelling in metric names; None if it is unknown.
    """
    keys: dict[str, str] = {}
    for label, value in labels.items():
        if _FUTURE_IN_VALUE in value:
            keys[FUTURE] = "true"
        key = _key_of(label)
        if key is not None:
            keys[key] = _REQUESTS.get(value.lower(), value) if key == "request" else value
        elif value.startswith("ReplicaFetcherThread-"):
            keys["clientId"] = value
        elif fetcher := _fetcher_in(label):
            keys["clientId"] = fetcher
    if meaning.fetcher is not None:
        keys["clientId"] = meaning.fetcher
    if meaning.topic is not None and meaning.partition is not None:
        topic = topic_of(meaning.topic)
        keys.update({"topic": topic, "partition": meaning.partition} if topic is not None else {})
    return keys


def has_quantile(meaning: Meaning, keys: dict[str, str]) -> bool:
    """Return whether a sample is of the percentile that is read; true for metrics that are no percentiles.

    Args:
        meaning: meaning of the metric.
        keys: keys of the sample. A metric without a quantile may be the number of the times that were measured.
    """
    if meaning.quantile is None:
        return True
    try:
        return float(keys.get("quantile", "")) == meaning.quantile
    except ValueError:
        return False


def spelled_in_metrics(topic: str) -> str:
    """Return the spelling of a topic in the name of a metric."""
    return re.sub(r"[^a-z0-9:]+", "_", topic.lower())


def _of_percentile(metric: str, plain: str) -> Meaning | None:
    for kind, name in _TIMES.items():
        if plain.startswith(kind.lower()):
            match = _PERCENTILE.fullmatch(plain, len(kind))
            digits = PERCENTILES[kind].removesuffix("thPercentile")
            if match is None or match[1] not in ("", name.lower()) or match[2] not in (None, digits):
                return None
            known = name if match[1] else None
            return Meaning(metric, kind, known, quantile=None if match[2] else float(f"0.{digits}"))
    return None


def _of_log(metric: str, plain: str) -> Meaning | None:
    inner = plain.removeprefix("log")
    if inner in ("value", ""):
        return Meaning(metric, "Log", None)
    name = _LOGS.get(inner.removesuffix("value"))
    return Meaning(metric, "Log", name) if name else None


def _of_server(metric: str, plain: str) -> Meaning | None:
    for kind in (*_METERS, *_GAUGES, *QUOTAS):
        if plain.startswith(kind.lower()):
            rest = plain[len(kind) :]
            if kind in QUOTAS:
                return Meaning(metric, kind, None) if rest == "byterate" else None
            return _of_meter(metric, kind, rest) if kind in _METERS else _of_gauge(metric, kind, rest)
    return None


def _of_gauge(metric: str, kind: str, rest: str) -> Meaning | None:
    match = _GAUGE.fullmatch(rest)
    if match is None or (match[1] and match[1] not in _GAUGES[kind]):
        return None
    return Meaning(metric, kind, _GAUGES[kind].get(match[1]))


def _of_meter(metric: str, kind: str, rest: str) -> Meaning | None:
    match = _METER.fullmatch(rest)
    if match is None or (match[1] and match[1] not in _METERS[kind]):
        return None
    return Meaning(metric, kind, _METERS[kind].get(match[1]), counts=True, rate=bool(match[2] or match[3]))


def _thread(number: str, broker: str) -> str:
    return f"ReplicaFetcherThread-{number}-{broker}"


@lru_cache(maxsize=10_000)
def _key_of(label: str) -> str | None:
    plain = label.lower().replace("_", "")
    return _KEYS.get(plain)


@lru_cache(maxsize=10_000)
def _fetcher_in(label: str) -> str | None:
    match = _FETCHER_IN_LABEL.search(label)
    return _thread(match[1], match[2]) if match else None

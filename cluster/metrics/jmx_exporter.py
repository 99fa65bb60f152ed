"""Reading brokers by Prometheus' jmx_exporter: one scrape of all that it exports."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping

from cluster.metrics.exporter_names import Meaning, keys_in, left_in_name, meaning_of
from cluster.metrics.http import Deadline, HttpReader, Request, Response
from cluster.metrics.mbeans import MetricsAccumulator, ReadPlan, reading
from cluster.metrics.source import NOT_ITS_OWN, MetricsError, check_plausible
from cluster.metrics.text_format import read_samples
from cluster.model import Metrics

DEFAULT_PATH = "/metrics"
_ACCEPT = {"Accept": "text/plain;version=0.0.4"}

# Meters whose counts matter to a finding.
_METERS = {
    "BrokerTopicMetrics.BytesInPerSec",
    "BrokerTopicMetrics.MessagesInPerSec",
    "FetcherStats.BytesPerSec",
}


class PrometheusSource:
    """Metrics by jmx_exporter. One thread at a time may read one broker; different brokers side by side.

    Args:
        http: asks the exporters.
        path: where the exporter answers; empty: where it does by default.
    """

    def __init__(self, http: HttpReader, path: str) -> None:
        self._http = http
        self._path = path or DEFAULT_PATH

    def start(self) -> None:
        """Need nothing."""

    def stop(self) -> None:
        """Close every connection."""
        self._http.close()

    def read(self, broker: int, endpoint: str, plan: ReadPlan, timeout_s: float) -> Metrics:
        """Return what the broker's MBeans say, as far as the exporter's configuration lets it.

        Raises:
            MetricsError: it could not be reached, did not answer within ``timeout_s`` seconds, or not wholly.
        """
        answer = self._http.ask(broker, endpoint, Request(self._path, None, _ACCEPT), Deadline(timeout_s))
        where = f"jmx_exporter {endpoint}"
        try:
            metrics = parse(answer, plan)
        except ValueError as error:
            rule = f"the answer is not in Prometheus' text format: {error}"
            raise MetricsError(where, self._http.shown(rule), NOT_ITS_OWN) from None
        return check_plausible(metrics, plan, where)


def parse(answer: Response, plan: ReadPlan) -> Metrics:
    """Return what an answer in Prometheus' text format says.

    Raises:
        ValueError: it was cut off, or is not in that format.
    """
    gathered, meters, topics = MetricsAccumulator(plan), _Meters(), _topics_left(plan)
    for meaning, labels, value in read_samples(answer.body.decode(), meaning_of):
        keys = keys_in(meaning, labels, topics.get)
        name = meaning.name or keys.pop("name", None)
        if meaning.counts:
            meters.add(meaning, name or "", keys, value)
        else:
            gathered.take(meaning.kind, name, keys, reading(answer.read_ms, value * meaning.factor))
    rates_only = meters.give(gathered, answer.read_ms)
    return gathered.metrics(rates_only & _METERS)


class _Meters:
    """The meters of one answer, held until all of a metric's values tell whether they are counts.

    Configurations give a count and a mean rate the same name; but a count is whole, and of the values of a rate some
    are not.
    """

    def __init__(self) -> None:
        self._counts: dict[tuple[str, str, str], list[tuple[Mapping[str, str], float]]] = {}
        self._rates: set[str] = set()

    def add(self, meaning: Meaning, name: str, keys: Mapping[str, str], value: float) -> None:
        """Keep a value of the MBean of this name and further keys."""
        if meaning.rate:
            self._rates.add(f"{meaning.kind}.{name}")
        elif math.isfinite(value):
            self._counts.setdefault((meaning.kind, name, meaning.metric), []).append((keys, value))

    def give(self, gathered: MetricsAccumulator, read_ms: int) -> set[str]:
        """Put the counts where they belong, and return the meters of which there are rates alone."""
        counted = set()
        for (kind, name, _), values in self._counts.items():
            if all(value.is_integer() for _, value in values):
                counted.add(f"{kind}.{name}")
                for keys, value in values:
                    gathered.take(kind, name, keys, reading(read_ms, value))
            else:
                self._rates.add(f"{kind}.{name}")
        return self._rates - counted


def _topics_left(plan: ReadPlan) -> dict[str, str]:
    """Return the topics by what is left of them in a metric's name, without those that look alike there."""
    topics = {*plan.topics, *(name.topic for name in plan.watched)}
    alike = Counter(map(left_in_name, topics))
    return {left: topic for topic in topics if alike[left := left_in_name(topic)] == 1}

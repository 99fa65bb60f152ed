"""Metrics source for Prometheus' jmx_exporter: one scrape per broker and tick."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping

from headroom.cluster.metrics.exporter.exporter_names import (
    SCRAPE_ERROR,
    Meaning,
    has_quantile,
    keys_in,
    meaning_of,
    spelled_in_metrics,
)
from headroom.cluster.metrics.exporter.text_format import read_samples
from headroom.cluster.metrics.http import Deadline, HttpReader, Request, Response
from headroom.cluster.metrics.load_meters import HANDLER_IDLE, LOAD_TOPIC_METERS
from headroom.cluster.metrics.mbeans import MetricsAccumulator, ReadPlan, reading
from headroom.cluster.metrics.source import NOT_ITS_OWN, MetricsError, check_plausible
from headroom.cluster.model import Metrics

DEFAULT_PATH = "/metrics"
_ACCEPT = {"Accept": "text/plain;version=0.0.4"}

# Oldest samples with a time of their own that count as those of now. Clocks of machines differ by less.
_OLDEST_MS = 10_000
_NOT_A_CACHE = (
    "Name the exporter itself under [collect.endpoints], not a cache or a Prometheus, and compare the machines' clocks."
)
_SLOW_SCRAPE = "See the exporter's log, and let it export less: docker/jmx_exporter.yml has all that is needed."
# Meters whose counts matter to a finding.
_METERS = {
    "BrokerTopicMetrics.BytesInPerSec",
    "BrokerTopicMetrics.MessagesInPerSec",
    "FetcherStats.BytesPerSec",
    *(f"BrokerTopicMetrics.{name}" for name in LOAD_TOPIC_METERS),
    HANDLER_IDLE.meter,
}


class StaleAnswerError(Exception):
    """The values of an answer are of an earlier time: the violated rule, and a remedy."""

    def __init__(self, rule: str, remedy: str) -> None:
        super().__init__(rule)
        self.rule = rule
        self.remedy = remedy


class PrometheusSource:
    """Reads metrics from jmx_exporter. At most one thread at a time per broker.

    Args:
        http: HTTP client for the exporters.
        path: path of the exporter; empty: the default path.
    """

    def __init__(self, http: HttpReader, path: str) -> None:
        self._http = http
        self._path = path or DEFAULT_PATH

    def start(self) -> None:
        """Do nothing: connections are opened at the first read."""

    def stop(self) -> None:
        """Close every connection."""
        self._http.close()

    def read(self, broker: int, endpoint: str, plan: ReadPlan, timeout_s: float) -> Metrics:
        """Return the broker's metrics, as far as the exporter's configuration includes them.

        Raises:
            MetricsError: the exporter could not be reached, or gave no complete answer within ``timeout_s`` seconds.
        """
        response = self._http.ask(broker, endpoint, Request(self._path, None, _ACCEPT), Deadline(timeout_s))
        where = f"jmx_exporter {endpoint}"
        try:
            metrics = parse(response, plan)
        except StaleAnswerError as error:
            raise MetricsError(where, error.rule, error.remedy) from None
        except ValueError as error:
            rule = f"the answer is not in Prometheus' text format: {error}"
            raise MetricsError(where, self._http.safe_line(rule), NOT_ITS_OWN) from None
        return check_plausible(metrics, broker, plan, where)


def parse(response: Response, plan: ReadPlan) -> Metrics:
    """Return the metrics in an answer in the Prometheus text format.

    Raises:
        ValueError: the answer is truncated, or not in that format.
        StaleAnswerError: its values are of an earlier time.
    """
    accumulator, meters, topics = MetricsAccumulator(plan), _MeterValues(), _topics_by_spelling(plan)

    def planned_meaning(metric: str) -> Meaning | None:
        # An exporter exports everything at every scrape. Lines that are not read cost no parsing of their labels.
        candidate = meaning_of(metric)
        if candidate is not None and candidate.kind == SCRAPE_ERROR:
            return candidate
        return candidate if candidate is not None and plan.includes(candidate.kind, candidate.name) else None

    for meaning, labels, value, time_ms in read_samples(response.body.decode(), planned_meaning):
        if time_ms is not None and response.read_ms - time_ms > _OLDEST_MS:
            age_s = (response.read_ms - time_ms) / 1000
            raise StaleAnswerError(f"its samples are {age_s:.0f} s old by their own time", _NOT_A_CACHE)
        if meaning.kind == SCRAPE_ERROR:
            if value:
                raise StaleAnswerError("could not read the broker (jmx_scrape_error): its values are old", _SLOW_SCRAPE)
            continue
        keys = keys_in(meaning, labels, topics.get)
        name = meaning.name or keys.pop("name", None)
        if not has_quantile(meaning, keys):
            continue
        if meaning.counts:
            meters.add(meaning, name or "", keys, value)
        else:
            accumulator.add(meaning.kind, name, keys, reading(response.read_ms, value * meaning.factor))
    rates_only = meters.add_counts_to(accumulator, response.read_ms)
    return accumulator.metrics(rates_only & _METERS)


class _MeterValues:
    """Collects the meters of one answer until all values of a metric show whether they are counts.

    Some configurations give a mean rate the name that others give a count. Counts are integers; of the values of a rate
    some are not.
    """

    def __init__(self) -> None:
        self._counts: dict[tuple[str, str, str], list[tuple[Mapping[str, str], float]]] = {}
        self._rates: set[str] = set()

    def add(self, meaning: Meaning, name: str, keys: Mapping[str, str], value: float) -> None:
        """Add a value of the MBean with this name and further keys."""
        if meaning.rate:
            self._rates.add(f"{meaning.kind}.{name}")
        elif math.isfinite(value):
            self._counts.setdefault((meaning.kind, name, meaning.metric), []).append((keys, value))

    def add_counts_to(self, accumulator: MetricsAccumulator, read_ms: int) -> set[str]:
        """Add the counts to the accumulator and return the meters that are exported only as rates."""
        counted = set()
        for (kind, name, _), values in self._counts.items():
            if all(value.is_integer() for _, value in values):
                counted.add(f"{kind}.{name}")
                for keys, value in values:
                    accumulator.add(kind, name, keys, reading(read_ms, value))
            else:
                self._rates.add(f"{kind}.{name}")
        return self._rates - counted


def _topics_by_spelling(plan: ReadPlan) -> dict[str, str]:
    """Return the topics by their spelling in metric names, without topics that share a spelling."""
    topics = {*plan.topics, *(name.topic for name in plan.watched)}
    count_of = Counter(map(spelled_in_metrics, topics))
    return {spelling: topic for topic in topics if count_of[spelling := spelled_in_metrics(topic)] == 1}

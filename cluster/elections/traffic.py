"""What producers write to each partition and consumers read of it, from two samples of the brokers' counters.

Brokers count bytes per topic, not per partition. What a broker takes in of a topic is divided among the partitions that
it leads by how many records each of them took meanwhile, as its log end tells; what is read of the topic there, evenly.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property

from cluster.metrics.mbeans import topic_bytes, topic_consumed
from cluster.model import Meter, Metrics, Partition, TopicPartition

_BYTES_IN, _BYTES_OUT = (Meter(f"BrokerTopicMetrics.{name}") for name in ("BytesInPerSec", "BytesOutPerSec"))


@dataclass(frozen=True)
class Traffic:
    """Bytes per second.

    Attributes:
        written: what is appended to each partition; one that is missing is unknown.
        read: what consumers fetch of each partition from its leader; one that is missing is unknown.
        cluster_written: what producers write to all brokers together; None: one of them did not tell.
        silent: brokers that are alive and of which nothing could be measured, with the reason.
    """

    written: Mapping[TopicPartition, float] = field(default_factory=dict)
    read: Mapping[TopicPartition, float] = field(default_factory=dict)
    cluster_written: float | None = None
    silent: Mapping[int, str] = field(default_factory=dict)


@dataclass(frozen=True)
class CounterSample:
    """What the brokers told at one time.

    Attributes:
        metrics: by broker that answered.
        silent: brokers that did not, with the reason.
    """

    metrics: Mapping[int, Metrics]
    silent: Mapping[int, str] = field(default_factory=dict)


def traffic_between(partitions: Iterable[Partition], earlier: CounterSample, later: CounterSample) -> Traffic:
    """Return the traffic between two samples.

    Args:
        partitions: those that had the same leader at both times.
        earlier: the first sample.
        later: the second one, some seconds after it.
    """
    silent = {**earlier.silent, **later.silent}
    spans = {b: _Span(earlier.metrics[b], now) for b, now in later.metrics.items() if b in earlier.metrics}
    silent |= {b: "was restarted between two samples" for b, span in spans.items() if span.restarted}
    told = {b: span for b, span in spans.items() if b not in silent}
    written: dict[TopicPartition, float] = {}
    read: dict[TopicPartition, float] = {}
    for (broker, topic), names in _led(partitions).items():
        if broker in told:
            written |= told[broker].written(topic, names)
            read |= told[broker].read(topic, names)
    totals = [span.rate(_BYTES_IN) for span in told.values()]
    known = [total for total in totals if total is not None]
    whole = bool(totals) and not silent and len(known) == len(totals)
    return Traffic(written, read, sum(known) if whole else None, silent)


class _Span:
    """Two samples of one broker."""

    def __init__(self, earlier: Metrics, later: Metrics) -> None:
        self._earlier = earlier
        self._later = later

    @property
    def restarted(self) -> bool:
        return self._earlier.started_ms != self._later.started_ms

    def rate(self, meter: Meter) -> float | None:
        """Return how fast a counter grew per second; None: it was not told twice, or fell."""
        before, now = self._earlier.counters.get(meter), self._later.counters.get(meter)
        if before is None or now is None or now.value < before.value or now.read_ms <= before.read_ms:
            return None
        return (now.value - before.value) / (now.read_ms - before.read_ms) * 1000

    def written(self, topic: str, names: Sequence[TopicPartition]) -> dict[TopicPartition, float]:
        """Return the write rates of a topic's partitions that the broker leads; none if they are unknown."""
        records = [self._records(name) for name in names]
        known = [count for count in records if count is not None]
        # A topic has a counter once something was written to it.
        if len(known) == len(names) and not sum(known):
            return dict.fromkeys(names, 0.0)
        rate = self.rate(topic_bytes(topic))
        if rate is None:
            return {}
        if len(known) < len(names):
            return dict.fromkeys(names, rate / len(names))
        return {name: rate * count / sum(known) for name, count in zip(names, known, strict=True)}

    def read(self, topic: str, names: Sequence[TopicPartition]) -> dict[TopicPartition, float]:
        """Return the read rates of a topic's partitions that the broker leads; none if they are unknown."""
        meter = topic_consumed(topic)
        # A topic has a counter once something was read of it; who tells that of no topic at all may leave it out.
        never = self._tells_reads and meter not in self._later.counters
        rate = 0.0 if never else self.rate(meter)
        return {} if rate is None else dict.fromkeys(names, rate / len(names))

    @cached_property
    def _tells_reads(self) -> bool:
        any_topic = any(meter.topic and meter == topic_consumed(meter.topic) for meter in self._later.counters)
        return any_topic or self.rate(_BYTES_OUT) == 0

    def _records(self, name: TopicPartition) -> int | None:
        """Return how many records a partition took; None: its log end was not told twice, or it was cut."""
        before, now = self._earlier.logs.get(name), self._later.logs.get(name)
        if before is None or now is None or now.log_end_offset < before.log_end_offset:
            return None
        return now.log_end_offset - before.log_end_offset


def _led(partitions: Iterable[Partition]) -> dict[tuple[int, str], list[TopicPartition]]:
    led: dict[tuple[int, str], list[TopicPartition]] = defaultdict(list)
    for partition in partitions:
        if partition.leader is not None:
            led[partition.leader, partition.topic].append(partition.name)
    return led

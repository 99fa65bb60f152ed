"""Write and read rate of each partition, from two samples of the brokers' counters.

Brokers count bytes per topic, not per partition. A topic's write rate on a broker is divided among the partitions that
it leads, in proportion to the growth of their log end offsets, and so are its reads, because most consumers read all
that is written. A topic's requests are divided evenly.

A broker that was down while its replica was removed keeps the gauges of that replica until it restarts (Kafka 4.3.1).
If it leads the partition again, its log end stands still although records come in. So messages of the topic that no log
took are divided evenly among the partitions whose log ends stand still.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from headroom.cluster.metrics.load_meters import fetch_requests, produce_requests, topic_consumed
from headroom.cluster.metrics.mbeans import FOLLOWER_QUOTA, LEADER_QUOTA, topic_bytes, topic_messages
from headroom.cluster.model import BrokerRead, Meter, Metrics, Partition
from headroom.schemas.keys import BrokerRole, Role, TopicPartition

_BYTES_IN = Meter("BrokerTopicMetrics.BytesInPerSec")
# Share of a topic's new messages up to which they count as taken by the logs that grew, and of all reads of a broker up
# to which they count as those of the topics that it leads: log ends and counters are not read at the same moment.
_MOST_UNSEEN_RATIO = 0.2
# What a broker sends as leader and receives as destination.
_COPIED = {
    Role.LEADER: Meter("BrokerTopicMetrics.ReassignmentBytesOutPerSec"),
    Role.FOLLOWER: Meter("BrokerTopicMetrics.ReassignmentBytesInPerSec"),
}
_COUNTED = {Role.LEADER: LEADER_QUOTA, Role.FOLLOWER: FOLLOWER_QUOTA}


@dataclass(frozen=True)
class Traffic:
    """Measured rates in bytes per second, or requests per second.

    Attributes:
        written: write rate by partition; missing if unknown.
        read: consumers' read rate from the leader, by partition; missing if unknown. With ``read_from_followers`` the
            sum over a broker is what it sends to consumers in all.
        requested: produce and fetch requests to the leader per second, by partition; missing if unknown. They are known
            only if the counters of requests were read.
        copied: bytes that reassignments copy per second, by broker and role; missing if unknown.
        read_from_followers: bytes per second that consumers read from a broker, as the closest replica, of topics of
            which it leads no partition; a broker of which none are known is missing.
        read_from_followers_of: the same by topic, of all brokers together, as far as they count it by topic.
        counted: bytes per second that brokers count against their replication quotas, by broker and role; missing if
            they have no such gauge.
        cluster_written: write rate of all producers to all brokers; None if a broker was not measured.
        unmeasured: brokers that are alive but could not be measured, with the reason.
    """

    written: Mapping[TopicPartition, float] = field(default_factory=dict)
    read: Mapping[TopicPartition, float] = field(default_factory=dict)
    cluster_written: float | None = None
    unmeasured: Mapping[int, str] = field(default_factory=dict)
    requested: Mapping[TopicPartition, float] = field(default_factory=dict)
    copied: Mapping[BrokerRole, float] = field(default_factory=dict)
    counted: Mapping[BrokerRole, float] = field(default_factory=dict)
    read_from_followers: Mapping[int, float] = field(default_factory=dict)
    read_from_followers_of: Mapping[str, float] = field(default_factory=dict)


@dataclass(frozen=True)
class CounterSample:
    """Metrics of the brokers at one time.

    Attributes:
        metrics: metrics by broker that answered.
        unmeasured: brokers that did not answer, with the reason.
    """

    metrics: Mapping[int, Metrics]
    unmeasured: Mapping[int, str] = field(default_factory=dict)

    @classmethod
    def of(cls, reads: Mapping[int, BrokerRead]) -> CounterSample:
        """Return the sample of what the brokers answered."""
        return cls(
            {broker: read.metrics for broker, read in reads.items() if read.metrics is not None},
            {broker: read.error or "did not answer" for broker, read in reads.items() if read.metrics is None},
        )


def traffic_between(partitions: Iterable[Partition], earlier: CounterSample, later: CounterSample) -> Traffic:
    """Return the traffic between two samples.

    Args:
        partitions: partitions with the same leader at both times.
        earlier: the first sample.
        later: the second one, some seconds after it.
    """
    unmeasured = {**earlier.unmeasured, **later.unmeasured}
    intervals = {b: _Interval(earlier.metrics[b], now) for b, now in later.metrics.items() if b in earlier.metrics}
    unmeasured |= {
        b: "was restarted between two samples" for b, interval in intervals.items() if interval.has_restarted
    }
    complete = {b: interval for b, interval in intervals.items() if b not in unmeasured}
    written: dict[TopicPartition, float] = {}
    read: dict[TopicPartition, float] = {}
    requested: dict[TopicPartition, float] = {}
    reads: dict[int, list[dict[TopicPartition, float]]] = {broker: [] for broker in complete}
    for (broker, topic), names in _led_by_broker_and_topic(partitions).items():
        if broker in complete:
            own = complete[broker].write_rates(topic, names)
            written |= own
            reads[broker].append(complete[broker].read_rates(topic, names, own))
            requested |= complete[broker].request_rates(topic, names)
    others: dict[int, float] = {}
    of_topics: dict[str, float] = defaultdict(float)
    for broker, by_topic in reads.items():
        from_leader, rest = complete[broker].all_reads(by_topic)
        read |= from_leader
        if not rest:
            continue
        others[broker] = rest
        for topic, besides in complete[broker].reads_besides({name.topic for name in from_leader}):
            of_topics[topic] += besides
    totals = [interval.rate(_BYTES_IN) for interval in complete.values()]
    known = [total for total in totals if total is not None]
    is_complete = bool(totals) and not unmeasured and len(known) == len(totals)
    copied = {
        BrokerRole(broker, role): rate
        for broker, interval in complete.items()
        for role, meter in _COPIED.items()
        if (rate := interval.rate(meter)) is not None
    }
    counted = {
        BrokerRole(broker, role): metrics.gauges[meter].value
        for broker, metrics in later.metrics.items()
        for role, meter in _COUNTED.items()
        if meter in metrics.gauges
    }
    total = sum(known) if is_complete else None
    return Traffic(written, read, total, unmeasured, requested, copied, counted, others, of_topics)


class _Interval:
    """Two samples of one broker."""

    def __init__(self, earlier: Metrics, later: Metrics) -> None:
        self._earlier = earlier
        self._later = later
        self._reported: dict[Callable[[str | None], Meter], bool] = {}

    @property
    def has_restarted(self) -> bool:
        return self._earlier.started_ms != self._later.started_ms

    def rate(self, meter: Meter) -> float | None:
        """Return the rate of a counter per second; None if it is missing in a sample, or fell."""
        before, now = self._earlier.counters.get(meter), self._later.counters.get(meter)
        if before is None or now is None or now.value < before.value or now.read_ms <= before.read_ms:
            return None
        return (now.value - before.value) / (now.read_ms - before.read_ms) * 1000

    def write_rates(self, topic: str, names: Sequence[TopicPartition]) -> dict[TopicPartition, float]:
        """Return the write rates of a topic's partitions that the broker leads; none if they are unknown."""
        records = [self._records(name) for name in names]
        known = [count for count in records if count is not None]
        rate = self.rate(topic_bytes(topic))
        # A topic without writes has no counter.
        if len(known) == len(names) and not sum(known) and not rate:
            return dict.fromkeys(names, 0.0)
        if rate is None:
            return {}
        if len(known) < len(names) or not sum(known):
            return dict.fromkeys(names, rate / len(names))
        unseen = self._unseen_messages(topic, sum(known)) if 0 in known else 0.0
        messages = [count or unseen / known.count(0) for count in known]
        return {name: rate * count / sum(messages) for name, count in zip(names, messages, strict=True)}

    def _unseen_messages(self, topic: str, records: int) -> float:
        """Return how many new messages of a topic no log end shows; 0 if there are few, or if it is unknown."""
        before, now = (metrics.counters.get(topic_messages(topic)) for metrics in (self._earlier, self._later))
        grown = 0.0 if before is None or now is None else now.value - before.value
        unseen = grown - records
        return unseen if unseen > _MOST_UNSEEN_RATIO * grown else 0.0

    def read_rates(
        self, topic: str, names: Sequence[TopicPartition], written: Mapping[TopicPartition, float]
    ) -> dict[TopicPartition, float]:
        """Return the read rates of a topic's partitions that the broker leads; none if they are unknown.

        Args:
            topic: the topic.
            names: the partitions.
            written: their write rates; empty if unknown.
        """
        rate, total = self._rate_of_topic(topic_consumed, topic), sum(written.values())
        if rate is None:
            return {}
        return {name: rate * written[name] / total if total else rate / len(names) for name in names}

    def all_reads(
        self, by_topic: Sequence[Mapping[TopicPartition, float]]
    ) -> tuple[dict[TopicPartition, float], float]:
        """Return the read rates of all partitions that the broker leads, and what it sends of other topics besides.

        Their sum is the measured one, if the broker's own counter and all of its topics are known. A small difference
        is divided among the partitions in proportion, because the counters are not read at the same moment.

        Args:
            by_topic: read rates of each topic that the broker leads; empty ones are unknown.
        """
        own = {name: rate for rates in by_topic for name, rate in rates.items()}
        total, topics = self.rate(topic_consumed()), sum(own.values())
        if total is None or not all(by_topic):
            return own, 0.0
        rest = total - topics
        if abs(rest) > _MOST_UNSEEN_RATIO * total:
            return own, max(0.0, rest)
        return {name: rate * total / topics for name, rate in own.items() if topics} or own, 0.0

    def reads_besides(self, topics: Collection[str]) -> Iterator[tuple[str, float]]:
        """Yield what consumers read of each topic that is not among these, bytes per second, where it is counted."""
        meter = topic_consumed().meter
        for counter in self._later.counters:
            topic = counter.topic if counter.meter == meter else None
            if topic is not None and topic not in topics and (rate := self.rate(counter)):
                yield topic, rate

    def request_rates(self, topic: str, names: Sequence[TopicPartition]) -> dict[TopicPartition, float]:
        """Return the requests per second of a topic's partitions that the broker leads; none if they are unknown."""
        produced, fetched = (self._rate_of_topic(meter_of, topic) for meter_of in (produce_requests, fetch_requests))
        if produced is None or fetched is None:
            return {}
        return dict.fromkeys(names, (produced + fetched) / len(names))

    def _rate_of_topic(self, meter_of: Callable[[str | None], Meter], topic: str) -> float | None:
        """Return the rate of a topic's counter per second; None if it is unknown."""
        # A topic that was not used has no counter. But if no topic has one, the source may not export it.
        is_unused = meter_of(topic) not in self._later.counters and self._is_reported(meter_of)
        return 0.0 if is_unused else self.rate(meter_of(topic))

    def _is_reported(self, meter_of: Callable[[str | None], Meter]) -> bool:
        """Return whether the source exports a counter of topics, or no topic has one because none was used."""
        known = self._reported.get(meter_of)
        if known is None:
            name = meter_of(None).meter
            any_topic = any(meter.topic and meter.meter == name for meter in self._later.counters)
            known = self._reported[meter_of] = any_topic or self.rate(meter_of(None)) == 0
        return known

    def _records(self, name: TopicPartition) -> int | None:
        """Return the number of new records; None if a log end is missing, or the log was truncated."""
        before, now = self._earlier.logs.get(name), self._later.logs.get(name)
        if before is None or now is None or now.log_end_offset < before.log_end_offset:
            return None
        return now.log_end_offset - before.log_end_offset


def _led_by_broker_and_topic(partitions: Iterable[Partition]) -> dict[tuple[int, str], list[TopicPartition]]:
    by_broker: dict[tuple[int, str], list[TopicPartition]] = defaultdict(list)
    for partition in partitions:
        if partition.leader is not None:
            by_broker[partition.leader, partition.topic].append(partition.name)
    return by_broker

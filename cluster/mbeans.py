"""The MBeans that Headroom reads from a broker, and what their answers mean."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

from cluster.model import Lag, LogReading, Meter, Metrics, Reading, TopicPartition

_FETCHER = "ReplicaFetcherThread-"
_BROKER_METERS = (
    "BytesInPerSec",
    "BytesOutPerSec",
    "ReplicationBytesInPerSec",
    "ReplicationBytesOutPerSec",
    "ReassignmentBytesInPerSec",
    "ReassignmentBytesOutPerSec",
)
_QUOTAS = ("LeaderReplication", "FollowerReplication")
_GAUGES = ("ReassigningPartitions", "UnderReplicatedPartitions", "LeaderCount", "PartitionCount")
LEADER_QUOTA = Meter("LeaderReplication.byte-rate")
FOLLOWER_QUOTA = Meter("FollowerReplication.byte-rate")


def topic_bytes(topic: str) -> Meter:
    """Return the name of a topic's BytesInPerSec meter."""
    return Meter("BrokerTopicMetrics.BytesInPerSec", topic)


def topic_messages(topic: str) -> Meter:
    """Return the name of a topic's MessagesInPerSec meter."""
    return Meter("BrokerTopicMetrics.MessagesInPerSec", topic)


@dataclass
class _Answers:
    """What was read so far."""

    started_ms: int | None = None
    counters: dict[Meter, Reading] = field(default_factory=dict)
    gauges: dict[Meter, Reading] = field(default_factory=dict)
    lags: list[Lag] = field(default_factory=list)
    logs: dict[TopicPartition, dict[str, Reading]] = field(default_factory=dict)


_Taker = Callable[[_Answers, Reading, "dict[str, str]"], None]


class Plan:
    """One broker's reads of one tick: the request for the bulk reader and the meaning of each of its lines.

    Args:
        topics: topics of which the broker leads a partition.
        leads: partitions that it leads: their log end offset is read.
        watched: partitions of which it holds a replica that is watched: end, start and size are read, one after
            the other, so that they fit together.
    """

    def __init__(
        self, topics: Iterable[str], leads: Iterable[TopicPartition], watched: Iterable[TopicPartition]
    ) -> None:
        self._lines: list[str] = []
        self._takers: list[_Taker] = []
        self._add("java.lang:type=Runtime", "StartTime", _take_start)
        watched = sorted(watched)
        # The lags and the ends they belong to are read close together.
        self._add("kafka.server:type=FetcherLagMetrics,name=ConsumerLag,*", "Value", _take_lag)
        for name in watched:
            self._logs(name, ("LogEndOffset", "Size", "LogStartOffset"))
        for topic in sorted(topics):
            self._topic(topic)
        for name in sorted(set(leads) - set(watched)):
            self._logs(name, ("LogEndOffset",))
        self._broker()

    @property
    def request(self) -> str:
        """The request of the bulk reader, one line per MBean or pattern."""
        return "\n".join(self._lines)

    def parse(self, answer: str) -> Metrics:
        """Return what the broker said; an MBean that it does not have is missing.

        Raises:
            ValueError: a line of the answer is not what the bulk reader writes.
        """
        answers = _Answers()
        for line in answer.splitlines():
            index, read_ms, value, *name = line.split("\t")
            reading = _reading(int(read_ms), value)
            if reading is not None:
                self._takers[int(index)](answers, reading, _keys(name[0]) if name else {})
        logs = {name: log for name, parts in answers.logs.items() if (log := _log(parts)) is not None}
        return Metrics(answers.started_ms, answers.counters, answers.gauges, tuple(answers.lags), logs)

    def _add(self, name: str, attribute: str, taker: _Taker) -> None:
        self._lines.append(f"{name}\t{attribute}")
        self._takers.append(taker)

    def _logs(self, name: TopicPartition, parts: tuple[str, ...]) -> None:
        for part in parts:
            self._add(
                f"kafka.log:type=Log,name={part},topic={name.topic},partition={name.partition}",
                "Value",
                _take_log(name, part),
            )

    def _topic(self, topic: str) -> None:
        for meter in (topic_bytes(topic), topic_messages(topic)):
            kind, name = meter.meter.split(".")
            self._add(f"kafka.server:type={kind},name={name},topic={topic}", "Count", _take_counter(meter))

    def _broker(self) -> None:
        for name in _BROKER_METERS:
            self._add(
                f"kafka.server:type=BrokerTopicMetrics,name={name}",
                "Count",
                _take_counter(Meter(f"BrokerTopicMetrics.{name}")),
            )
        for kind in _QUOTAS:
            self._add(f"kafka.server:type={kind}", "byte-rate", _take_gauge(Meter(f"{kind}.byte-rate")))
        for name in _GAUGES:
            self._add(
                f"kafka.server:type=ReplicaManager,name={name}", "Value", _take_gauge(Meter(f"ReplicaManager.{name}"))
            )
        self._add("kafka.server:type=FetcherStats,name=BytesPerSec,*", "Count", _take_fetcher)


def _reading(read_ms: int, text: str) -> Reading | None:
    value = float(text) if "." in text or "N" in text or "E" in text or "I" in text else int(text)
    return Reading(read_ms, value) if math.isfinite(value) else None


def _keys(name: str) -> dict[str, str]:
    pairs = (pair.split("=", 1) for pair in name.split(":", 1)[1].split(","))
    return dict(pair for pair in pairs if len(pair) == 2)


def source_broker(client_id: str) -> int | None:
    """Return the broker that a fetcher fetches from, of ``ReplicaFetcherThread-<fetcher>-<broker>``; None: not one."""
    tail = client_id.rpartition("-")[2]
    return int(tail) if client_id.startswith(_FETCHER) and tail.isdigit() else None


def _take_start(answers: _Answers, reading: Reading, _keys: dict[str, str]) -> None:
    answers.started_ms = int(reading.value)


def _take_lag(answers: _Answers, reading: Reading, keys: dict[str, str]) -> None:
    source = source_broker(keys["clientId"])
    if source is not None:
        name = TopicPartition(keys["topic"], int(keys["partition"]))
        offsets = int(reading.value)
        answers.lags.append(Lag(name, source, keys["clientId"], offsets if offsets >= 0 else None))


def _take_fetcher(answers: _Answers, reading: Reading, keys: dict[str, str]) -> None:
    source = source_broker(keys["clientId"])
    if source is not None:
        meter = Meter("FetcherStats.BytesPerSec", fetcher=keys["clientId"], source_broker=source)
        answers.counters[meter] = reading


def _take_counter(meter: Meter) -> _Taker:
    def take(answers: _Answers, reading: Reading, _keys: dict[str, str]) -> None:
        answers.counters[meter] = reading

    return take


def _take_gauge(meter: Meter) -> _Taker:
    def take(answers: _Answers, reading: Reading, _keys: dict[str, str]) -> None:
        answers.gauges[meter] = reading

    return take


def _take_log(name: TopicPartition, part: str) -> _Taker:
    def take(answers: _Answers, reading: Reading, _keys: dict[str, str]) -> None:
        answers.logs.setdefault(name, {})[part] = reading

    return take


def _log(parts: dict[str, Reading]) -> LogReading | None:
    end = parts.get("LogEndOffset")
    if end is None:
        return None
    start, size = parts.get("LogStartOffset"), parts.get("Size")
    return LogReading(
        end.read_ms,
        int(end.value),
        None if start is None else int(start.value),
        None if size is None else int(size.value),
    )

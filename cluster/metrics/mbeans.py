"""The MBeans that Headroom reads from a broker, whichever way they are read, and what their values mean."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from functools import lru_cache
from types import MappingProxyType
from typing import NamedTuple

from cluster.model import Lag, LogReading, Meter, Metrics, Reading, TopicPartition
from schemas.bounds import LATEST_MS, MOST_COUNTED, MOST_OF_LOG

_FETCHER = "ReplicaFetcherThread-"
_DOMAINS = {"Runtime": "java.lang", "Log": "kafka.log"}
# Least and most that an MBean of each type can mean. A gauge of what is gone says -1.
_LOG, _COUNT = (0, MOST_OF_LOG), (0, MOST_COUNTED)
RANGES: Mapping[str, tuple[int, int]] = {
    "Runtime": (0, LATEST_MS),
    "FetcherLagMetrics": (-1, MOST_OF_LOG),
    "FetcherStats": _COUNT,
    "Log": _LOG,
    "BrokerTopicMetrics": _COUNT,
    "ReplicaManager": (-1, 2**31),
    "LeaderReplication": _LOG,
    "FollowerReplication": _LOG,
}
_GONE = -1
# More digits than any partition's number has.
_PARTITION_DIGITS = 9
# A replica that is moved to another log directory of its broker has a second log there, a copy, until
# LogManager.replaceCurrentWithFutureLog puts it in the place of the first. UnifiedLog.newMetrics gives it this key.
FUTURE = "is-future"

TOPIC_METERS = ("BytesInPerSec", "MessagesInPerSec")
_CONSUMED = "BytesOutPerSec"
BROKER_METERS = (
    "BytesInPerSec",
    "BytesOutPerSec",
    "ReplicationBytesInPerSec",
    "ReplicationBytesOutPerSec",
    "ReassignmentBytesInPerSec",
    "ReassignmentBytesOutPerSec",
)
QUOTAS = ("LeaderReplication", "FollowerReplication")
GAUGES = ("ReassigningPartitions", "UnderReplicatedPartitions", "LeaderCount", "PartitionCount")
# In the order in which they are read of a watched log, one after the other, so that they fit together.
LOG_PARTS = ("LogEndOffset", "Size", "LogStartOffset")
LEADER_QUOTA = Meter("LeaderReplication.byte-rate")
FOLLOWER_QUOTA = Meter("FollowerReplication.byte-rate")


def topic_bytes(topic: str) -> Meter:
    """Return the name of a topic's BytesInPerSec meter."""
    return Meter("BrokerTopicMetrics.BytesInPerSec", topic)


def topic_messages(topic: str) -> Meter:
    """Return the name of a topic's MessagesInPerSec meter."""
    return Meter("BrokerTopicMetrics.MessagesInPerSec", topic)


def topic_consumed(topic: str) -> Meter:
    """Return the name of a topic's BytesOutPerSec meter: what consumers fetch."""
    return Meter(f"BrokerTopicMetrics.{_CONSUMED}", topic)


class ReadPlan:
    """What one tick reads of one broker; every source gives the same for it.

    Attributes:
        topics: topics of which the broker leads a partition, sorted.
        leads: partitions that it leads: their log end offset is read; sorted.
        watched: partitions of which it holds a replica that is watched: end, size and start are read; sorted.
        replicas: how many replicas it holds; None: not known.
        follows: whether it is a follower in sync of any leader.
        topic_meters: what is read of each topic.
    """

    def __init__(
        self,
        topics: Iterable[str],
        leads: Iterable[TopicPartition],
        watched: Iterable[TopicPartition],
        replicas: int | None = None,
        follows: bool = False,
        consumed: bool = False,
    ) -> None:
        self.topics = tuple(sorted(topics))
        self.leads = tuple(sorted(leads))
        self.watched = tuple(sorted(watched))
        self.replicas = replicas
        self.follows = follows
        self.topic_meters = (*TOPIC_METERS, _CONSUMED) if consumed else TOPIC_METERS

    @property
    def ends_only(self) -> list[TopicPartition]:
        """The partitions of which the log end offset alone is read."""
        watched = set(self.watched)
        return [name for name in self.leads if name not in watched]


class MBeanRead(NamedTuple):
    """One MBean to read, or all that have these keys.

    Attributes:
        kind: its type.
        name: its name; None: it has none.
        attribute: what is read of it.
        keys: further keys of its name.
        every: whether MBeans with more keys than these are meant too.
    """

    kind: str
    name: str | None
    attribute: str
    keys: Mapping[str, str] = MappingProxyType({})
    every: bool = False

    @property
    def mbean(self) -> str:
        """The object name, or the pattern."""
        names = {"type": self.kind, **({"name": self.name} if self.name else {}), **self.keys}
        keys = ",".join(f"{key}={value}" for key, value in names.items())
        return f"{_DOMAINS.get(self.kind, 'kafka.server')}:{keys}" + (",*" if self.every else "")


START = MBeanRead("Runtime", None, "StartTime")
# In place of the name: the start that an exporter tells may be its own, and gives way to that of the broker.
EXPORTER = "exporter"
LAGS = MBeanRead("FetcherLagMetrics", "ConsumerLag", "Value", every=True)
FETCHERS = MBeanRead("FetcherStats", "BytesPerSec", "Count", every=True)
# Meters of the broker itself, and its gauges.
BROKER_READS = (
    *(MBeanRead("BrokerTopicMetrics", name, "Count") for name in BROKER_METERS),
    *(MBeanRead(kind, None, "byte-rate") for kind in QUOTAS),
    *(MBeanRead("ReplicaManager", name, "Value") for name in GAUGES),
    FETCHERS,
)


def log_reads(names: Iterable[TopicPartition], parts: Iterable[str]) -> list[MBeanRead]:
    """Return the reads of these parts of some logs, log by log."""
    parts = tuple(parts)
    return [
        MBeanRead("Log", part, "Value", {"topic": name.topic, "partition": str(name.partition)})
        for name in names
        for part in parts
    ]


def topic_reads(plan: ReadPlan) -> list[MBeanRead]:
    """Return the reads of the meters of a plan's topics."""
    names = plan.topic_meters
    return [MBeanRead("BrokerTopicMetrics", name, "Count", {"topic": topic}) for topic in plan.topics for name in names]


def keys_of(mbean: str) -> dict[str, str]:
    """Return the keys of an object name."""
    pairs = [pair.partition("=") for pair in mbean.split(":", 1)[1].split(",")]
    return {key: value for key, sign, value in pairs if sign}


def log_mbean(part: str, name: TopicPartition) -> str:
    """Return the object name of a part of a log, its keys in the order in which brokers give them."""
    return f"kafka.log:type=Log,name={part},topic={name.topic},partition={name.partition}"


def reading(read_ms: int, value: float) -> Reading | None:
    """Return a value and its time; None for what is no number, or no finite one: a meter that rests may say so."""
    # Nor is any comparison with NaN true.
    return Reading(read_ms, value) if abs(value) < math.inf else None


@lru_cache(maxsize=10_000)
def source_broker(client_id: str) -> int | None:
    """Return the broker that a fetcher fetches from, of ``ReplicaFetcherThread-<fetcher>-<broker>``; None: not one."""
    tail = client_id.rpartition("-")[2]
    return int(tail) if client_id.startswith(_FETCHER) and tail.isdigit() else None


class MetricsAccumulator:
    """What a broker has said so far, by what it means; what the plan did not ask for is dropped.

    Args:
        plan: what was asked.
    """

    def __init__(self, plan: ReadPlan) -> None:
        self._topics = set(plan.topics)
        self._topic_meters = plan.topic_meters
        watched = dict.fromkeys(plan.watched)
        self._wanted = {**dict.fromkeys(LOG_PARTS, watched), "LogEndOffset": watched | dict.fromkeys(plan.leads)}
        self._started_ms: int | None = None
        self._counters: dict[Meter, Reading] = {}
        self._gauges: dict[Meter, Reading] = {}
        self._lags: dict[tuple[TopicPartition, str], Lag] = {}
        self._logs: dict[str, dict[TopicPartition, Reading]] = {part: {} for part in LOG_PARTS}
        self._impossible: dict[str, float] = {}
        self._takers = {
            "Runtime": self._take_start,
            "FetcherLagMetrics": self._take_lag,
            "FetcherStats": self._take_fetcher,
            "Log": self._take_log,
            "BrokerTopicMetrics": self._take_meter,
            "ReplicaManager": self._take_gauge,
            **dict.fromkeys(QUOTAS, self._take_quota),
        }

    def take(self, kind: str, name: str | None, keys: Mapping[str, str], value: Reading | None) -> None:
        """Keep a value of an MBean of this type, name and further keys; None: it said no number.

        A value whose partition has no number is dropped, and so is one of a future log, or one that no broker can mean.
        """
        if value is not None and kind in self._takers and self._is_possible(kind, name, keys, value.value):
            self._takers[kind](kind, name or "", keys, value)

    def missing(self, part: str) -> list[TopicPartition]:
        """Return the logs that the plan asks for this part of, and that were not told yet."""
        told = self._logs[part]
        return [name for name in self._wanted[part] if name not in told]

    def take_log(self, part: str, name: TopicPartition, value: Reading | None) -> None:
        """Keep a part of a log, of several values the greatest; None: it said no number.

        An exporter's rules may drop the key of a future log, so that two values come under one name. The copy starts
        and ends no later than the log, and is no larger (``ReplicaAlterLogDirsThread``).
        """
        if value is None or name not in self._wanted.get(part, ()):
            return
        if not _LOG[0] <= value.value <= _LOG[1]:
            self._note_impossible(log_mbean(part, name), value.value)
            return
        known = self._logs[part].get(name)
        if known is None or value.value > known.value:
            self._logs[part][name] = value

    def metrics(self, rates_only: Iterable[str] = ()) -> Metrics:
        """Return all of it; what was not told is missing.

        Args:
            rates_only: meters of which the source gives no count.
        """
        ends, sizes, starts = (self._logs[part] for part in LOG_PARTS)
        logs = {
            name: LogReading(end.read_ms, int(end.value), _whole(starts.get(name)), _whole(sizes.get(name)))
            for name, end in ends.items()
        }
        lags = tuple(self._lags.values())
        return Metrics(
            self._started_ms,
            self._counters,
            self._gauges,
            lags,
            logs,
            tuple(sorted(rates_only)),
            tuple(self._impossible.items()),
        )

    def _is_possible(self, kind: str, name: str | None, keys: Mapping[str, str], value: float) -> bool:
        # Of logs, those that the plan asks for are looked at where they are kept.
        least, most = RANGES[kind]
        if kind == "Log" or least <= value <= most:
            return True
        self._note_impossible(MBeanRead(kind, name, "", keys).mbean, value)
        return False

    def _note_impossible(self, mbean: str, value: float) -> None:
        if value != _GONE:
            self._impossible[mbean] = value

    def _take_start(self, _kind: str, name: str, _keys: Mapping[str, str], value: Reading) -> None:
        if name != EXPORTER or self._started_ms is None:
            self._started_ms = int(value.value)

    def _take_lag(self, _kind: str, name: str, keys: Mapping[str, str], value: Reading) -> None:
        fetcher = keys.get("clientId", "")
        source = source_broker(fetcher)
        partition = _partition_of(keys)
        if name == LAGS.name and source is not None and partition is not None:
            offsets = int(value.value)
            self._lags[partition, fetcher] = Lag(partition, source, fetcher, offsets if offsets >= 0 else None)

    def _take_fetcher(self, kind: str, name: str, keys: Mapping[str, str], value: Reading) -> None:
        fetcher = keys.get("clientId", "")
        source = source_broker(fetcher)
        if name == FETCHERS.name and source is not None:
            self._counters[Meter(f"{kind}.{name}", fetcher=fetcher, source_broker=source)] = value

    def _take_log(self, _kind: str, name: str, keys: Mapping[str, str], value: Reading) -> None:
        partition = _partition_of(keys)
        if partition is not None and FUTURE not in keys:
            self.take_log(name, partition, value)

    def _take_meter(self, kind: str, name: str, keys: Mapping[str, str], value: Reading) -> None:
        topic = keys.get("topic") or None
        wanted = name in BROKER_METERS if topic is None else name in self._topic_meters and topic in self._topics
        if wanted:
            self._counters[Meter(f"{kind}.{name}", topic)] = value

    def _take_gauge(self, kind: str, name: str, _keys: Mapping[str, str], value: Reading) -> None:
        if name in GAUGES:
            self._gauges[Meter(f"{kind}.{name}")] = value

    def _take_quota(self, kind: str, _name: str, _keys: Mapping[str, str], value: Reading) -> None:
        self._gauges[Meter(f"{kind}.byte-rate")] = value


def _partition_of(keys: Mapping[str, str]) -> TopicPartition | None:
    topic, number = keys.get("topic"), keys.get("partition", "")
    # int() would take signs, spaces and the digits of other scripts too.
    if topic is None or not (number.isascii() and number.isdigit() and len(number) <= _PARTITION_DIGITS):
        return None
    return TopicPartition(topic, int(number))


def _whole(reading: Reading | None) -> int | None:
    return None if reading is None else int(reading.value)

"""The MBeans that Headroom reads from a broker, independent of the metrics source, and their meaning."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from functools import lru_cache
from types import MappingProxyType
from typing import NamedTuple

from headroom.cluster.metrics.load_meters import (
    BROKER_IDLE,
    CONSUMED,
    FLUSH_TIMES,
    FOLLOWER_FETCH,
    HANDLER_IDLE,
    HANDLER_POOL,
    LOAD_TOPIC_METERS,
    LOG_FLUSH_P999,
    PERCENTILES,
    PROCESS_IDLE,
    PRODUCE,
    REQUEST_P99,
    TIMES,
)
from headroom.cluster.model import Lag, LogReading, Meter, Metrics, Reading
from headroom.schemas.bounds import LATEST_MS, LONGEST_MS, MOST_COUNTED, MOST_OF_LOG
from headroom.schemas.keys import TopicPartition

_FETCHER = "ReplicaFetcherThread-"
_DOMAINS = {
    "Runtime": "java.lang",
    "Log": "kafka.log",
    "LogFlushStats": "kafka.log",
    "RequestMetrics": "kafka.network",
}
# Valid range of the values of each MBean type. A gauge of a removed object is -1.
_LOG, _COUNT = (0, MOST_OF_LOG), (0, MOST_COUNTED)
RANGES: Mapping[str, tuple[int, int]] = {
    "Runtime": (0, LATEST_MS),
    "app-info": (0, LATEST_MS),
    "FetcherLagMetrics": (-1, MOST_OF_LOG),
    "FetcherStats": _COUNT,
    "Log": _LOG,
    "BrokerTopicMetrics": _COUNT,
    "ReplicaManager": (-1, 2**31),
    "LeaderReplication": _LOG,
    "FollowerReplication": _LOG,
    **dict.fromkeys(PERCENTILES, (0, LONGEST_MS)),
    HANDLER_POOL: _COUNT,
}
_GONE = -1
# Maximum digits of a partition number.
_PARTITION_DIGITS = 9
# A replica that moves between log directories of its broker has a second (future) log there, until
# LogManager.replaceCurrentWithFutureLog swaps them. UnifiedLog.newMetrics gives the future log this key.
FUTURE = "is-future"

TOPIC_METERS = ("BytesInPerSec", "MessagesInPerSec")
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
# In reading order: read one after the other, so that the values of a log are consistent.
LOG_PARTS = ("LogEndOffset", "Size", "LogStartOffset")
LEADER_QUOTA = Meter("LeaderReplication.byte-rate")
FOLLOWER_QUOTA = Meter("FollowerReplication.byte-rate")


def topic_bytes(topic: str) -> Meter:
    """Return the name of a topic's BytesInPerSec meter."""
    return Meter("BrokerTopicMetrics.BytesInPerSec", topic)


def topic_messages(topic: str) -> Meter:
    """Return the name of a topic's MessagesInPerSec meter."""
    return Meter("BrokerTopicMetrics.MessagesInPerSec", topic)


class MBeanRead(NamedTuple):
    """One MBean to read, or all MBeans of a pattern.

    Attributes:
        kind: type of the MBean.
        name: name of the MBean; None if it has none.
        attribute: attribute to read.
        keys: further keys of the object name.
        every: whether this is a pattern that also matches MBeans with more keys.
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
# Its key id is the broker that answers. Its start time stands in for that of the process, which an agent may leave out.
APP_INFO = MBeanRead("app-info", None, "StartTimeMs", every=True)
# In place of a name: an exporter's start time may be its own, so the broker's start time takes precedence.
EXPORTER = "exporter"
# Start times, the one that is used first if it is known.
_ORIGINS = ("Runtime", "app-info", EXPORTER)
LAGS = MBeanRead("FetcherLagMetrics", "ConsumerLag", "Value", every=True)
FETCHERS = MBeanRead("FetcherStats", "BytesPerSec", "Count", every=True)
# Meters of the broker itself, and its gauges.
BROKER_READS = (
    *(MBeanRead("BrokerTopicMetrics", name, "Count") for name in BROKER_METERS),
    *(MBeanRead(kind, None, "byte-rate") for kind in QUOTAS),
    *(MBeanRead("ReplicaManager", name, "Value") for name in GAUGES),
    FETCHERS,
)
# Loads over all topics, and the times and idle handlers of a broker.
LOAD_BROKER_READS = tuple(MBeanRead("BrokerTopicMetrics", name, "Count") for name in LOAD_TOPIC_METERS)
_NETWORK_IN = tuple(
    MBeanRead("BrokerTopicMetrics", name, "Count") for name in ("BytesInPerSec", "ReplicationBytesInPerSec")
)
PERFORMANCE_READS = (
    *(
        MBeanRead("RequestMetrics", TIMES, PERCENTILES["RequestMetrics"], {"request": r})
        for r in (PRODUCE, FOLLOWER_FETCH)
    ),
    MBeanRead("LogFlushStats", FLUSH_TIMES, PERCENTILES["LogFlushStats"]),
    *(MBeanRead(HANDLER_POOL, name, "Count") for name in (BROKER_IDLE, PROCESS_IDLE)),
)


class ReadScope(NamedTuple):
    """Kinds of metrics that are read, besides logs.

    Attributes:
        topic_meters: names of the meters that are read per topic.
        broker_reads: reads of the broker as a whole.
        first_reads: reads that come before those of logs, so that their values lie close together in time.
    """

    topic_meters: tuple[str, ...]
    broker_reads: tuple[MBeanRead, ...]
    first_reads: tuple[MBeanRead, ...] = ()

    @property
    def broker_meters(self) -> frozenset[str | None]:
        """Names of the meters over all topics."""
        return frozenset(read.name for read in self.broker_reads if read.kind == "BrokerTopicMetrics")

    @property
    def kinds(self) -> frozenset[str]:
        """Types of the MBeans, without logs."""
        reads = (START, APP_INFO, *self.first_reads, *self.broker_reads)
        return frozenset({"BrokerTopicMetrics", *(read.kind for read in reads)})


# What a tick reads.
TICK = ReadScope(TOPIC_METERS, BROKER_READS, (LAGS,))
# The same with the id of the broker that answers.
TICK_AND_IDENTITY = TICK._replace(broker_reads=(*BROKER_READS, APP_INFO))
# The same with what consumers fetch of each topic.
TICK_AND_CONSUMED = TICK._replace(topic_meters=(*TOPIC_METERS, CONSUMED))
# The same with all loads of topics, for a plan that balances them.
TICK_AND_LOAD = TICK._replace(
    topic_meters=(*TOPIC_METERS, *LOAD_TOPIC_METERS), broker_reads=(*BROKER_READS, *LOAD_BROKER_READS)
)
# What is read seldom, apart from ticks.
LOAD = ReadScope(LOAD_TOPIC_METERS, (*_NETWORK_IN, *LOAD_BROKER_READS, *PERFORMANCE_READS))


class ReadPlan:
    """Metrics that are read from one broker at once, the same for every source.

    Attributes:
        topics: topics of which the broker leads a partition, sorted.
        leads: partitions that it leads, sorted; their log end offset is read.
        watched: watched partitions with a replica on it, sorted; their end, size and start are read.
        replicas: number of replicas on the broker; None if unknown.
        follows: whether it is an in-sync follower of any leader.
        scope: kinds of metrics that are read.
    """

    def __init__(
        self,
        topics: Iterable[str],
        leads: Iterable[TopicPartition],
        watched: Iterable[TopicPartition],
        replicas: int | None = None,
        follows: bool = False,
        scope: ReadScope = TICK,
    ) -> None:
        self.topics = tuple(sorted(topics))
        self.leads = tuple(sorted(leads))
        self.watched = tuple(sorted(watched))
        self.replicas = replicas
        self.follows = follows
        self.scope = scope
        self._kinds, self._meters = scope.kinds, {*scope.topic_meters, *scope.broker_meters}

    def includes(self, kind: str, name: str | None) -> bool:
        """Return whether values of an MBean type are read; of a meter per topic or broker also by its name if known."""
        if kind == "Log":
            return bool(self.leads or self.watched)
        if kind == "BrokerTopicMetrics" and name is not None:
            return name in self._meters
        return kind in self._kinds

    @property
    def ends_only(self) -> list[TopicPartition]:
        """The partitions whose log end offset alone is read."""
        watched = set(self.watched)
        return [name for name in self.leads if name not in watched]


def log_reads(names: Iterable[TopicPartition], parts: Iterable[str]) -> list[MBeanRead]:
    """Return the reads of these attributes of the given logs, log by log."""
    parts = tuple(parts)
    return [
        MBeanRead("Log", part, "Value", {"topic": name.topic, "partition": str(name.partition)})
        for name in names
        for part in parts
    ]


def topic_reads(plan: ReadPlan) -> list[MBeanRead]:
    """Return the reads of the meters of a plan's topics."""
    names = plan.scope.topic_meters
    return [MBeanRead("BrokerTopicMetrics", name, "Count", {"topic": topic}) for topic in plan.topics for name in names]


def keys_of(mbean: str) -> dict[str, str]:
    """Return the keys of an object name."""
    pairs = [pair.partition("=") for pair in mbean.split(":", 1)[1].split(",")]
    return {key: value for key, sign, value in pairs if sign}


def log_mbean(part: str, name: TopicPartition) -> str:
    """Return the object name of a log attribute, with the keys in the brokers' order."""
    return f"kafka.log:type=Log,name={part},topic={name.topic},partition={name.partition}"


def reading(read_ms: int, value: float) -> Reading | None:
    """Return a value with its time; None if it is NaN or infinite, as of an idle meter."""
    # A comparison with NaN is false too.
    return Reading(read_ms, value) if abs(value) < math.inf else None


@lru_cache(maxsize=10_000)
def source_broker(client_id: str) -> int | None:
    """Return the source broker of ``ReplicaFetcherThread-<fetcher>-<broker>``; None for another client id."""
    tail = client_id.rpartition("-")[2]
    return int(tail) if client_id.startswith(_FETCHER) and _is_number(tail) else None


def _is_number(text: str) -> bool:
    """Return whether a text is the number of a broker or partition: int() also accepts signs and other digits."""
    return text.isascii() and text.isdigit() and len(text) <= _PARTITION_DIGITS


class MetricsAccumulator:
    """Collects the values of one broker by their meaning; values outside the plan are dropped.

    Args:
        plan: the metrics to read.
    """

    def __init__(self, plan: ReadPlan) -> None:
        self._topics = set(plan.topics)
        self._topic_meters = plan.scope.topic_meters
        self._broker_meters = plan.scope.broker_meters
        watched = dict.fromkeys(plan.watched)
        self._wanted = {**dict.fromkeys(LOG_PARTS, watched), "LogEndOffset": watched | dict.fromkeys(plan.leads)}
        # Start times by origin: the process, the broker within it, an exporter beside it.
        self._started_ms: dict[str, int] = {}
        self._broker_ids: set[int] = set()
        self._counters: dict[Meter, Reading] = {}
        self._gauges: dict[Meter, Reading] = {}
        self._lags: dict[tuple[TopicPartition, str], Lag] = {}
        self._logs: dict[str, dict[TopicPartition, Reading]] = {part: {} for part in LOG_PARTS}
        self._impossible: dict[str, float] = {}

    def add(self, kind: str, name: str | None, keys: Mapping[str, str], value: Reading | None) -> None:
        """Add a value of the MBean with this type, name and further keys; None is ignored.

        Also ignored are values with an invalid partition, of a future log, or outside the valid range.
        """
        if value is None or not self._is_possible(kind, name, keys, value.value):
            return
        match kind:
            case "Log":  # first, because a broker has more logs than anything else
                partition = _partition_of(keys)
                if partition is not None and FUTURE not in keys:
                    self.add_log(name or "", partition, value)
            case "BrokerTopicMetrics":
                topic = keys.get("topic") or None
                planned = self._topic_meters if topic in self._topics else ()
                if name in (self._broker_meters if topic is None else planned):
                    self._counters[Meter(f"{kind}.{name}", topic)] = value
            case "FetcherLagMetrics" if name == LAGS.name:
                self._add_lag(keys, value)
            case "FetcherStats" if name == FETCHERS.name:
                fetcher = keys.get("clientId", "")
                source = source_broker(fetcher)
                if source is not None:
                    self._counters[Meter(f"{kind}.{name}", fetcher=fetcher, source_broker=source)] = value
            case "ReplicaManager" if name in GAUGES:
                self._gauges[Meter(f"{kind}.{name}")] = value
            case "LeaderReplication" | "FollowerReplication":
                self._gauges[Meter(f"{kind}.byte-rate")] = value
            case "RequestMetrics" if name == TIMES and keys.get("request") in REQUEST_P99:
                self._gauges[REQUEST_P99[keys["request"]]] = value
            case "LogFlushStats" if name == FLUSH_TIMES:
                self._gauges[LOG_FLUSH_P999] = value
            case "KafkaRequestHandlerPool" if name == BROKER_IDLE:
                self._counters[HANDLER_IDLE] = value
            case "KafkaRequestHandlerPool" if name == PROCESS_IDLE:
                self._counters.setdefault(HANDLER_IDLE, value)
            case "Runtime":
                self._started_ms[EXPORTER if name == EXPORTER else kind] = int(value.value)
            case "app-info" if _is_number(keys.get("id", "")):
                self._broker_ids.add(int(keys["id"]))
                self._started_ms[kind] = int(value.value)

    def missing(self, part: str) -> list[TopicPartition]:
        """Return the planned logs whose attribute ``part`` has no value yet."""
        known = self._logs[part]
        return [name for name in self._wanted[part] if name not in known]

    def add_log(self, part: str, name: TopicPartition, value: Reading | None) -> None:
        """Add an attribute of a log, keeping the greatest of several values; None is ignored.

        An exporter's rules may drop the key of a future log, so that two values have one name. The future log starts
        and ends no later than the log and is no larger (``ReplicaAlterLogDirsThread``).
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
        """Return all values; metrics that the broker did not report are missing.

        Args:
            rates_only: meters that the source exports only as rates.
        """
        ends, sizes, starts = (self._logs[part] for part in LOG_PARTS)
        logs = {
            name: LogReading(end.read_ms, int(end.value), _whole(starts.get(name)), _whole(sizes.get(name)))
            for name, end in ends.items()
        }
        lags = tuple(self._lags.values())
        started_ms = (self._started_ms[origin] for origin in _ORIGINS if origin in self._started_ms)
        return Metrics(
            next(started_ms, None),
            self._counters,
            self._gauges,
            lags,
            logs,
            tuple(sorted(rates_only)),
            tuple(self._impossible.items()),
            frozenset(self._broker_ids),
        )

    def _is_possible(self, kind: str, name: str | None, keys: Mapping[str, str], value: float) -> bool:
        """Return whether a value is in the range of its MBean type; false for a type that is not read."""
        # Log values are checked in add_log, which skips logs outside the plan first.
        if kind == "Log":
            return True
        if kind not in RANGES:
            return False
        least, most = RANGES[kind]
        if least <= value <= most:
            return True
        self._note_impossible(MBeanRead(kind, name, "", keys).mbean, value)
        return False

    def _note_impossible(self, mbean: str, value: float) -> None:
        if value != _GONE:
            self._impossible[mbean] = value

    def _add_lag(self, keys: Mapping[str, str], value: Reading) -> None:
        fetcher = keys.get("clientId", "")
        source = source_broker(fetcher)
        partition = _partition_of(keys)
        if source is not None and partition is not None:
            offsets = int(value.value)
            self._lags[partition, fetcher] = Lag(partition, source, fetcher, offsets if offsets >= 0 else None)


def _partition_of(keys: Mapping[str, str]) -> TopicPartition | None:
    topic, number = keys.get("topic"), keys.get("partition", "")
    if topic is None or not _is_number(number):
        return None
    return TopicPartition(topic, int(number))


def _whole(reading: Reading | None) -> int | None:
    return None if reading is None else int(reading.value)

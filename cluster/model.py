"""State of the cluster in one tick: the values that the readers pass to the tick builder."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import NamedTuple

from headroom.schemas.keys import TopicPartition
from headroom.schemas.reassigned import Reassigned


@dataclass(frozen=True)
class Broker:
    """One broker; ``host`` and ``port`` are None if it was never registered during this run, ``rack`` without one."""

    broker: int
    host: str | None
    port: int | None
    alive: bool
    rack: str | None = None


@dataclass(frozen=True, slots=True)
class Partition(Reassigned):
    """One partition by the metadata and the reassignments; ``leader`` is None if it has none."""

    topic: str
    partition: int
    leader: int | None
    leader_epoch: int | None
    replicas: tuple[int, ...]
    isr: tuple[int, ...]
    offline: tuple[int, ...]
    adding: tuple[int, ...] = ()
    removing: tuple[int, ...] = ()

    @property
    def preferred_leader(self) -> int | None:
        """The preferred leader; None if there are no replicas."""
        return self.replicas[0] if self.replicas else None


@dataclass(frozen=True)
class TopicConfig:
    """Configuration of a topic, as far as the verdict needs it.

    Attributes:
        leader_list: leader.replication.throttled.replicas; None if not set.
        follower_list: follower.replication.throttled.replicas; None if not set.
        compacted: whether cleanup.policy contains compact.
        current: whether the last due read succeeded; false: this is the last known state.
        min_insync_replicas: min.insync.replicas of the topic or the broker; None if not reported.
        remote_storage: whether segments move to remote storage. Segments deleted locally then do not raise the log
            start offset (``UnifiedLog``). None if unknown.
        recompressed: whether the topic has its own codec, so that the log may grow by other bytes than producers
            send. None if unknown.
    """

    leader_list: str | None
    follower_list: str | None
    compacted: bool
    current: bool = True
    min_insync_replicas: int | None = None
    remote_storage: bool | None = None
    recompressed: bool | None = None

    @property
    def has_throttled_list(self) -> bool:
        """Whether the topic has a throttled replica list."""
        return self.leader_list is not None or self.follower_list is not None


@dataclass(frozen=True)
class Snapshot:
    """The cluster's metadata at one time.

    Attributes:
        brokers: every broker that is registered or has a replica, by id.
        partitions: every partition, by name.
        topic_ids: id of each topic; it changes when a topic is deleted and recreated.
        topic_configs: configuration of topics as last read; a topic that could never be read is missing.
        ages_ms: age of each topic's partitions at the time of the snapshot, milliseconds.
        reassignments_read: whether the reassignments were read; otherwise they are those of the snapshot before.
    """

    brokers: dict[int, Broker]
    partitions: dict[TopicPartition, Partition]
    topic_ids: dict[str, str]
    topic_configs: dict[str, TopicConfig] = field(default_factory=dict)
    ages_ms: dict[str, int] = field(default_factory=dict)
    reassignments_read: bool = True


@dataclass(frozen=True)
class BrokerThrottles:
    """Throttle rates in force on one broker, bytes per second; None with ``known`` if no rate is set.

    Attributes:
        known: whether the broker itself reported them.
        leader_bytes_per_s: leader throttle rate.
        follower_bytes_per_s: follower throttle rate.
        leader_source: entity that the leader rate comes from: broker, default or none; None if unknown.
        follower_source: entity that the follower rate comes from.
        log_dirs_bytes_per_s: rate of moves between the broker's own log directories.
        log_dirs_source: entity that the log directory rate comes from.
        in_file: keys of rates in the broker's properties file, where Kafka ignores them.
    """

    known: bool
    leader_bytes_per_s: int | None = None
    follower_bytes_per_s: int | None = None
    leader_source: str | None = None
    follower_source: str | None = None
    log_dirs_bytes_per_s: int | None = None
    log_dirs_source: str | None = None
    in_file: tuple[str, ...] = ()


@dataclass(frozen=True)
class LeaderRebalanceConfig:
    """Settings of a broker's automatic leader balancing; None if unknown, or missing in its release.

    Attributes:
        auto: auto.leader.rebalance.enable.
        check_interval_s: leader.imbalance.check.interval.seconds.
        percentage: leader.imbalance.per.broker.percentage; also None if not set explicitly.
    """

    auto: bool | None = None
    check_interval_s: int | None = None
    percentage: int | None = None


def rebalances_leaders(brokers: Iterable[LeaderRebalanceConfig]) -> bool | None:
    """Return whether Kafka gives leads back by itself; None if no broker that decides on it reported its setting."""
    settings = {balancing.auto for balancing in brokers} - {None}
    # With contradicting settings it depends on the controller that is active.
    return settings.pop() if len(settings) == 1 else None


@dataclass(frozen=True)
class ReplicationSettings:
    """Replication settings of a broker; None if unknown.

    Attributes:
        quota_window_num: replication.quota.window.num, number of samples of a replication quota.
        quota_window_size_s: replication.quota.window.size.seconds, length of a sample.
        replica_fetch_max_bytes: replica.fetch.max.bytes, maximum bytes of one partition in a fetch, except for a
            larger first batch.
        replica_fetch_response_max_bytes: replica.fetch.response.max.bytes, maximum bytes of a whole fetch.
        num_replica_fetchers: num.replica.fetchers, fetcher threads per source broker.
        replica_fetch_backoff_ms: replica.fetch.backoff.ms, wait of a fetcher after an error, or while it may fetch no
            partition, for example because a quota is exceeded.
    """

    quota_window_num: int | None = None
    quota_window_size_s: int | None = None
    replica_fetch_max_bytes: int | None = None
    replica_fetch_response_max_bytes: int | None = None
    num_replica_fetchers: int | None = None
    replica_fetch_backoff_ms: int | None = None


@dataclass(frozen=True)
class BrokerConfigs:
    """Configuration that a broker reports of itself."""

    throttles: BrokerThrottles
    balancing: LeaderRebalanceConfig = LeaderRebalanceConfig()
    replication: ReplicationSettings = ReplicationSettings()


class Meter(NamedTuple):
    """Identity of one meter or gauge of a broker; ``meter`` is the type and name of its MBean."""

    meter: str
    topic: str | None = None
    fetcher: str | None = None
    source_broker: int | None = None


class Reading(NamedTuple):
    """A value and its read time, epoch milliseconds by the collector's clock."""

    read_ms: int
    value: float


class Lag(NamedTuple):
    """One lag gauge of a follower; ``lag_offsets`` is None if the gauge was -1."""

    partition: TopicPartition
    source_broker: int
    fetcher: str
    lag_offsets: int | None


class LogReading(NamedTuple):
    """Offsets and size of one log; start and size are None if they were not read, or not reported."""

    read_ms: int
    log_end_offset: int
    log_start_offset: int | None
    size_bytes: int | None


@dataclass(frozen=True)
class Metrics:
    """Metrics of one broker.

    Attributes:
        started_ms: start time of its process, epoch milliseconds; None if not reported.
        counters: counts since the start.
        gauges: current values.
        lags: one per follower replica and fetcher.
        logs: one per log that was requested and reported.
        rates_only: meters that were reported only as a rate, and so are missing in the counters.
        impossible: MBeans with a value outside its valid range; these values are dropped.
        broker_ids: ids of the brokers that the process says it is; empty if it does not say, or was not asked.
    """

    started_ms: int | None
    counters: dict[Meter, Reading]
    gauges: dict[Meter, Reading]
    lags: tuple[Lag, ...]
    logs: dict[TopicPartition, LogReading]
    rates_only: tuple[str, ...] = ()
    impossible: tuple[tuple[str, float], ...] = ()
    broker_ids: frozenset[int] = frozenset()


@dataclass(frozen=True)
class BrokerRead:
    """Result of reading one broker in one tick.

    Attributes:
        broker: id of the broker.
        throttles: throttle rates in force on it.
        metrics: its metrics; None if they could not be read.
        error: read error, or the missing metrics with their consequences; None if nothing is missing.
        balancing: settings of its automatic leader balancing.
        replication: its replication settings.
    """

    broker: int
    throttles: BrokerThrottles
    metrics: Metrics | None
    error: str | None
    balancing: LeaderRebalanceConfig = LeaderRebalanceConfig()
    replication: ReplicationSettings = ReplicationSettings()

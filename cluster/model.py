"""What one tick saw of the cluster: the values that the readers hand to the tick builder."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NamedTuple


class TopicPartition(NamedTuple):
    """A partition's name."""

    topic: str
    partition: int


@dataclass(frozen=True)
class Broker:
    """One broker; ``host`` and ``port`` are None when it was never seen registered."""

    broker: int
    host: str | None
    port: int | None
    alive: bool


@dataclass(frozen=True, slots=True)
class Partition:
    """One partition as the metadata and the reassignments tell it; ``leader`` None: it has none."""

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
    def name(self) -> TopicPartition:
        """The partition's name."""
        return TopicPartition(self.topic, self.partition)

    @property
    def preferred(self) -> int | None:
        """The broker that is preferred to lead it; None: it has no replicas."""
        return self.replicas[0] if self.replicas else None

    @property
    def moving(self) -> bool:
        """Whether a reassignment of the partition is running."""
        return bool(self.adding or self.removing)


@dataclass(frozen=True)
class TopicConfig:
    """The configuration of a topic that matters here.

    Attributes:
        leader_list: leader.replication.throttled.replicas; None: not set.
        follower_list: follower.replication.throttled.replicas; None: not set.
        compacted: whether cleanup.policy has compact.
        current: whether it was read when it was due; false: it is what was last known.
        min_insync_replicas: min.insync.replicas, its own or the broker's; None: not told.
        remote_storage: whether segments move to remote storage: those that are deleted locally then do not raise the
            log start (``UnifiedLog``). None: not known.
        recompressed: whether the topic has a codec of its own, so that the log may grow by other bytes than producers
            send. None: not known.
    """

    leader_list: str | None
    follower_list: str | None
    compacted: bool
    current: bool = True
    min_insync_replicas: int | None = None
    remote_storage: bool | None = None
    recompressed: bool | None = None

    @property
    def listed(self) -> bool:
        """Whether the topic has a throttled replica list."""
        return self.leader_list is not None or self.follower_list is not None


@dataclass(frozen=True)
class Snapshot:
    """The cluster's metadata at one time.

    Attributes:
        brokers: every broker that is registered, or that holds a replica.
        partitions: every partition.
        topic_ids: identity of each topic: it changes when a topic is deleted and made again.
        topic_configs: configuration of topics as last read; a topic that could never be read is missing.
        ages_ms: how long before the snapshot each topic's partitions were read, milliseconds.
    """

    brokers: dict[int, Broker]
    partitions: dict[TopicPartition, Partition]
    topic_ids: dict[str, str]
    topic_configs: dict[str, TopicConfig] = field(default_factory=dict)
    ages_ms: dict[str, int] = field(default_factory=dict)


@dataclass(frozen=True)
class BrokerThrottles:
    """Rates in force on one broker, bytes per second; None with ``known``: none is set.

    Attributes:
        known: whether the broker itself told them.
        leader_source: broker, default or none: the entity that the rate comes from; None when not known.
        follower_source: the same of the follower rate.
        log_dirs_bytes_per_s: rate at which the broker moves replicas between its own log directories.
        log_dirs_source: the same as the other sources, of that rate.
        in_file: keys of rates that the broker's properties file sets, where Kafka does not look for them.
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
    """How a broker is told to balance leaders by itself; None: not known, or a key that its release does not have.

    Attributes:
        auto: auto.leader.rebalance.enable.
        check_interval_s: leader.imbalance.check.interval.seconds.
        percentage: leader.imbalance.per.broker.percentage; None also if it is not set explicitly.
    """

    auto: bool | None = None
    check_interval_s: int | None = None
    percentage: int | None = None


@dataclass(frozen=True)
class ReplicationSettings:
    """How a broker replicates; None: not known.

    Attributes:
        quota_window_num: replication.quota.window.num, how many samples a replication quota is the mean of.
        quota_window_size_s: replication.quota.window.size.seconds, of one sample.
        replica_fetch_max_bytes: replica.fetch.max.bytes, the most that a fetch takes of one partition, except for a
            larger first batch.
        replica_fetch_response_max_bytes: replica.fetch.response.max.bytes, the most that a whole fetch takes.
        num_replica_fetchers: num.replica.fetchers, threads for each broker that it fetches from.
        replica_fetch_backoff_ms: replica.fetch.backoff.ms, how long a fetcher waits after an error, and while there is
            no partition that it may fetch, as under a quota that is exceeded.
    """

    quota_window_num: int | None = None
    quota_window_size_s: int | None = None
    replica_fetch_max_bytes: int | None = None
    replica_fetch_response_max_bytes: int | None = None
    num_replica_fetchers: int | None = None
    replica_fetch_backoff_ms: int | None = None


@dataclass(frozen=True)
class BrokerConfigs:
    """What a broker reports of its own configuration."""

    throttles: BrokerThrottles
    balancing: LeaderRebalanceConfig = LeaderRebalanceConfig()
    replication: ReplicationSettings = ReplicationSettings()


class Meter(NamedTuple):
    """The name of one meter or gauge of a broker; ``meter`` is its MBean's type and name."""

    meter: str
    topic: str | None = None
    fetcher: str | None = None
    source_broker: int | None = None


class Reading(NamedTuple):
    """A value and when it was read, epoch milliseconds of the collector's clock."""

    read_ms: int
    value: float


class Lag(NamedTuple):
    """One lag gauge of a follower; ``lag_offsets`` None: the gauge said -1."""

    partition: TopicPartition
    source_broker: int
    fetcher: str
    lag_offsets: int | None


class LogReading(NamedTuple):
    """One log; start and size are None where only the end was asked for, or not told."""

    read_ms: int
    log_end_offset: int
    log_start_offset: int | None
    size_bytes: int | None


@dataclass(frozen=True)
class Metrics:
    """What one broker's MBeans said.

    Attributes:
        started_ms: when its process started; None: not told.
        counters: counts since then.
        gauges: values of now.
        lags: one per follower replica and fetcher.
        logs: one per log that was asked for and told.
        rates_only: meters that were told as a rate only; they are not among the counters.
        impossible: MBeans and the numbers they told, which no broker can mean; they are not among the others.
    """

    started_ms: int | None
    counters: dict[Meter, Reading]
    gauges: dict[Meter, Reading]
    lags: tuple[Lag, ...]
    logs: dict[TopicPartition, LogReading]
    rates_only: tuple[str, ...] = ()
    impossible: tuple[tuple[str, float], ...] = ()


@dataclass(frozen=True)
class BrokerRead:
    """What one tick learned from one broker.

    Attributes:
        broker: its id.
        throttles: the rates in force on it.
        metrics: what its MBeans said; None: they could not be read.
        error: why not, or what is lost because it does not tell all; None: nothing is lost.
        balancing: how it is told to balance leaders.
        replication: how it replicates.
    """

    broker: int
    throttles: BrokerThrottles
    metrics: Metrics | None
    error: str | None
    balancing: LeaderRebalanceConfig = LeaderRebalanceConfig()
    replication: ReplicationSettings = ReplicationSettings()

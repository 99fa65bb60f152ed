"""Reads the state that a reassignment plan rests on from a running cluster."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Mapping, Set
from contextlib import suppress
from dataclasses import dataclass, replace
from types import TracebackType

from cluster.connection.admin_connection import AdminConnection
from cluster.elections.leadership import unchanged_partitions
from cluster.elections.live_leadership import CONFIG_MAX_AGE_S, METADATA_S, READ_S
from cluster.elections.traffic import CounterSample, Traffic, traffic_between
from cluster.metadata.snapshot_reader import SnapshotReader, read_snapshot_once
from cluster.metadata.throttled_partitions import ReadPlanner
from cluster.metrics.broker_reads import BrokerMetricsReader
from cluster.metrics.factory import metrics_source
from cluster.metrics.mbeans import FOLLOWER_QUOTA, LEADER_QUOTA, TICK, ReadScope
from cluster.model import BrokerRead, Metrics, Partition, ReplicationSettings, Snapshot
from planning.finish.limits import DEFAULT_FETCH, DEFAULT_WINDOW, FetchLimits, QuotaWindow
from planning.reassignments.cluster_state import BrokerState, ClusterState, PartitionPlacement
from planning.throttles.replica_lists import TopicLists
from schemas.alerts import Role
from schemas.config import Settings
from schemas.errors import HeadroomError
from schemas.keys import TopicPartition


@dataclass(frozen=True)
class KnownRates:
    """Write rates that are known without measuring now.

    Attributes:
        write_bytes_per_s: bytes per second by partition; a missing partition is unknown.
        source: where they come from, as text for people.
    """

    write_bytes_per_s: Mapping[TopicPartition, float]
    source: str


class ClusterStateReader:
    """Reads the state of a cluster on its own connections.

    Args:
        settings: the cluster and the metrics source.
        sleep: waits for the given seconds.
        clock_ms: time now, epoch milliseconds.
        scope: kinds of metrics that are read.
    """

    def __init__(
        self,
        settings: Settings,
        sleep: Callable[[float], None] = time.sleep,
        clock_ms: Callable[[], int] = lambda: time.time_ns() // 1_000_000,
        scope: ReadScope = TICK,
    ) -> None:
        self._name = settings.cluster.name
        self.connection = AdminConnection(settings.cluster)
        self._source = metrics_source(settings.collect)
        wait_s = max(METADATA_S, settings.cluster.request_timeout_ms / 1000)
        self._metadata = SnapshotReader(self.connection, wait_s, CONFIG_MAX_AGE_S, reassignments_share=1.0)
        self._broker_reader = BrokerMetricsReader(self.connection, self._source, settings.collect)
        self._plans = ReadPlanner(scope)
        self._sleep, self._measure_s = sleep, settings.collect.measure_s
        self._clock_ms = clock_ms

    def __enter__(self) -> ClusterStateReader:
        """Connect and return this object.

        Raises:
            HeadroomError: no broker could be reached.
        """
        self.connection.client()
        # Without the source there are no rates; the state then has none.
        with suppress(HeadroomError):
            self._source.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        """Close the connections."""
        self._source.stop()
        self.connection.close()

    def partitions(self) -> Set[TopicPartition]:
        """Return the names of all partitions, from the metadata alone.

        Raises:
            HeadroomError: the metadata could not be read.
        """
        return read_snapshot_once(self._metadata).partitions.keys()

    def read(self, names: Collection[TopicPartition] | None, known: KnownRates | None = None) -> ClusterState:
        """Return the state of the cluster.

        Args:
            names: partitions whose log sizes are read from metrics; None: those that are being reassigned.
            known: write rates; if None, two readings ``collect.measure_s`` apart measure them.

        Raises:
            HeadroomError: the metadata could not be read.
        """
        if known is None:
            return self.measure(names)[0]
        snapshot = read_snapshot_once(self._metadata)
        return cluster_state_of(self._name, self._clock_ms(), snapshot, self._read(snapshot, names), known)

    def measure(self, names: Collection[TopicPartition] | None) -> tuple[ClusterState, Traffic]:
        """Return the state of the cluster, and the traffic, by two readings ``collect.measure_s`` apart.

        Args:
            names: partitions whose log sizes and rates are read; None: those that are being reassigned.

        Raises:
            HeadroomError: the metadata could not be read.
        """
        before = read_snapshot_once(self._metadata)
        earlier = CounterSample.of(self._read(before, names))
        self._sleep(self._measure_s)
        now = read_snapshot_once(self._metadata)
        reads = self._read(now, names)
        traffic = traffic_between(unchanged_partitions(before, now), earlier, CounterSample.of(reads))
        measured = KnownRates(traffic.written, f"two readings {self._measure_s:g} s apart")
        return cluster_state_of(self._name, self._clock_ms(), now, reads, measured), traffic

    def _read(self, snapshot: Snapshot, names: Collection[TopicPartition] | None) -> dict[int, BrokerRead]:
        moving = [name for name, partition in snapshot.partitions.items() if partition.moving]
        watched = moving if names is None else [name for name in names if name in snapshot.partitions]
        return self._broker_reader.read(snapshot.brokers, self._plans.of(snapshot, watched), READ_S)


def cluster_state_of(
    cluster: str, read_ms: int, snapshot: Snapshot, reads: Mapping[int, BrokerRead], rates: KnownRates
) -> ClusterState:
    """Return the state of a cluster as it was read.

    Args:
        cluster: name of the cluster.
        read_ms: time of the reading, epoch milliseconds.
        snapshot: the metadata.
        reads: metrics and rates by broker that is alive.
        rates: write rates of the partitions.
    """
    brokers = {
        broker: _broker(broker, info.alive, info.rack, reads.get(broker))
        for broker, info in sorted(snapshot.brokers.items())
    }
    partitions = {
        name: _placement(partition, reads, rates.write_bytes_per_s.get(name))
        for name, partition in sorted(snapshot.partitions.items())
    }
    lists = {
        topic: TopicLists(config.leader_list, config.follower_list)
        for topic, config in sorted(snapshot.topic_configs.items())
        if config.listed
    }
    return ClusterState(
        cluster=cluster,
        read_ms=read_ms,
        brokers=brokers,
        partitions=partitions,
        topic_ids=dict(sorted(snapshot.topic_ids.items())),
        lists=lists,
        auto_leader_rebalance=_rebalances(reads),
        rates_from=rates.source,
    )


def _broker(broker: int, alive: bool, rack: str | None, read: BrokerRead | None) -> BrokerState:
    state = BrokerState(broker, alive, rack, throttles_known=False)
    if read is None:
        return state
    throttles, replication = read.throttles, read.replication
    return replace(
        state,
        throttles_known=throttles.known,
        leader_bytes_per_s=throttles.leader_bytes_per_s,
        follower_bytes_per_s=throttles.follower_bytes_per_s,
        log_dirs_bytes_per_s=throttles.log_dirs_bytes_per_s,
        quota_window=_quota_window(replication),
        fetch=_fetch_limits(replication),
        unused_quotas=_unused_quotas(read.metrics),
    )


def _unused_quotas(metrics: Metrics | None) -> frozenset[Role]:
    """Return the roles without a gauge, which a broker has from the first amount on that its quota counts."""
    if metrics is None:
        return frozenset()
    gauges = {Role.LEADER: LEADER_QUOTA, Role.FOLLOWER: FOLLOWER_QUOTA}
    return frozenset(role for role, gauge in gauges.items() if gauge not in metrics.gauges)


def _quota_window(found: ReplicationSettings) -> QuotaWindow:
    """Return the quota window of a broker; Kafka's defaults for values that it does not report."""
    samples, sample_s = found.quota_window_num, found.quota_window_size_s
    return QuotaWindow(samples or DEFAULT_WINDOW.samples, float(sample_s or DEFAULT_WINDOW.sample_s))


def _fetch_limits(found: ReplicationSettings) -> FetchLimits:
    """Return the fetch limits of a broker; Kafka's defaults for values that it does not report."""
    backoff_ms = found.replica_fetch_backoff_ms
    return FetchLimits(
        partition_bytes=found.replica_fetch_max_bytes or DEFAULT_FETCH.partition_bytes,
        response_bytes=found.replica_fetch_response_max_bytes or DEFAULT_FETCH.response_bytes,
        fetchers=found.num_replica_fetchers or DEFAULT_FETCH.fetchers,
        backoff_s=DEFAULT_FETCH.backoff_s if backoff_ms is None else backoff_ms / 1000,
    )


def _placement(p: Partition, reads: Mapping[int, BrokerRead], written: float | None) -> PartitionPlacement:
    size = None if p.leader is None else _log_bytes(reads, p.leader, p.name)
    copied = {b: found for b in p.adding if (found := _log_bytes(reads, b, p.name)) is not None}
    return replace(placement_of(p, written), size_bytes=size, copied_bytes=copied)


def placement_of(partition: Partition, write_bytes_per_s: float | None) -> PartitionPlacement:
    """Return where the replicas of a partition are; sizes and log directories are unknown."""
    return PartitionPlacement(
        topic=partition.topic,
        partition=partition.partition,
        leader=partition.leader,
        replicas=partition.replicas,
        isr=partition.isr,
        adding=partition.adding,
        removing=partition.removing,
        write_bytes_per_s=write_bytes_per_s,
    )


def _log_bytes(reads: Mapping[int, BrokerRead], broker: int, name: TopicPartition) -> int | None:
    read = reads.get(broker)
    log = read.metrics.logs.get(name) if read is not None and read.metrics is not None else None
    return None if log is None else log.size_bytes


def _rebalances(reads: Mapping[int, BrokerRead]) -> bool | None:
    """Return whether Kafka gives leads back by itself; None if no broker that decides on it reported its setting."""
    found = {read.balancing.auto for read in reads.values()} - {None}
    # With contradicting settings it depends on the controller that is active.
    return found.pop() if len(found) == 1 else None

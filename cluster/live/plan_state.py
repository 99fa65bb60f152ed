"""The state that a reassignment plan rests on, from the metadata and the metrics of a cluster."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from headroom.cluster.metrics.mbeans import FOLLOWER_QUOTA, LEADER_QUOTA
from headroom.cluster.model import BrokerRead, Metrics, Partition, Snapshot, rebalances_leaders
from headroom.planning.quotas.limits import FetchLimits, QuotaWindow
from headroom.planning.reassignments.cluster_state import BrokerState, ClusterState, PartitionPlacement
from headroom.planning.throttles.replica_lists import TopicLists
from headroom.schemas.keys import Role, TopicPartition


@dataclass(frozen=True)
class KnownRates:
    """Write rates that are known without measuring now.

    Attributes:
        write_bytes_per_s: bytes per second by partition; a missing partition is unknown.
        source: where they come from, as text for people.
    """

    write_bytes_per_s: Mapping[TopicPartition, float]
    source: str


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
        if config.has_throttled_list
    }
    return ClusterState(
        cluster=cluster,
        read_ms=read_ms,
        brokers=brokers,
        partitions=partitions,
        topic_ids=dict(sorted(snapshot.topic_ids.items())),
        lists=lists,
        auto_leader_rebalance=rebalances_leaders(read.balancing for read in reads.values()),
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
        quota_window=QuotaWindow.with_defaults(replication.quota_window_num, replication.quota_window_size_s),
        fetch=FetchLimits.with_defaults(
            replication.replica_fetch_max_bytes,
            replication.replica_fetch_response_max_bytes,
            replication.num_replica_fetchers,
            replication.replica_fetch_backoff_ms,
        ),
        unused_quotas=_unused_quotas(read.metrics),
    )


def _unused_quotas(metrics: Metrics | None) -> frozenset[Role]:
    """Return the roles without a gauge, which a broker has from the first amount on that its quota counts."""
    if metrics is None:
        return frozenset()
    gauges = {Role.LEADER: LEADER_QUOTA, Role.FOLLOWER: FOLLOWER_QUOTA}
    return frozenset(role for role, gauge in gauges.items() if gauge not in metrics.gauges)


def _placement(p: Partition, reads: Mapping[int, BrokerRead], written: float | None) -> PartitionPlacement:
    size = None if p.leader is None else _log_bytes(reads, p.leader, p.name)
    copied = {b: log_bytes for b in p.adding if (log_bytes := _log_bytes(reads, b, p.name)) is not None}
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

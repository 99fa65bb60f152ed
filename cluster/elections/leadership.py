"""Leadership of a cluster with the constraints on elections: the input of an election plan."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from headroom.cluster.elections.traffic import Traffic
from headroom.cluster.metadata.throttled_partitions import listed_brokers, watched_partitions
from headroom.cluster.model import BrokerRead, BrokerThrottles, LeaderRebalanceConfig, Metrics, Partition, Snapshot
from headroom.planning.elections.planner import ClusterConstraints, PartitionState
from headroom.planning.quotas.load import PartitionTraffic, partition_traffic
from headroom.schemas.keys import BrokerRole, Role, TopicPartition


@dataclass(frozen=True)
class LeadershipSnapshot:
    """State of the cluster for elections, at one time.

    Attributes:
        partitions: every partition.
        alive: brokers that are alive.
        under_replicated: partitions with an out-of-sync replica that no reassignment adds.
        throttled: partitions that are reassigned or in a throttled replica list.
        throttles: rates in force by broker and role, bytes per second; None without a rate, missing if unknown.
        traffic: measured traffic; empty if only the metadata was read.
        balancing: automatic leader balancing by broker; missing if the broker did not report it.
        behind: watched partitions with an in-sync follower that has fallen behind.
    """

    partitions: Mapping[TopicPartition, PartitionState]
    alive: frozenset[int]
    under_replicated: frozenset[TopicPartition]
    throttled: tuple[PartitionTraffic, ...] = ()
    throttles: Mapping[BrokerRole, float | None] = field(default_factory=dict)
    traffic: Traffic = field(default_factory=Traffic)
    balancing: Mapping[int, LeaderRebalanceConfig] = field(default_factory=dict)
    behind: frozenset[TopicPartition] = frozenset()

    def cluster_constraints(
        self,
        topics: frozenset[str] | None = None,
        brokers: frozenset[int] | None = None,
        partitions: frozenset[TopicPartition] | None = None,
    ) -> ClusterConstraints:
        """Return the constraints on elections.

        Args:
            topics: restricts elections to these topics; None: all.
            brokers: restricts elections to partitions whose preferred leader is one of these; None: all.
            partitions: restricts elections to these partitions; None: all.
        """
        return ClusterConstraints(
            self.alive,
            self.throttled,
            self.throttles,
            chosen_topics=topics,
            chosen_brokers=brokers,
            chosen_partitions=partitions,
        )


def leadership_of(
    snapshot: Snapshot, reads: Mapping[int, BrokerRead] | None = None, traffic: Traffic | None = None
) -> LeadershipSnapshot:
    """Return the leadership of a snapshot.

    Args:
        snapshot: the metadata.
        reads: metrics and rates by broker; None if none was read.
        traffic: measured traffic; None if none was measured.
    """
    broker_reads = reads or {}
    known_traffic = traffic or Traffic()
    alive = frozenset(broker for broker, info in snapshot.brokers.items() if info.alive)
    return LeadershipSnapshot(
        {
            name: _partition_state(name, partition, snapshot, known_traffic)
            for name, partition in snapshot.partitions.items()
        },
        alive,
        frozenset(name for name, partition in snapshot.partitions.items() if partition.is_under_replicated),
        tuple(
            _partition_traffic(snapshot.partitions[name], snapshot, alive, known_traffic)
            for name in sorted(watched_partitions(snapshot))
        ),
        _rates_by_role({broker: read.throttles for broker, read in broker_reads.items()}),
        known_traffic,
        {broker: read.balancing for broker, read in broker_reads.items()},
    )


def unchanged_partitions(earlier: Snapshot, later: Snapshot) -> list[Partition]:
    """Return the partitions of the topics whose leaders are the same in both snapshots.

    Only their rates can be computed from samples taken at these times, because brokers count bytes per topic.
    """
    changed = {
        name.topic
        for name in earlier.partitions.keys() | later.partitions.keys()
        if _leader(earlier, name) != _leader(later, name)
    }
    return [partition for name, partition in later.partitions.items() if name.topic not in changed]


def followers_behind(
    partitions: Iterable[Partition], earlier: Mapping[int, Metrics], later: Mapping[int, Metrics]
) -> frozenset[TopicPartition]:
    """Return the partitions with an in-sync follower that is behind the leader's earlier log end offset.

    Such a follower stays in the ISR until replica.lag.time.max.ms has passed. A log without a reading counts as not
    behind.

    Args:
        partitions: the partitions at the later time.
        earlier: metrics by broker, some seconds before.
        later: metrics by broker at the later time.
    """
    return frozenset(
        p.name
        for p in partitions
        if p.leader is not None
        and (wanted := _end(earlier, p.leader, p.name)) is not None
        and any((end := _end(later, b, p.name)) is not None and end < wanted for b in p.isr if b != p.leader)
    )


def _end(metrics: Mapping[int, Metrics], broker: int, name: TopicPartition) -> int | None:
    log = metrics[broker].logs.get(name) if broker in metrics else None
    return log.log_end_offset if log is not None else None


def _leader(snapshot: Snapshot, name: TopicPartition) -> int | None:
    partition = snapshot.partitions.get(name)
    return partition.leader if partition is not None else None


def _partition_state(
    name: TopicPartition, partition: Partition, snapshot: Snapshot, traffic: Traffic
) -> PartitionState:
    config = snapshot.topic_configs.get(partition.topic)
    return PartitionState(
        name=partition.name,
        leader=partition.leader,
        replicas=partition.replicas,
        isr=partition.isr,
        moving=partition.moving,
        min_insync_replicas=config.min_insync_replicas if config is not None else None,
        write_bytes_per_s=traffic.written.get(name),
        read_bytes_per_s=traffic.read.get(name),
    )


def _partition_traffic(
    partition: Partition, snapshot: Snapshot, alive: frozenset[int], traffic: Traffic
) -> PartitionTraffic:
    listed = listed_brokers(partition, snapshot.topic_configs.get(partition.topic))
    return partition_traffic(partition, alive, listed.leader, listed.follower, traffic.written.get(partition.name))


def _rates_by_role(throttles: Mapping[int, BrokerThrottles]) -> dict[BrokerRole, float | None]:
    rates_by_role: dict[BrokerRole, float | None] = {}
    for broker, rates in throttles.items():
        if rates.known:
            rates_by_role[BrokerRole(broker, Role.LEADER)] = rates.leader_bytes_per_s
            rates_by_role[BrokerRole(broker, Role.FOLLOWER)] = rates.follower_bytes_per_s
    return rates_by_role

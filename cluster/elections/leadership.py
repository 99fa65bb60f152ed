"""Who leads what, and all that speaks for or against another leader: what a plan of elections is made of."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from cluster.elections.traffic import Traffic
from cluster.metadata.throttled_partitions import listed_brokers, watched_partitions
from cluster.model import (
    BrokerRead,
    BrokerThrottles,
    LeaderRebalanceConfig,
    Metrics,
    Partition,
    Snapshot,
    TopicPartition,
)
from planning.elections.planner import ClusterConstraints, Name, PartitionState
from planning.throttles.load import BrokerRole, PartitionTraffic, partition_traffic
from schemas.alerts import Role


@dataclass(frozen=True)
class LeadershipSnapshot:
    """The cluster as elections see it, at one time.

    Attributes:
        partitions: every partition.
        alive: brokers that are alive.
        lacking: partitions of which a replica that no move brings is out of the ISR.
        throttled: partitions that move or that a throttled replica list names.
        throttles: throttle rates in force by broker and role, None for none; a side that is missing is unknown.
        traffic: what was measured; of a glance nothing is.
        balancing: how brokers are told to balance leaders by themselves; one that is missing did not tell.
        behind: of the partitions that were watched, those of which a follower in sync has fallen behind.
    """

    partitions: Mapping[Name, PartitionState]
    alive: frozenset[int]
    lacking: frozenset[Name]
    throttled: tuple[PartitionTraffic, ...] = ()
    throttles: Mapping[BrokerRole, float | None] = field(default_factory=dict)
    traffic: Traffic = field(default_factory=Traffic)
    balancing: Mapping[int, LeaderRebalanceConfig] = field(default_factory=dict)
    behind: frozenset[Name] = frozenset()

    def cluster_constraints(
        self, topics: frozenset[str] | None = None, brokers: frozenset[int] | None = None
    ) -> ClusterConstraints:
        """Return what else elections have to mind.

        Args:
            topics: only these; None: all.
            brokers: only partitions that prefer one of these; None: all.
        """
        return ClusterConstraints(
            self.alive, self.throttled, self.throttles, chosen_topics=topics, chosen_brokers=brokers
        )


def leadership_of(
    snapshot: Snapshot, reads: Mapping[int, BrokerRead] | None = None, traffic: Traffic | None = None
) -> LeadershipSnapshot:
    """Return what a snapshot says of leaders.

    Args:
        snapshot: the metadata.
        reads: what each broker told of itself; None: none was asked.
        traffic: what was measured; None: nothing.
    """
    told = reads or {}
    measured = traffic or Traffic()
    alive = frozenset(broker for broker, seen in snapshot.brokers.items() if seen.alive)
    return LeadershipSnapshot(
        {name: _led(name, partition, snapshot, measured) for name, partition in snapshot.partitions.items()},
        alive,
        frozenset(name for name, partition in snapshot.partitions.items() if _lacks(partition)),
        tuple(
            _throttled(snapshot.partitions[name], snapshot, alive, measured)
            for name in sorted(watched_partitions(snapshot))
        ),
        _sides({broker: read.throttles for broker, read in told.items()}),
        measured,
        {broker: read.balancing for broker, read in told.items()},
    )


def unchanged_partitions(earlier: Snapshot, later: Snapshot) -> list[Partition]:
    """Return the partitions whose rates can be told from samples taken then: topics whose leaders are the same."""
    changed = {
        name.topic
        for name in earlier.partitions.keys() | later.partitions.keys()
        if _leader(earlier, name) != _leader(later, name)
    }
    return [partition for name, partition in later.partitions.items() if name.topic not in changed]


def followers_behind(
    partitions: Iterable[Partition], earlier: Mapping[int, Metrics], later: Mapping[int, Metrics]
) -> frozenset[Name]:
    """Return the partitions of which a follower in sync has not even come to where the leader's log ended earlier.

    So far behind it stays in the ISR until replica.lag.time.max.ms is over. A log that was not told is not behind.

    Args:
        partitions: as they are at the later time.
        earlier: what brokers told some seconds before.
        later: what they told then.
    """
    return frozenset(
        p.name
        for p in partitions
        if p.leader is not None
        and (wanted := _end(earlier, p.leader, p.name)) is not None
        and any((end := _end(later, b, p.name)) is not None and end < wanted for b in p.isr if b != p.leader)
    )


def _end(told: Mapping[int, Metrics], broker: int, name: TopicPartition) -> int | None:
    log = told[broker].logs.get(name) if broker in told else None
    return log.log_end_offset if log is not None else None


def _leader(snapshot: Snapshot, name: TopicPartition) -> int | None:
    partition = snapshot.partitions.get(name)
    return partition.leader if partition is not None else None


def _led(name: TopicPartition, partition: Partition, snapshot: Snapshot, traffic: Traffic) -> PartitionState:
    config = snapshot.topic_configs.get(partition.topic)
    return PartitionState(
        topic=partition.topic,
        partition=partition.partition,
        leader=partition.leader,
        replicas=partition.replicas,
        isr=partition.isr,
        moving=partition.moving,
        min_insync_replicas=config.min_insync_replicas if config is not None else None,
        write_bytes_per_s=traffic.written.get(name),
        read_bytes_per_s=traffic.read.get(name),
    )


def _lacks(partition: Partition) -> bool:
    return not set(partition.replicas) - set(partition.adding) <= set(partition.isr)


def _throttled(partition: Partition, snapshot: Snapshot, alive: frozenset[int], traffic: Traffic) -> PartitionTraffic:
    listed = listed_brokers(partition, snapshot.topic_configs.get(partition.topic))
    return partition_traffic(
        partition.name,
        partition.leader,
        partition.replicas,
        partition.isr,
        partition.adding,
        (listed.leader, listed.follower),
        traffic.written.get(partition.name),
        alive,
    )


def _sides(rates: Mapping[int, BrokerThrottles]) -> dict[BrokerRole, float | None]:
    sides: dict[BrokerRole, float | None] = {}
    for broker, told in rates.items():
        if told.known:
            sides[broker, Role.LEADER] = told.leader_bytes_per_s
            sides[broker, Role.FOLLOWER] = told.follower_bytes_per_s
    return sides

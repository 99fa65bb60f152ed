"""What a run reads of a cluster at every look: partitions, throttles, and what is wrong."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from headroom.planning.log_dirs.broker_logs import BrokerLogs, with_log_dirs
from headroom.planning.reassignments.cluster_state import BrokerState, ClusterState, PartitionPlacement
from headroom.planning.reassignments.run.journal import ThrottledList
from headroom.schemas.keys import BrokerRate, TopicPartition


@dataclass(frozen=True)
class RateInForce:
    """One throttle rate of a broker, bytes per second.

    Attributes:
        own: the broker's own rate; None if none is set.
        default: cluster-wide default in force, because the broker has no own rate; None if there is none.
    """

    own: int | None = None
    default: int | None = None

    @property
    def in_force(self) -> int | None:
        """Rate in force; None if the broker is not limited."""
        return self.default if self.own is None else self.own


@dataclass(frozen=True)
class LostReplicas:
    """Partitions with replicas that are not as they should be.

    Attributes:
        offline: partitions with an offline replica.
        under_replicated: partitions with an out-of-sync replica that no reassignment adds.
    """

    offline: frozenset[TopicPartition]
    under_replicated: frozenset[TopicPartition]


@dataclass(frozen=True)
class RunSnapshot:
    """State of the cluster at one look of a run.

    Attributes:
        partitions: every partition.
        alive: brokers that are registered.
        rates: rates by broker and role, and for moves between log directories; a broker that did not report them is
            missing.
        lists: throttled replica lists as text; a list that is not set is missing.
        topic_ids: id of each topic.
        offline: partitions with an offline replica: its broker is down, or its disk failed.
        cluster_write_bytes_per_s: write rate of producers to the whole cluster; None if unknown.
        logs: logs of the partitions with a named log directory, by broker that has a replica of them and reported it.
        auto_leader_rebalance: whether Kafka gives leads to preferred leaders by itself; None if unknown.
        waits_for_kept: whether reassignments end only once every replica that stays is in sync, as before Kafka 4.3;
            None if unknown.
        reassignments_read: whether the reassignments were read; otherwise they are those of the look before.
    """

    partitions: Mapping[TopicPartition, PartitionPlacement]
    alive: frozenset[int]
    rates: Mapping[BrokerRate, RateInForce] = field(default_factory=dict)
    lists: Mapping[ThrottledList, str] = field(default_factory=dict)
    topic_ids: Mapping[str, str] = field(default_factory=dict)
    offline: frozenset[TopicPartition] = frozenset()
    cluster_write_bytes_per_s: float | None = None
    logs: Mapping[int, BrokerLogs] = field(default_factory=dict)
    auto_leader_rebalance: bool | None = None
    waits_for_kept: bool | None = None
    reassignments_read: bool = True

    @property
    def under_replicated(self) -> frozenset[TopicPartition]:
        """Partitions with an out-of-sync replica that no reassignment adds."""
        return frozenset(name for name, p in self.partitions.items() if p.is_under_replicated)

    @property
    def lost(self) -> LostReplicas:
        """Partitions with replicas that are offline or out of sync."""
        return LostReplicas(self.offline, self.under_replicated)

    def moves(self, name: TopicPartition) -> bool:
        """Return whether a reassignment of a partition is running; a missing partition does not move."""
        partition = self.partitions.get(name)
        return partition is not None and partition.moving

    def awaited_brokers(self, name: TopicPartition) -> tuple[int, ...]:
        """Return the brokers that are down, and whose replica the running reassignment of a partition waits for.

        These are replicas that it adds, and those that it keeps if its end waits for them too.
        """
        if not self.moves(name):
            return ()
        partition = self.partitions[name]
        added = tuple(broker for broker in partition.adding if broker not in self.alive)
        return added + partition.dead_kept(partition.target, self.alive, self.waits_for_kept)


def cluster_state_of_run(snapshot: RunSnapshot, logs: Mapping[int, BrokerLogs]) -> ClusterState:
    """Return the state of the cluster that a plan is checked against before it is run.

    Args:
        snapshot: the cluster now.
        logs: log directories by broker that reported them, with the logs of the plan's partitions.
    """
    known = snapshot.alive | {broker for p in snapshot.partitions.values() for broker in p.replicas}
    brokers = {broker: BrokerState(broker, alive=broker in snapshot.alive) for broker in sorted(known)}
    state = ClusterState(
        "",
        0,
        brokers,
        snapshot.partitions,
        snapshot.topic_ids,
        auto_leader_rebalance=snapshot.auto_leader_rebalance,
        waits_for_kept=snapshot.waits_for_kept,
    )
    return with_log_dirs(state, logs)

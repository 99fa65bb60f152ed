"""What a run reads of a cluster at every look: partitions, throttles, and what is wrong."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from planning.reassignments.cluster_state import PartitionPlacement
from planning.reassignments.run.journal import ThrottledList
from schemas.keys import BrokerRole, TopicPartition


@dataclass(frozen=True)
class RateInForce:
    """Throttle rate of a broker in one role, bytes per second.

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
class RunSnapshot:
    """State of the cluster at one look of a run.

    Attributes:
        partitions: every partition.
        alive: brokers that are registered.
        rates: rates by broker and role; a broker that did not report them is missing.
        lists: throttled replica lists as text; a list that is not set is missing.
        topic_ids: id of each topic.
        offline: partitions with an offline replica: its broker is down, or its disk failed.
        cluster_write_bytes_per_s: write rate of producers to the whole cluster; None if unknown.
    """

    partitions: Mapping[TopicPartition, PartitionPlacement]
    alive: frozenset[int]
    rates: Mapping[BrokerRole, RateInForce] = field(default_factory=dict)
    lists: Mapping[ThrottledList, str] = field(default_factory=dict)
    topic_ids: Mapping[str, str] = field(default_factory=dict)
    offline: frozenset[TopicPartition] = frozenset()
    cluster_write_bytes_per_s: float | None = None

    @property
    def under_replicated(self) -> frozenset[TopicPartition]:
        """Partitions with an out-of-sync replica that no reassignment adds."""
        return frozenset(
            name for name, p in self.partitions.items() if not set(p.replicas) - set(p.adding) <= set(p.isr)
        )

    def moves(self, name: TopicPartition) -> bool:
        """Return whether a reassignment of a partition is running; a missing partition does not move."""
        partition = self.partitions.get(name)
        return partition is not None and partition.moving


def target_of(partition: PartitionPlacement) -> tuple[int, ...]:
    """Return the replicas after the running reassignment, the preferred leader first.

    Source: Kafka 4.3.1, ``PartitionReassignmentReplicas``: the target replicas come first, then the removing ones.
    """
    return tuple(broker for broker in partition.replicas if broker not in partition.removing)


def replicas_before(partition: PartitionPlacement) -> tuple[int, ...]:
    """Return the replicas without those that a running reassignment adds; their order may differ from before it."""
    return tuple(broker for broker in partition.replicas if broker not in partition.adding)

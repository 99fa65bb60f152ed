"""What follows from the replicas of a partition and from its running reassignment, for every record of a partition."""

from __future__ import annotations

from collections.abc import Collection, Iterable

from headroom.schemas.keys import TopicPartition


def target_of(replicas: Iterable[int], removing: Collection[int]) -> tuple[int, ...]:
    """Return the replicas after a reassignment, the preferred leader first.

    Source: Kafka 4.3.1, ``PartitionReassignmentReplicas``: during a reassignment, the replicas are the target replicas
    in their order, followed by the removing ones.

    Args:
        replicas: current replicas in their order.
        removing: replicas that the reassignment removes.
    """
    return tuple(broker for broker in replicas if broker not in removing)


def before_of(replicas: Iterable[int], adding: Collection[int]) -> tuple[int, ...]:
    """Return the replicas without those that a reassignment adds; their order may differ from before it.

    Args:
        replicas: current replicas in their order.
        adding: replicas that the reassignment adds.
    """
    return tuple(broker for broker in replicas if broker not in adding)


class Reassigned:
    """Base of records of a partition that have these fields of Kafka's metadata.

    Attributes:
        topic: topic.
        partition: partition.
        leader: broker id of the leader; None if there is no leader.
        replicas: current replicas, adding ones included; the first is the preferred leader.
        isr: replicas in sync.
        adding: replicas that a running reassignment adds.
        removing: replicas that a running reassignment removes.
    """

    __slots__ = ()
    topic: str
    partition: int
    leader: int | None
    replicas: tuple[int, ...]
    isr: tuple[int, ...]
    adding: tuple[int, ...]
    removing: tuple[int, ...]

    @property
    def name(self) -> TopicPartition:
        """Topic and number of the partition."""
        return TopicPartition(self.topic, self.partition)

    @property
    def moving(self) -> bool:
        """Whether a reassignment of it is running."""
        return bool(self.adding or self.removing)

    @property
    def target(self) -> tuple[int, ...]:
        """The replicas after the running reassignment, the preferred leader first."""
        return target_of(self.replicas, self.removing)

    @property
    def before(self) -> tuple[int, ...]:
        """The replicas without those that a running reassignment adds; their order may differ from before it."""
        return before_of(self.replicas, self.adding) if self.adding else self.replicas

    @property
    def is_under_replicated(self) -> bool:
        """Whether a replica that no reassignment adds is out of sync."""
        return len(self.isr) < len(self.replicas) and not set(self.before) <= set(self.isr)

"""Groups of equal partitions in a move, and the load of brokers computed by hand."""

from __future__ import annotations

import random
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class Group:
    """Equal partitions.

    Attributes:
        count: number of partitions.
        before: replicas before the move, preferred leader first.
        after: replicas after the move; equal to ``before`` if the partitions do not move.
        write_bytes_per_s: write rate of each partition.
        least_bytes: smallest history of a partition.
        most_bytes: largest history; each partition's is drawn between the two.
    """

    count: int
    before: tuple[int, ...]
    after: tuple[int, ...]
    write_bytes_per_s: float
    least_bytes: int
    most_bytes: int

    @property
    def moves(self) -> bool:
        """Return whether the partitions are reassigned."""
        return self.before != self.after

    @property
    def adding(self) -> tuple[int, ...]:
        """Return the brokers that become replicas."""
        return tuple(broker for broker in self.after if broker not in self.before)

    @property
    def writes_bytes_per_s(self) -> float:
        """Return the write rate of all the partitions."""
        return self.count * self.write_bytes_per_s

    def sizes(self, draw: random.Random) -> list[int]:
        """Return a history in bytes for each partition."""
        return [round(draw.uniform(self.least_bytes, self.most_bytes)) for _ in range(self.count)]

    def leader(self, down: Collection[int] = ()) -> int | None:
        """Return the leader while some brokers are down; None if no in-sync replica is up.

        Without a failure it is the preferred leader. When a leader fails, the first in-sync replica in the partition's
        order takes over, and that order begins with the target of the move.

        Source: Kafka 4.3.1, ``PartitionReassignmentReplicas.replicas`` and ``PartitionChangeBuilder.electAnyLeader``.
        """
        if self.before[0] not in down:
            return self.before[0]
        order = (*self.after, *self.before)
        return next((broker for broker in order if broker in self.before and broker not in down), None)


@dataclass(frozen=True)
class Load:
    """Throttled traffic of one broker and role while the groups move, bytes per second.

    Attributes:
        in_sync_bytes_per_s: traffic of in-sync followers, which no throttle limits.
        required_bytes_per_s: traffic of all followers that fetch; the throttle has to exceed it.
        returning_bytes_per_s: traffic that followers on brokers that are down add once these are back.
    """

    in_sync_bytes_per_s: float
    required_bytes_per_s: float
    returning_bytes_per_s: float = 0.0

    @property
    def lasting_bytes_per_s(self) -> float:
        """Return the rate that the throttle has to exceed, also once all brokers are back."""
        return self.required_bytes_per_s + self.returning_bytes_per_s


def leader_load(groups: Iterable[Group], broker: int, down: Collection[int] = ()) -> Load:
    """Return the load of a broker as leader of moving partitions, computed independently of the measured code.

    Args:
        groups: all partitions; those that do not move are in no throttled list.
        broker: broker id.
        down: brokers that are down: others lead their partitions, and they fetch nothing.
    """
    led = [group for group in groups if group.moves and group.leader(down) == broker]
    in_sync = sum(g.writes_bytes_per_s * len(set(g.before) - {broker} - set(down)) for g in led)
    adding = sum(g.writes_bytes_per_s * len(set(g.adding) - set(down)) for g in led)
    returning = sum(g.writes_bytes_per_s * len({*g.before, *g.adding} & set(down)) for g in led)
    return Load(in_sync, in_sync + adding, returning)


def inbound_load(groups: Iterable[Group], broker: int) -> Load:
    """Return the load of a broker as destination until the first of its new replicas is in sync."""
    return Load(0.0, sum(group.writes_bytes_per_s for group in groups if broker in group.adding))


def partitions(groups: Sequence[Group]) -> list[Group]:
    """Return the group of each partition, numbered in the order of the groups."""
    return [group for group in groups for _ in range(group.count)]

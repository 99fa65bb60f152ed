"""Assignments as ``kafka-reassign-partitions.sh --generate`` makes them: topic by topic, over the brokers of a list.

The present replicas do not matter to it, so it moves most of them. Every partition of a topic gets the replication
factor of the first one.

Source: Kafka 4.3.1, ``ReassignPartitionsCommand.calculateAssignment`` and ``StripedReplicaPlacer``.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from random import Random

from headroom.planning.reassignments.cluster_state import PartitionPlacement
from headroom.planning.reassignments.plan import ReassignmentPlan, TargetAssignment


def generated_plan(
    partitions: Iterable[PartitionPlacement], racks: Mapping[int, str | None], chance: Random
) -> ReassignmentPlan:
    """Return new replicas of every partition.

    Args:
        partitions: the partitions, whose topics are assigned in the order of their names.
        racks: rack of every broker that may get replicas; None if it has none.
        chance: random numbers.
    """
    topics: dict[str, list[PartitionPlacement]] = {}
    for placement in sorted(partitions, key=lambda p: p.name):
        topics.setdefault(placement.topic, []).append(placement)
    assignments: list[TargetAssignment] = []
    for own in topics.values():
        stripes = _Stripes(racks, chance)
        factor = len(own[0].replicas)
        assignments += [TargetAssignment(p.name, stripes.next_replicas(factor)) for p in own]
    return ReassignmentPlan(tuple(assignments))


class _Rack:
    """Brokers of one rack, which are taken in turn from a start that advances with every partition."""

    def __init__(self, brokers: Sequence[int], start: int) -> None:
        self.brokers = list(brokers)
        self._start = start
        self._taken = 0
        self._partition = 0

    def take(self, partition: int) -> int | None:
        """Return the next broker for a partition; None if all of them have been taken."""
        if partition != self._partition:
            self._partition, self._taken = partition, 0
            self._start = (self._start + 1) % len(self.brokers)
        if self._taken == len(self.brokers):
            return None
        self._taken += 1
        return self.brokers[(self._start + self._taken - 1) % len(self.brokers)]


class _Stripes:
    """Replicas of the partitions of one topic: the first rack advances with every partition, too."""

    def __init__(self, racks: Mapping[int, str | None], chance: Random) -> None:
        by_rack: dict[str, list[int]] = {}
        for broker, rack in sorted(racks.items()):
            by_rack.setdefault(rack or "", []).append(broker)
        self._chance = chance
        self._brokers = len(racks)
        self._racks = [_Rack(own, chance.randrange(len(own))) for _, own in sorted(by_rack.items())]
        self._first = chance.randrange(len(self._racks))
        self._partition = 0

    def next_replicas(self, factor: int) -> tuple[int, ...]:
        """Return the replicas of the next partition."""
        self._begin()
        leader_rack, leader = self._leader()
        replicas = [leader]
        # The other replicas begin at the first rack too, and leave out that of the leader once.
        at, left_out = self._first, False
        while len(replicas) < factor:
            if at == leader_rack and not left_out:
                left_out = True
            elif (broker := self._racks[at].take(self._partition)) is not None:
                replicas.append(broker)
            at = (at + 1) % len(self._racks)
        self._partition += 1
        self._first += 1
        return tuple(replicas)

    def _begin(self) -> None:
        # After as many partitions as there are brokers the order is mixed, so that replicas do not repeat.
        if self._partition == self._brokers and self._brokers > 1:
            self._chance.shuffle(self._racks)
            for rack in self._racks:
                self._chance.shuffle(rack.brokers)
            self._partition = 0
        self._first %= len(self._racks)

    def _leader(self) -> tuple[int, int]:
        at = self._first
        while (broker := self._racks[at].take(self._partition)) is None:
            at = (at + 1) % len(self._racks)
        return at, broker

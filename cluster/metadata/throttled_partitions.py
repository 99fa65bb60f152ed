"""Which partitions a tick looks at closely: those that move, and those that a throttled replica list names."""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Collection
from dataclasses import dataclass, field
from functools import lru_cache
from itertools import chain

from cluster.metrics.mbeans import ReadPlan
from cluster.model import Partition, Snapshot, TopicConfig, TopicPartition
from planning.throttles.replica_lists import ReplicaList, parse_replica_list

log = logging.getLogger(__name__)
# The lists of so many topics are not parsed again for every partition and tick.
_PARSED = 10_000


@dataclass(frozen=True)
class ThrottledReplicas:
    """Brokers that a topic's lists name for one partition; None: the lists could not be read."""

    leader: tuple[int, ...] | None
    follower: tuple[int, ...] | None


def listed_brokers(partition: Partition, config: TopicConfig | None) -> ThrottledReplicas:
    """Return the brokers that the topic's lists name for a partition, ``*`` spelled out as its replicas."""
    if config is None or not config.current:
        return ThrottledReplicas(None, None)
    return ThrottledReplicas(_named(partition, config.leader_list), _named(partition, config.follower_list))


def watched_partitions(snapshot: Snapshot) -> set[TopicPartition]:
    """Return the partitions that move or that a throttled replica list names.

    Where a list could not be read just now, those of the last one stay: unknown, they are not left out.
    """
    listed = {topic: _covers(config) for topic, config in snapshot.topic_configs.items() if config.listed}
    return {
        name
        for name, partition in snapshot.partitions.items()
        if partition.moving or (name.topic in listed and listed[name.topic].has(name.partition))
    }


def under_replicated_partitions(snapshot: Snapshot, watched: Collection[TopicPartition]) -> list[TopicPartition]:
    """Return the partitions that are not watched and lack a replica of theirs in the ISR."""
    return sorted(
        name
        for name, partition in snapshot.partitions.items()
        if len(partition.isr) < len(partition.replicas) and name not in watched
    )


class ReadPlanner:
    """What to read from each broker; a plan is made anew only where something changed.

    Args:
        consumed: whether what consumers fetch of each topic is read too.
    """

    def __init__(self, consumed: bool = False) -> None:
        self._consumed = consumed
        self._made: dict[int, tuple[_Part, ReadPlan]] = {}

    def of(self, snapshot: Snapshot, watched: Collection[TopicPartition]) -> dict[int, ReadPlan]:
        """Return the plan of each broker that is alive."""
        self._made = {b: (part, self._plan(b, part)) for b, part in _parts(snapshot, watched).items()}
        return {broker: plan for broker, (_, plan) in self._made.items()}

    def _plan(self, broker: int, part: _Part) -> ReadPlan:
        made = self._made.get(broker)
        if made is not None and made[0] == part:
            return made[1]
        topics = {name.topic for name in part.leads}
        return ReadPlan(topics, part.leads, part.holds, part.replicas, part.follows, self._consumed)


@dataclass
class _Part:
    """A broker's part in the cluster.

    Attributes:
        replicas: how many replicas it holds.
        follows: whether it is a follower in sync of any leader.
        leads: partitions that it leads.
        holds: watched partitions of which it holds a replica.
    """

    replicas: int
    follows: bool
    leads: list[TopicPartition] = field(default_factory=list)
    holds: list[TopicPartition] = field(default_factory=list)


def _parts(snapshot: Snapshot, watched: Collection[TopicPartition]) -> dict[int, _Part]:
    """Return the part of each broker that is alive."""
    partitions = snapshot.partitions.values()
    replicas = Counter(chain.from_iterable(partition.replicas for partition in partitions))
    in_sync = Counter(chain.from_iterable(partition.isr for partition in partitions))
    led = Counter(partition.leader for partition in partitions)
    parts = {b: _Part(replicas[b], in_sync[b] > led[b]) for b, seen in snapshot.brokers.items() if seen.alive}
    for name, partition in snapshot.partitions.items():
        part = parts.get(partition.leader) if partition.leader is not None else None
        if part is not None:
            part.leads.append(name)
    for name in sorted(watched):
        for broker in snapshot.partitions[name].replicas:
            if broker in parts:
                parts[broker].holds.append(name)
    return parts


@dataclass(frozen=True)
class _Covered:
    """Partitions that the lists of a topic name."""

    every: bool
    partitions: frozenset[int]

    def has(self, partition: int) -> bool:
        return self.every or partition in self.partitions


def _covers(config: TopicConfig) -> _Covered:
    parsed = [_parse(config.leader_list), _parse(config.follower_list)]
    lists = [found for found in parsed if isinstance(found, ReplicaList)]
    return _Covered(any(found.every for found in lists), frozenset().union(*(found.partitions() for found in lists)))


def _named(partition: Partition, text: str | None) -> tuple[int, ...] | None:
    listed = _parse(text)
    if isinstance(listed, ValueError):
        return None
    return listed.brokers(partition.partition, partition.replicas) if listed is not None else ()


@lru_cache(_PARSED)
def _parse(text: str | None) -> ReplicaList | ValueError | None:
    try:
        return parse_replica_list(text)
    except ValueError as error:
        log.warning("a throttled replica list cannot be read: %s", error)
        return error

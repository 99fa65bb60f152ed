"""Watched partitions of a tick: those that are reassigned or named in a throttled replica list."""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Collection
from dataclasses import dataclass, field
from functools import lru_cache
from itertools import chain

from cluster.metrics.mbeans import TICK, ReadPlan, ReadScope
from cluster.model import Partition, Snapshot, TopicConfig
from planning.throttles.replica_lists import ReplicaList, parse_replica_list
from schemas.keys import TopicPartition

log = logging.getLogger(__name__)
# Number of cached lists, so that they are not parsed again for every partition and tick.
_PARSED_LISTS = 10_000


@dataclass(frozen=True)
class ThrottledReplicas:
    """Brokers in a topic's throttled replica lists for one partition, by role; None if a list could not be read."""

    leader: tuple[int, ...] | None
    follower: tuple[int, ...] | None


def listed_brokers(partition: Partition, config: TopicConfig | None) -> ThrottledReplicas:
    """Return the throttled brokers of a partition by role; ``*`` is expanded to its replicas."""
    if config is None or not config.current:
        return ThrottledReplicas(None, None)
    return ThrottledReplicas(_brokers_in(partition, config.leader_list), _brokers_in(partition, config.follower_list))


def watched_partitions(snapshot: Snapshot) -> set[TopicPartition]:
    """Return the partitions that are reassigned or in a throttled replica list.

    If a list could not be read now, the last known list counts, so that its partitions stay watched.
    """
    listed = {
        topic: _listed_partitions(config)
        for topic, config in snapshot.topic_configs.items()
        if config.has_throttled_list
    }
    return {
        name
        for name, partition in snapshot.partitions.items()
        if partition.moving or (name.topic in listed and listed[name.topic].contains(name.partition))
    }


def under_replicated_partitions(snapshot: Snapshot, watched: Collection[TopicPartition]) -> list[TopicPartition]:
    """Return the under-replicated partitions that are not watched, sorted."""
    return sorted(
        name
        for name, partition in snapshot.partitions.items()
        if len(partition.isr) < len(partition.replicas) and name not in watched
    )


class ReadPlanner:
    """Plans the metrics to read from each broker; reuses a broker's plan while nothing changed there.

    Args:
        scope: kinds of metrics that are read.
    """

    def __init__(self, scope: ReadScope = TICK) -> None:
        self._scope = scope
        self._cached: dict[int, tuple[_BrokerReplicas, ReadPlan]] = {}

    def of(self, snapshot: Snapshot, watched: Collection[TopicPartition]) -> dict[int, ReadPlan]:
        """Return the read plan of each broker that is alive, by id."""
        self._cached = {
            b: (replicas_of, self._plan(b, replicas_of))
            for b, replicas_of in _replicas_by_broker(snapshot, watched).items()
        }
        return {broker: plan for broker, (_, plan) in self._cached.items()}

    def _plan(self, broker: int, replicas_of: _BrokerReplicas) -> ReadPlan:
        cached = self._cached.get(broker)
        if cached is not None and cached[0] == replicas_of:
            return cached[1]
        topics = {name.topic for name in replicas_of.leads}
        return ReadPlan(
            topics, replicas_of.leads, replicas_of.hosts, replicas_of.replicas, replicas_of.follows, self._scope
        )


@dataclass
class _BrokerReplicas:
    """The replicas of one broker.

    Attributes:
        replicas: number of replicas on the broker.
        follows: whether it is an in-sync follower of any leader.
        leads: partitions that it leads.
        hosts: watched partitions with a replica on the broker.
    """

    replicas: int
    follows: bool
    leads: list[TopicPartition] = field(default_factory=list)
    hosts: list[TopicPartition] = field(default_factory=list)


def _replicas_by_broker(snapshot: Snapshot, watched: Collection[TopicPartition]) -> dict[int, _BrokerReplicas]:
    """Return the replicas of each broker that is alive, by id."""
    partitions = snapshot.partitions.values()
    replicas = Counter(chain.from_iterable(partition.replicas for partition in partitions))
    in_sync = Counter(chain.from_iterable(partition.isr for partition in partitions))
    led = Counter(partition.leader for partition in partitions)
    by_broker = {
        b: _BrokerReplicas(replicas[b], in_sync[b] > led[b]) for b, info in snapshot.brokers.items() if info.alive
    }
    for name, partition in snapshot.partitions.items():
        replicas_of = by_broker.get(partition.leader) if partition.leader is not None else None
        if replicas_of is not None:
            replicas_of.leads.append(name)
    for name in sorted(watched):
        for broker in snapshot.partitions[name].replicas:
            if broker in by_broker:
                by_broker[broker].hosts.append(name)
    return by_broker


@dataclass(frozen=True)
class _ListedPartitions:
    """Partitions in the throttled replica lists of a topic."""

    every: bool
    partitions: frozenset[int]

    def contains(self, partition: int) -> bool:
        return self.every or partition in self.partitions


def _listed_partitions(config: TopicConfig) -> _ListedPartitions:
    parsed = [_parse(config.leader_list), _parse(config.follower_list)]
    lists = [replica_list for replica_list in parsed if isinstance(replica_list, ReplicaList)]
    return _ListedPartitions(
        any(replica_list.every for replica_list in lists),
        frozenset().union(*(replica_list.partitions() for replica_list in lists)),
    )


def _brokers_in(partition: Partition, text: str | None) -> tuple[int, ...] | None:
    listed = _parse(text)
    if isinstance(listed, ValueError):
        return None
    return listed.brokers(partition.partition, partition.replicas) if listed is not None else ()


@lru_cache(_PARSED_LISTS)
def _parse(text: str | None) -> ReplicaList | ValueError | None:
    try:
        return parse_replica_list(text)
    except ValueError as error:
        log.warning("a throttled replica list cannot be read: %s", error)
        return error

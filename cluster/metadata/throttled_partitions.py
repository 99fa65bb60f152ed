"""Watched partitions of a tick: those that are reassigned or named in a throttled replica list."""

from __future__ import annotations

import logging
from collections.abc import Collection
from dataclasses import dataclass
from functools import lru_cache

from headroom.cluster.model import Partition, Snapshot, TopicConfig
from headroom.planning.throttles.replica_lists import ReplicaList, parse_replica_list
from headroom.schemas.keys import TopicPartition

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
        if partition.moving or (numbers := listed.get(name.topic, ())) is None or name.partition in numbers
    }


def under_replicated_partitions(snapshot: Snapshot, watched: Collection[TopicPartition]) -> list[TopicPartition]:
    """Return the under-replicated partitions that are not watched, sorted."""
    return sorted(
        name
        for name, partition in snapshot.partitions.items()
        if len(partition.isr) < len(partition.replicas) and name not in watched
    )


def _listed_partitions(config: TopicConfig) -> frozenset[int] | None:
    """Return the partitions in the throttled replica lists of a topic; None for ``*``, which has every one."""
    parsed = [_parse(config.leader_list), _parse(config.follower_list)]
    lists = [replica_list for replica_list in parsed if isinstance(replica_list, ReplicaList)]
    if any(replica_list.every for replica_list in lists):
        return None
    return frozenset().union(*(replica_list.partitions() for replica_list in lists))


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

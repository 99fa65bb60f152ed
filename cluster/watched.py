"""Which partitions a tick looks at closely: those that move, and those that a throttled replica list names."""

from __future__ import annotations

import logging
from collections import Counter
from dataclasses import dataclass
from itertools import chain

from cluster.mbeans import Plan
from cluster.model import Partition, Snapshot, TopicConfig, TopicPartition
from planning.lists import ReplicaList, parse_replica_list

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Listed:
    """Brokers that a topic's lists name for one partition; None: the lists could not be read."""

    leader: tuple[int, ...] | None
    follower: tuple[int, ...] | None


def listed_brokers(partition: Partition, config: TopicConfig | None) -> Listed:
    """Return the brokers that the topic's lists name for a partition, ``*`` spelled out as its replicas."""
    if config is None or not config.current:
        return Listed(None, None)
    return Listed(_named(partition, config.leader_list), _named(partition, config.follower_list))


def watched_partitions(snapshot: Snapshot) -> set[TopicPartition]:
    """Return the partitions that move or that a throttled replica list names.

    Where a list could not be read just now, those of the last one stay: unknown, they are not left out.
    """
    watched = {name for name, partition in snapshot.partitions.items() if partition.moving}
    for topic, config in snapshot.topic_configs.items():
        if config.listed:
            names = [name for name in snapshot.partitions if name.topic == topic]
            watched |= {name for name in names if _is_listed(name.partition, config)}
    return watched


def read_plans(snapshot: Snapshot, watched: set[TopicPartition]) -> dict[int, Plan]:
    """Return what to read from each broker that is alive."""
    partitions = snapshot.partitions.values()
    replicas = Counter(chain.from_iterable(partition.replicas for partition in partitions))
    in_sync = Counter(chain.from_iterable(partition.isr for partition in partitions))
    leads: dict[int, list[TopicPartition]] = {}
    holds: dict[int, list[TopicPartition]] = {}
    for name, partition in snapshot.partitions.items():
        if partition.leader is not None:
            leads.setdefault(partition.leader, []).append(name)
        if name in watched:
            for broker in partition.replicas:
                holds.setdefault(broker, []).append(name)
    return {
        broker: Plan(
            {name.topic for name in leads.get(broker, [])},
            leads.get(broker, []),
            holds.get(broker, []),
            replicas[broker],
            follows=in_sync[broker] > len(leads.get(broker, [])),
        )
        for broker, seen in snapshot.brokers.items()
        if seen.alive
    }


def _named(partition: Partition, text: str | None) -> tuple[int, ...] | None:
    listed = _parse(text)
    if isinstance(listed, ValueError):
        return None
    return listed.brokers(partition.partition, partition.replicas) if listed is not None else ()


def _is_listed(partition: int, config: TopicConfig) -> bool:
    lists = [_parse(config.leader_list), _parse(config.follower_list)]
    return any(isinstance(x, ReplicaList) and (x.every or partition in x.partitions()) for x in lists)


def _parse(text: str | None) -> ReplicaList | ValueError | None:
    try:
        return parse_replica_list(text)
    except ValueError as error:
        log.warning("a throttled replica list cannot be read: %s", error)
        return error

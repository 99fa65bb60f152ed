"""Plans which metrics of a tick are read from which broker."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection
from dataclasses import dataclass, field
from itertools import chain

from headroom.cluster.metrics.mbeans import TICK, ReadPlan, ReadScope
from headroom.cluster.model import Snapshot
from headroom.schemas.keys import TopicPartition


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

"""Replication traffic during a planned move as arrays, for sums and what-ifs over very many partitions.

The rule is that of ``planning.throttles.load``, which a property test holds this module to. There a partition is an
object, which costs seconds for 200,000 partitions and every leader that each of them may have.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from planning.reassignments.changes import PlanChanges, replicas_before
from planning.reassignments.cluster_state import ClusterState, PartitionPlacement
from planning.throttles.replica_lists import TopicLists, parse_replica_list
from schemas.alerts import Role
from schemas.keys import BrokerRole, TopicPartition

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Bools = NDArray[np.bool_]

# Bits of a replica.
_ALIVE, _IN_SYNC, _LEADER_LISTED, _FOLLOWER_LISTED, _COPIES, _LEAVES = 1, 2, 4, 8, 16, 32


@dataclass(frozen=True)
class RoleSums:
    """Listed traffic of every broker and role: leaders first, then destinations, each in the order of the brokers.

    Attributes:
        required: traffic of all followers as far as known, bytes per second.
        in_sync: traffic of in-sync followers as far as known, bytes per second.
        unknown: number of followers with an unknown write rate.
        unknown_in_sync: number of those that are in sync.
        behind: number of out-of-sync followers.
    """

    required: Floats
    in_sync: Floats
    unknown: Ints
    unknown_in_sync: Ints
    behind: Ints

    def worse(self, other: RoleSums) -> RoleSums:
        """Return the greater value of both for every broker and role."""
        return RoleSums(
            np.maximum(self.required, other.required),
            np.maximum(self.in_sync, other.in_sync),
            np.maximum(self.unknown, other.unknown),
            np.maximum(self.unknown_in_sync, other.unknown_in_sync),
            np.maximum(self.behind, other.behind),
        )


@dataclass(frozen=True)
class PlannedTraffic:
    """Partitions whose traffic counts against a throttle during a move: those that copy, and those listed already.

    Replicas are flat: those of one partition follow each other, target replicas first, in the order in which Kafka
    chooses a new leader.

    Attributes:
        names: the partitions.
        brokers: ids of all brokers, ascending; arrays have their positions.
        write: write rate by partition, bytes per second; NaN if unknown, 0 without a leader.
        leader: position of the leading replica by partition, before the move; -1 without one.
        preferred: the same once Kafka has given the lead to preferred leaders that are in sync.
        partition: partition of each replica.
        broker: broker of each replica, as a position.
        alive: whether the broker of the replica is alive.
        in_sync: whether the replica is in sync.
        leader_listed: whether the leader list contains the replica.
        follower_listed: whether the follower list contains the replica.
        copies: whether it is a new replica of the plan that is not in sync.
        leaves: whether the plan removes it.
        remaining: bytes that a new replica has to copy; NaN if unknown.
    """

    names: Sequence[TopicPartition]
    brokers: tuple[int, ...]
    write: Floats
    leader: Ints
    preferred: Ints
    partition: Ints
    broker: Ints
    alive: Bools
    in_sync: Bools
    leader_listed: Bools
    follower_listed: Bools
    copies: Bools
    leaves: Bools
    remaining: Floats

    @cached_property
    def live(self) -> Ints:
        """Number of replicas by partition whose broker is alive."""
        return np.bincount(self.partition[self.alive], minlength=len(self.names))

    @cached_property
    def live_in_sync(self) -> Ints:
        """Number of those that are in sync."""
        return np.bincount(self.partition[self.alive & self.in_sync], minlength=len(self.names))

    @cached_property
    def known_write(self) -> Floats:
        """Write rate by partition with 0 for unknown."""
        return np.nan_to_num(self.write)

    @cached_property
    def unknown_write(self) -> Bools:
        """Whether the write rate is unknown, by partition."""
        return np.isnan(self.write)

    @cached_property
    def before(self) -> RoleSums:
        """Sums with the present leaders."""
        return self.sums(self.leader)

    @cached_property
    def after(self) -> RoleSums:
        """Sums once Kafka has given the lead to preferred leaders that are in sync."""
        return self.sums(self.preferred)

    @cached_property
    def worst(self) -> RoleSums:
        """The worse of both for every broker and role."""
        return self.before.worse(self.after)

    def broker_role(self, index: int) -> BrokerRole:
        """Return the broker and role of a position in ``RoleSums``."""
        count = len(self.brokers)
        return BrokerRole(self.brokers[index % count], Role.LEADER if index < count else Role.FOLLOWER)

    def followers(self, leader: Ints) -> Ints:
        """Return the number of live followers by partition; 0 without a leader."""
        return self._others(leader, self.live, self.alive)

    def in_sync_followers(self, leader: Ints) -> Ints:
        """Return the number of live followers in sync by partition; 0 without a leader."""
        return self._others(leader, self.live_in_sync, self.alive & self.in_sync)

    def _others(self, leader: Ints, counts: Ints, counted: Bools) -> Ints:
        own = counted[leader] if len(counted) else np.zeros(len(leader), bool)
        return np.where(leader >= 0, counts - own, 0)

    def following(self, leader: Ints) -> Bools:
        """Return for each replica whether it follows: it is alive, and not the leader."""
        follows = self.alive.copy()
        follows[leader[leader >= 0]] = False
        return follows

    def sums(self, leader: Ints) -> RoleSums:
        """Return the listed traffic of every broker and role.

        Args:
            leader: position of the leading replica by partition; -1 without one.
        """
        count, followers, in_sync_followers = len(self.brokers), self.followers(leader), self.in_sync_followers(leader)
        led = np.flatnonzero(leader >= 0)
        led = led[self.leader_listed[leader[led]]]
        at = self.broker[leader[led]]
        to = np.flatnonzero(self.following(leader) & self.follower_listed)
        source = self.partition[to]
        # Without a leader nothing is fetched, so the rate is known: 0.
        has_leader = leader[source] >= 0
        written, unknown = self.known_write[source] * has_leader, self.unknown_write[source] & has_leader
        in_sync = self.in_sync[to]
        keys = np.concatenate([at, count + self.broker[to]])

        def summed(leaders: NDArray[Any], destinations: NDArray[Any]) -> Floats:
            return counted(keys, np.concatenate([leaders, destinations]), 2 * count)

        lost, lost_in_sync = self.unknown_write[led] * followers[led], self.unknown_write[led] * in_sync_followers[led]
        return RoleSums(
            summed(self.known_write[led] * followers[led], written),
            summed(self.known_write[led] * in_sync_followers[led], written * in_sync),
            summed(lost, unknown).astype(np.int64),
            summed(lost_in_sync, unknown & in_sync).astype(np.int64),
            summed(followers[led] - in_sync_followers[led], ~in_sync).astype(np.int64),
        )


def counted(keys: Ints, weights: NDArray[Any], length: int) -> Floats:
    """Return the sum of the weights by key, for keys from 0 to below ``length``."""
    # Without any key numpy returns integers.
    return np.bincount(keys, weights, minlength=length).astype(np.float64)


def planned_traffic(state: ClusterState, changes: PlanChanges, lists: Mapping[str, TopicLists]) -> PlannedTraffic:
    """Return the traffic of a planned move.

    Args:
        state: the cluster; its throttled replica lists stay in force beside those of the plan.
        changes: changes of the plan.
        lists: throttled replica lists that the move adds; empty for a move that runs with the lists in force.
    """
    replicas = _Replicas(state, bool(state.auto_leader_rebalance is not False))
    in_force = {topic: _InForce(found) for topic, found in state.lists.items()}
    moving = set()
    for target, placement in zip(changes.gaining, changes.placements, strict=True):
        before = replicas_before(placement)
        order = (*target.replicas, *(broker for broker in before if broker not in target.replicas))
        added = [broker for broker in target.replicas if broker not in before]
        listed = in_force.get(target.topic)
        new_lists = target.topic in lists
        replicas.add(
            placement,
            order,
            added,
            len(target.replicas),
            _union(before if new_lists else (), listed.leaders(target.partition, order) if listed else ()),
            _union(added if new_lists else (), listed.followers(target.partition, order) if listed else ()),
        )
        if in_force:
            moving.add(placement.name)
    for name in sorted(_listed_partitions(state, in_force) - moving):
        placement, listed = state.partitions[name], in_force[name.topic]
        order = placement.replicas
        listed_as_leader, listed_as_follower = (
            listed.leaders(name.partition, order),
            listed.followers(name.partition, order),
        )
        replicas.add(placement, order, (), len(order), listed_as_leader, listed_as_follower)
    return replicas.traffic()


def _union(own: Collection[int], listed: Collection[int]) -> Collection[int]:
    return {*own, *listed} if listed else own


class _InForce:
    """Throttled replica lists of one topic that are in force."""

    def __init__(self, lists: TopicLists) -> None:
        self._leader, self._follower = _parsed(lists.leader), _parsed(lists.follower)

    def leaders(self, partition: int, replicas: Collection[int]) -> Collection[int]:
        return _listed(self._leader, partition, replicas)

    def followers(self, partition: int, replicas: Collection[int]) -> Collection[int]:
        return _listed(self._follower, partition, replicas)

    @property
    def every(self) -> bool:
        return self._leader is None or self._follower is None

    @property
    def partitions(self) -> set[int]:
        return set(self._leader or ()) | set(self._follower or ())


def _parsed(text: str | None) -> Mapping[int, set[int]] | None:
    """Return the brokers in a list by partition; None if it contains every replica."""
    try:
        found = parse_replica_list(text)
    except ValueError:
        # Kafka ignores a list that it cannot read.
        return {}
    if found is None:
        return {}
    by_partition: dict[int, set[int]] = {}
    for partition, broker in found.entries:
        by_partition.setdefault(partition, set()).add(broker)
    return None if found.every else by_partition


def _listed(entries: Mapping[int, set[int]] | None, partition: int, replicas: Collection[int]) -> Collection[int]:
    return replicas if entries is None else entries.get(partition, ())


def _listed_partitions(state: ClusterState, in_force: Mapping[str, _InForce]) -> set[TopicPartition]:
    if not in_force:
        return set()
    numbers = {topic: listed.partitions for topic, listed in in_force.items()}
    return {
        name
        for name in state.partitions
        if name.topic in in_force and (in_force[name.topic].every or name.partition in numbers[name.topic])
    }


class _Replicas:
    """Collects the replicas of partitions in flat lists."""

    def __init__(self, state: ClusterState, preferred_leads: bool) -> None:
        self._brokers = tuple(sorted(state.brokers))
        self._at = {broker: at for at, broker in enumerate(self._brokers)}
        self._alive = {broker: _ALIVE if found.alive else 0 for broker, found in state.brokers.items()}
        self._preferred_leads = preferred_leads
        self._names: list[TopicPartition] = []
        self._counts: list[int] = []
        self._broker: list[int] = []
        self._bits: list[int] = []
        self._remaining: list[float] = []
        self._write: list[float] = []
        self._leader: list[int] = []
        self._preferred: list[int] = []

    def add(
        self,
        p: PartitionPlacement,
        order: Sequence[int],
        added: Collection[int],
        staying: int,
        leader_listed: Collection[int],
        follower_listed: Collection[int],
    ) -> None:
        first = len(self._broker)
        in_sync, size = p.isr, np.nan if p.size_bytes is None else float(p.size_bytes)
        # Local names, because a plan may have a million replicas.
        at, alive, all_bits, remaining = self._at, self._alive, self._bits, self._remaining
        self._broker += [at[broker] for broker in order]
        for position, broker in enumerate(order):
            bits = alive[broker]
            if broker in in_sync:
                bits |= _IN_SYNC
            if broker in leader_listed:
                bits |= _LEADER_LISTED
            if broker in follower_listed:
                bits |= _FOLLOWER_LISTED
            if broker in added and not bits & _IN_SYNC:
                bits |= _COPIES
            if position >= staying:
                bits |= _LEAVES
            all_bits.append(bits)
            remaining.append(size - min(size, p.copied_bytes.get(broker, 0)) if bits & _COPIES else 0.0)
        leader = first + order.index(p.leader) if p.leader in order else -1
        # The first target replica is the preferred leader from the moment of submission.
        electable = self._preferred_leads and added and self._bits[first] & _ALIVE and self._bits[first] & _IN_SYNC
        self._names.append(p.name)
        self._counts.append(len(order))
        self._leader.append(leader)
        self._preferred.append(first if electable and leader >= 0 else leader)
        self._write.append(np.nan if p.write_bytes_per_s is None else p.write_bytes_per_s)

    def traffic(self) -> PlannedTraffic:
        bits, leader = np.array(self._bits, np.int64), np.array(self._leader, np.int64)
        has = [(bits & bit) > 0 for bit in (_ALIVE, _IN_SYNC, _LEADER_LISTED, _FOLLOWER_LISTED, _COPIES, _LEAVES)]
        return PlannedTraffic(
            names=self._names,
            brokers=self._brokers,
            write=np.where(leader >= 0, np.array(self._write, np.float64), 0.0),
            leader=leader,
            preferred=np.array(self._preferred, np.int64),
            partition=np.repeat(np.arange(len(self._names)), np.array(self._counts, np.int64)),
            broker=np.array(self._broker, np.int64),
            alive=has[0],
            in_sync=has[1],
            leader_listed=has[2],
            follower_listed=has[3],
            copies=has[4],
            leaves=has[5],
            remaining=np.array(self._remaining, np.float64),
        )

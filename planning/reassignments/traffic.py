"""Replication traffic during a planned move as arrays, for sums and what-ifs over very many partitions.

The rule is that of ``planning.quotas.load``, which a property test holds this module to. There a partition is an
object, which costs seconds for 200,000 partitions and every leader that each of them may have.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from headroom.planning.reassignments.changes import PlanChanges
from headroom.planning.reassignments.cluster_state import ClusterState, PartitionPlacement
from headroom.planning.reassignments.replica_keys import Bools, Floats, Ints, ReplicaKeys, is_among, leader_ids
from headroom.planning.throttles.replica_lists import TopicLists, parse_replica_list
from headroom.schemas.keys import BrokerRole, Role, TopicPartition

# Brokers by partition in the lists of a topic; None for a list of every replica.
_ListsByRole = Mapping[Role, Mapping[int, set[int]] | None]


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
        leaves_lists: whether a partition leaves the throttled replica lists once it has moved, as in
            ``headroom reassign run``: it does unless lists in force name its topic.
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
    leaves_lists: Bools

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

        def sums(leaders: NDArray[Any], destinations: NDArray[Any]) -> Floats:
            return sums_by_key(keys, np.concatenate([leaders, destinations]), 2 * count)

        lost, lost_in_sync = self.unknown_write[led] * followers[led], self.unknown_write[led] * in_sync_followers[led]
        return RoleSums(
            sums(self.known_write[led] * followers[led], written),
            sums(self.known_write[led] * in_sync_followers[led], written * in_sync),
            sums(lost, unknown).astype(np.int64),
            sums(lost_in_sync, unknown & in_sync).astype(np.int64),
            sums(followers[led] - in_sync_followers[led], ~in_sync).astype(np.int64),
        )


def sums_by_key(keys: Ints, weights: NDArray[Any], length: int) -> Floats:
    """Return the sum of the weights by key, for keys from 0 to below ``length``."""
    # Without any key numpy returns integers.
    return np.bincount(keys, weights, minlength=length).astype(np.float64)


class OtherReplication:
    """Replication in a cluster, by which the capacity of its brokers is less for the partitions that move.

    Args:
        state: the cluster. A write rate that is unknown counts as 0.
        capacity_bytes_per_s: replication traffic that a broker can carry; None if unknown.
    """

    def __init__(self, state: ClusterState, capacity_bytes_per_s: float | None) -> None:
        self._state, self._capacity = state, capacity_bytes_per_s
        self._used: dict[BrokerRole, float] = defaultdict(float)
        for placement in state.partitions.values() if capacity_bytes_per_s is not None else ():
            for role, rate in _replication(placement):
                self._used[role] += rate

    def ceilings(self, traffic: PlannedTraffic) -> dict[BrokerRole, float]:
        """Return the highest rate of each broker and role in a move; nothing without a capacity.

        Args:
            traffic: the move, whose traffic is no other replication, except for followers outside of its lists.
        """
        unlisted = np.flatnonzero(traffic.following(traffic.leader) & ~traffic.follower_listed)
        received = np.bincount(
            traffic.broker[unlisted], traffic.known_write[traffic.partition[unlisted]], minlength=len(traffic.brokers)
        )
        followers = (BrokerRole(broker, Role.FOLLOWER) for broker in traffic.brokers)
        return self._capacity_left(traffic.names, Role, dict(zip(followers, received.tolist(), strict=True)))

    def rough_ceilings(self, names: Iterable[TopicPartition]) -> dict[BrokerRole, float]:
        """Return the same for a move of partitions, whose followers are in no list; nothing without a capacity."""
        return self._capacity_left(names, (Role.LEADER,), {})

    def _capacity_left(
        self, names: Iterable[TopicPartition], roles: Iterable[Role], besides: Mapping[BrokerRole, float]
    ) -> dict[BrokerRole, float]:
        if self._capacity is None:
            return {}
        used, counted = defaultdict(float, self._used), set(roles)
        for name in names:
            for role, rate in _replication(self._state.partitions[name]):
                used[role] -= rate * (role.role in counted)
        every = [BrokerRole(broker, role) for broker in self._state.brokers for role in Role]
        # Sums and differences in another order differ in their last digits.
        return {role: max(0.0, self._capacity - round(used[role] + besides.get(role, 0.0), 3)) for role in every}


def _replication(placement: PartitionPlacement) -> Iterator[tuple[BrokerRole, float]]:
    """Yield what the in-sync followers of a partition need of each broker and role, bytes per second."""
    written = placement.write_bytes_per_s or 0.0
    if placement.leader is None or not written:
        return
    followers = [broker for broker in placement.isr if broker != placement.leader]
    yield BrokerRole(placement.leader, Role.LEADER), written * len(followers)
    for broker in followers:
        yield BrokerRole(broker, Role.FOLLOWER), written


def planned_traffic(state: ClusterState, changes: PlanChanges, lists: Mapping[str, TopicLists]) -> PlannedTraffic:
    """Return the traffic of a planned move.

    Args:
        state: the cluster; its throttled replica lists stay in force beside those of the plan.
        changes: changes of the plan.
        lists: throttled replica lists that the move adds; empty for a move that runs with the lists in force.
    """
    in_force = {
        topic: {Role.LEADER: _brokers_by_partition(own.leader), Role.FOLLOWER: _brokers_by_partition(own.follower)}
        for topic, own in state.lists.items()
    }
    placements = [*changes.placements, *_listed_besides(state, changes, in_force)]
    # A partition that does not move keeps its replicas.
    kept = [p.replicas for p in placements[len(changes.placements) :]]
    keys = ReplicaKeys(state.brokers)
    target = keys.of([*(assignment.replicas for assignment in changes.gaining), *kept])
    before = keys.of([*(placement.before for placement in changes.placements), *kept])
    leaving = before[~is_among(before, target)]
    replica = np.concatenate([target, leaving])
    partition, broker = keys.partition_and_broker(replica)
    order = np.argsort(partition, kind="stable")
    replica, partition, broker = replica[order], partition[order], broker[order]

    alive = np.array([state.brokers[b].alive for b in keys.brokers], bool)[broker]
    in_sync = is_among(replica, keys.of([p.isr for p in placements]))
    added = ~is_among(replica, before)
    copies = added & ~in_sync
    newly_listed = np.zeros(len(placements), bool)
    newly_listed[: len(changes.gaining)] = [assignment.name.topic in lists for assignment in changes.gaining]
    leaves_lists = newly_listed & np.array([p.topic not in state.lists for p in placements], bool)
    newly_listed = newly_listed[partition]
    leader = _leading_replicas(placements, keys, partition, broker)
    return PlannedTraffic(
        names=[p.name for p in placements],
        brokers=keys.brokers,
        write=np.where(leader >= 0, _or_nan([p.write_bytes_per_s for p in placements]), 0.0),
        leader=leader,
        preferred=_preferred_leaders(state, leader, partition, added, alive & in_sync),
        partition=partition,
        broker=broker,
        alive=alive,
        in_sync=in_sync,
        leader_listed=newly_listed & ~added | _is_listed(in_force, Role.LEADER, placements, keys, replica, partition),
        follower_listed=newly_listed & added
        | _is_listed(in_force, Role.FOLLOWER, placements, keys, replica, partition),
        copies=copies,
        leaves=~is_among(replica, target),
        remaining=_remaining(placements, keys.brokers, partition, broker, copies),
        leaves_lists=leaves_lists,
    )


def _listed_besides(
    state: ClusterState, changes: PlanChanges, in_force: Mapping[str, _ListsByRole]
) -> list[PartitionPlacement]:
    """Return the other partitions in the lists in force, ordered by name."""
    if not in_force:
        return []
    moving = {placement.name for placement in changes.placements}
    listed = [
        name
        for name in state.partitions.keys() - moving
        if name.topic in in_force
        and any(entries is None or name.partition in entries for entries in in_force[name.topic].values())
    ]
    return [state.partitions[name] for name in sorted(listed)]


def _is_listed(
    in_force: Mapping[str, _ListsByRole],
    role: Role,
    placements: Sequence[PartitionPlacement],
    keys: ReplicaKeys,
    replica: Ints,
    partition: Ints,
) -> Bools:
    """Return whether a list in force contains each replica."""
    if not in_force:
        return np.zeros(len(replica), bool)
    lists = [in_force[p.topic][role] if p.topic in in_force else {} for p in placements]
    named = keys.of([(entries or {}).get(p.partition, ()) for entries, p in zip(lists, placements, strict=True)])
    every = np.array([entries is None for entries in lists], bool)
    return every[partition] | is_among(replica, named)


def _leading_replicas(
    placements: Sequence[PartitionPlacement], keys: ReplicaKeys, partition: Ints, broker: Ints
) -> Ints:
    """Return the position of the replica that leads, by partition; -1 without a leader."""
    leader = np.full(len(placements), -1)
    leads = np.flatnonzero(broker == keys.positions(leader_ids([p.leader for p in placements]))[partition])
    leader[partition[leads]] = leads
    return leader


def _preferred_leaders(state: ClusterState, leader: Ints, partition: Ints, added: Bools, electable: Bools) -> Ints:
    """Return the replica that leads once Kafka has elected preferred leaders, by partition.

    The first target replica is the preferred leader from the moment of submission.
    """
    if state.auto_leader_rebalance is False:
        return leader
    changed = np.flatnonzero(np.bincount(partition[added], minlength=len(leader)))
    first = np.searchsorted(partition, changed)
    gets_lead = electable[first] & (leader[changed] >= 0)
    preferred = leader.copy()
    preferred[changed[gets_lead]] = first[gets_lead]
    return preferred


def _remaining(
    placements: Sequence[PartitionPlacement], brokers: Sequence[int], partition: Ints, broker: Ints, copies: Bools
) -> Floats:
    """Return the bytes that each replica has to copy; NaN if unknown."""
    remaining = np.where(copies, _or_nan([p.new_replica_bytes for p in placements])[partition], 0.0)
    begun = np.array([bool(p.copied_bytes) for p in placements], bool)
    for replica in np.flatnonzero(copies & begun[partition]).tolist():
        copied = placements[partition[replica]].copied_bytes.get(brokers[broker[replica]], 0)
        remaining[replica] -= min(remaining[replica], copied)
    return remaining


def _or_nan(values: Sequence[float | None]) -> Floats:
    return np.array([np.nan if value is None else value for value in values], np.float64)


def _brokers_by_partition(text: str | None) -> Mapping[int, set[int]] | None:
    """Return the brokers in a list by partition; None if it contains every replica."""
    try:
        replica_list = parse_replica_list(text)
    except ValueError:
        # Kafka ignores a list that it cannot read.
        return {}
    if replica_list is None:
        return {}
    by_partition: dict[int, set[int]] = {}
    for partition, broker in replica_list.entries:
        by_partition.setdefault(partition, set()).add(broker)
    return None if replica_list.every else by_partition

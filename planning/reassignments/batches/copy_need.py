"""Traffic that the copies of a plan add to the throttles of their leaders and destinations, as arrays."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from headroom.planning.quotas.load import FollowerTraffic, follower_traffic, partition_traffic
from headroom.planning.reassignments.cluster_state import ClusterState, PartitionPlacement
from headroom.planning.reassignments.plan import TargetAssignment
from headroom.planning.throttles.replica_lists import ReplicaList, parse_replica_list
from headroom.schemas.keys import BrokerRole, Role, TopicPartition

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Bools = NDArray[np.bool_]


@dataclass(frozen=True, eq=False)
class CopyNeeds:
    """Copies of every partition that gains a replica.

    A partition has an entry for each broker and role that takes part in its copies; entries of one partition follow
    each other. An object for each of them would cost seconds for 200,000 partitions.

    Attributes:
        assignments: target replicas of the partitions.
        others: target replicas of the partitions that gain none, or do not exist.
        roles: brokers and roles, in ascending order.
        rate_known: whether the write rate of a partition is known; if not, its traffic counts as 0.
        size_known: whether the size of a partition is known; if not, its bytes count as 0.
        copy: partition of an entry, as its position in ``assignments``; ascending.
        role: broker and role of an entry, as a position in ``roles``.
        most_bytes_per_s: traffic that the copy adds to the throttle of the broker and role until the end, with the
            worse of the leaders before and after expected switches.
        limits: whether the broker and role gets the throttle and limits replicas.
        copied_bytes: bytes that the broker and role sends or receives.
        copies: whether the broker and role sends or receives copies; a leader that gives up the lead first does not.
        besides_bytes_per_s: traffic at each broker and role that counts in every batch, because lists in force name it.
    """

    assignments: Sequence[TargetAssignment]
    others: Sequence[TargetAssignment]
    roles: Sequence[BrokerRole]
    rate_known: Bools
    size_known: Bools
    copy: Ints
    role: Ints
    most_bytes_per_s: Floats
    limits: Bools
    copied_bytes: Ints
    copies: Bools
    besides_bytes_per_s: Floats

    def __len__(self) -> int:
        """Return the number of partitions that gain a replica."""
        return len(self.assignments)


def copy_needs(
    state: ClusterState, assignments: Iterable[TargetAssignment], first_leads: Mapping[TopicPartition, int]
) -> CopyNeeds:
    """Return the copies of every partition that gains a replica, in the order of the assignments.

    A partition that gains none is not listed in a throttle, so it adds nothing. Traffic in lists in force counts in
    every batch.

    Where Kafka gives the lead to another one during the move (``PartitionPlacement.leader_during``), the traffic of the
    leader counts on both brokers: no order of these switches then needs more.

    Args:
        state: the cluster.
        assignments: target replicas.
        first_leads: leader of partitions that get another one before the copies.
    """
    entries, alive, force = _Entries(state), state.alive, ListedTraffic(state, first_leads)
    others = []
    for assignment in assignments:
        p = state.partitions.get(assignment.name)
        new = [] if p is None else [broker for broker in assignment.replicas if broker not in p.replicas]
        if p is None or not new:
            others.append(assignment)
            continue
        leader = first_leads.get(assignment.name, p.leader) if first_leads else p.leader
        given = p.leader_during(assignment.replicas, alive, state.auto_leader_rebalance)
        next_leader = leader if given is None else given
        if p.topic in state.lists:
            entries.add_listed(assignment, p, force.added_by(p, new, leader, next_leader), new, next_leader)
            continue
        entries.add(assignment, (*p.replicas, *new), new, leader, next_leader, p.write_bytes_per_s, p.new_replica_bytes)
        if force.behind:
            entries.add_limits(
                [role for broker in p.replicas if (role := BrokerRole(broker, Role.LEADER)) in force.behind]
            )
    return entries.needs(others, force.bytes_per_s)


class _Entries:
    """Collects the entries of partitions in flat lists."""

    def __init__(self, state: ClusterState) -> None:
        self._alive = state.alive
        brokers = sorted(state.brokers)
        # Ascending: both roles of a broker follow each other.
        self._roles = sorted(BrokerRole(broker, role) for broker in brokers for role in Role)
        at = {name: number for number, name in enumerate(self._roles)}
        self._leader = {broker: at[BrokerRole(broker, Role.LEADER)] for broker in brokers}
        self._follower = {broker: at[BrokerRole(broker, Role.FOLLOWER)] for broker in brokers}
        self._assignments: list[TargetAssignment] = []
        self._counts: list[int] = []
        self._rates: list[float] = []
        self._sizes: list[int] = []
        self._role: list[int] = []
        # How many times the write rate and the size of its partition an entry counts.
        self._followers: list[int] = []
        self._copies: list[int] = []
        # Entries that limit nothing.
        self._unlimited: list[int] = []
        self._at = at

    def add(
        self,
        assignment: TargetAssignment,
        replicas: Sequence[int],
        new: Sequence[int],
        leader: int | None,
        next_leader: int | None,
        rate: float | None,
        size: int | None,
    ) -> None:
        role, followers, copies = self._role, self._followers, self._copies
        first = len(role)
        for broker in new:
            role.append(self._follower[broker])
            followers.append(1)
            copies.append(1)
        if leader is not None or next_leader is not None:
            live = sum([broker in self._alive for broker in replicas])
            for source in {leader, next_leader}:
                if source is not None:
                    role.append(self._leader[source])
                    followers.append(live - (source in self._alive))
                    copies.append(len(new) if source == next_leader else 0)
        self._end(assignment, first, rate, size)

    def add_listed(
        self,
        assignment: TargetAssignment,
        p: PartitionPlacement,
        added: Mapping[BrokerRole, tuple[int, bool]],
        new: Sequence[int],
        next_leader: int | None,
    ) -> None:
        """Add a partition of a topic with lists in force; ``added`` is what ``ListedTraffic.added_by`` returns."""
        first = len(self._role)
        copies = dict.fromkeys((BrokerRole(broker, Role.FOLLOWER) for broker in new), 1)
        if next_leader is not None:
            copies[BrokerRole(next_leader, Role.LEADER)] = len(new)
        for role in sorted(added.keys() | copies.keys()):
            followers, limits = added.get(role, (0, True))
            if not limits:
                self._unlimited.append(len(self._role))
            self._role.append(self._at[role])
            self._followers.append(followers)
            self._copies.append(copies.get(role, 0))
        self._end(assignment, first, p.write_bytes_per_s, p.new_replica_bytes)

    def add_limits(self, roles: Sequence[BrokerRole]) -> None:
        """Let the last partition limit others' replicas at further brokers and roles, to which it adds no traffic."""
        first = len(self._role) - self._counts[-1]
        known = set(self._role[first:])
        for at in (self._at[role] for role in roles):
            if at not in known:
                self._role.append(at)
                self._followers.append(0)
                self._copies.append(0)
                self._counts[-1] += 1

    def _end(self, assignment: TargetAssignment, first: int, rate: float | None, size: int | None) -> None:
        self._assignments.append(assignment)
        self._counts.append(len(self._role) - first)
        self._rates.append(np.nan if rate is None else rate)
        self._sizes.append(-1 if size is None else size)

    def needs(self, others: Sequence[TargetAssignment], besides: Mapping[BrokerRole, float]) -> CopyNeeds:
        counts = np.array(self._counts, np.int64)
        rates, sizes = np.array(self._rates, np.float64), np.array(self._sizes, np.int64)
        copy, copies = np.repeat(np.arange(len(counts)), counts), np.array(self._copies, np.int64)
        limits = np.ones(len(copy), bool)
        limits[self._unlimited] = False
        return CopyNeeds(
            self._assignments,
            others,
            self._roles,
            ~np.isnan(rates),
            sizes >= 0,
            copy,
            np.array(self._role, np.int64),
            np.nan_to_num(rates)[copy] * np.array(self._followers, np.int64),
            limits,
            np.maximum(sizes, 0)[copy] * copies,
            copies > 0,
            np.array([besides.get(role, 0.0) for role in self._roles], np.float64),
        )


class ListedTraffic:
    """Traffic that throttled replica lists in force name, with the partitions where they are.

    Args:
        state: the cluster.
        first_leads: leader of partitions that get another one before the copies.

    Attributes:
        bytes_per_s: known traffic by broker and role, bytes per second.
        behind: brokers and roles with listed replicas that are behind.
    """

    def __init__(self, state: ClusterState, first_leads: Mapping[TopicPartition, int]) -> None:
        self._alive = state.alive
        self._lists = {topic: (_parse(own.leader), _parse(own.follower)) for topic, own in state.lists.items()}
        self.bytes_per_s: dict[BrokerRole, float] = defaultdict(float)
        self.behind: set[BrokerRole] = set()
        for name, p in state.partitions.items() if state.lists else ():
            if name.topic not in self._lists:
                continue
            leader = first_leads.get(name, p.leader)
            for traffic in self._listed(p, p.replicas, leader):
                self.bytes_per_s[traffic.broker_role] += traffic.write_bytes_per_s or 0.0
                if not traffic.in_sync:
                    self.behind.add(traffic.broker_role)

    def added_by(
        self, p: PartitionPlacement, new: Sequence[int], leader: int | None, next_leader: int | None
    ) -> dict[BrokerRole, tuple[int, bool]]:
        """Return what the copies of a partition add at each broker and role, beside what its lists in force name.

        Returns:
            How many times its write rate, with the worse of the present and the next leader, and whether the broker and
            role gets the throttle and limits replicas.
        """
        rest = Counter(traffic.broker_role for traffic in self._listed(p, p.replicas, leader))
        limiting = {BrokerRole(broker, Role.FOLLOWER) for broker in new}
        throttled = {BrokerRole(broker, Role.LEADER) for broker in p.before}
        counts = []
        for leads in (leader, next_leader):
            moving = [*self._listed(p, (*p.replicas, *new), leads, p.before, new)]
            limiting |= {traffic.broker_role for traffic in moving if not traffic.in_sync} & throttled
            counts.append(Counter(traffic.broker_role for traffic in moving))
        limiting |= self.behind & throttled
        before, after = counts
        return {
            role: (max(before[role], after[role], rest[role]) - rest[role], role in limiting)
            for role in before.keys() | after.keys() | rest.keys() | limiting
        }

    def _listed(
        self,
        p: PartitionPlacement,
        replicas: tuple[int, ...],
        leader: int | None,
        leaders: Sequence[int] = (),
        followers: Sequence[int] = (),
    ) -> Iterator[FollowerTraffic]:
        """Yield the traffic of live followers in the lists in force, and in further entries."""
        in_force = self._lists[p.topic]
        leader_listed, follower_listed = (
            {*more, *(() if own is None else own.brokers(p.partition, replicas))}
            for own, more in zip(in_force, (leaders, followers), strict=True)
        )
        moved = replace(p, leader=leader, replicas=replicas)
        traffic = partition_traffic(moved, self._alive, leader_listed, follower_listed, p.write_bytes_per_s)
        return (one for one in follower_traffic(traffic) if one.listed and one.alive)


def _parse(text: str | None) -> ReplicaList | None:
    try:
        return parse_replica_list(text)
    except ValueError:
        # Kafka ignores a list that it cannot read.
        return None

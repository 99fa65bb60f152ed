"""Traffic that the copies of a plan add to the throttles of their leaders and destinations, as arrays."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from headroom.planning.reassignments.cluster_state import ClusterState
from headroom.planning.reassignments.plan import TargetAssignment
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
        required_bytes_per_s: traffic that counts against the throttle of the broker and role until the end.
        copied_bytes: bytes that the broker and role sends or receives.
        copies: whether the broker and role sends or receives copies; a leader that gives up the lead first does not.
    """

    assignments: Sequence[TargetAssignment]
    others: Sequence[TargetAssignment]
    roles: Sequence[BrokerRole]
    rate_known: Bools
    size_known: Bools
    copy: Ints
    role: Ints
    required_bytes_per_s: Floats
    copied_bytes: Ints
    copies: Bools

    def __len__(self) -> int:
        """Return the number of partitions that gain a replica."""
        return len(self.assignments)


def copy_needs(
    state: ClusterState, assignments: Iterable[TargetAssignment], first_leads: Mapping[TopicPartition, int]
) -> CopyNeeds:
    """Return the copies of every partition that gains a replica, in the order of the assignments.

    A partition that gains none is not listed in a throttle, so it adds nothing.

    Where Kafka gives the lead to another one during the move (``PartitionPlacement.leader_during``), the traffic of the
    leader counts on both brokers: no order of these switches then needs more.

    Args:
        state: the cluster.
        assignments: target replicas.
        first_leads: leader of partitions that get another one before the copies.
    """
    entries, alive = _Entries(state), state.alive
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
        entries.add(assignment, (*p.replicas, *new), new, leader, next_leader, p.write_bytes_per_s, p.new_replica_bytes)
    return entries.needs(others)


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
        self._assignments.append(assignment)
        self._counts.append(len(role) - first)
        self._rates.append(np.nan if rate is None else rate)
        self._sizes.append(-1 if size is None else size)

    def needs(self, others: Sequence[TargetAssignment]) -> CopyNeeds:
        counts = np.array(self._counts, np.int64)
        rates, sizes = np.array(self._rates, np.float64), np.array(self._sizes, np.int64)
        copy, copies = np.repeat(np.arange(len(counts)), counts), np.array(self._copies, np.int64)
        return CopyNeeds(
            self._assignments,
            others,
            self._roles,
            ~np.isnan(rates),
            sizes >= 0,
            copy,
            np.array(self._role, np.int64),
            np.nan_to_num(rates)[copy] * np.array(self._followers, np.int64),
            np.maximum(sizes, 0)[copy] * copies,
            copies > 0,
        )

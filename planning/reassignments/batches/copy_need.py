"""Traffic that the copies of one partition add to the throttles of its leaders and destinations."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass

from planning.reassignments.cluster_state import ClusterState, PartitionPlacement
from planning.reassignments.plan import TargetAssignment
from schemas.alerts import Role
from schemas.keys import BrokerRole, TopicPartition


@dataclass(frozen=True, slots=True)
class CopyNeed:
    """Copies of one partition.

    Attributes:
        assignment: target replicas.
        required_bytes_per_s: traffic that counts against the throttle of each broker and role until the end.
        copied_bytes: bytes that each broker and role sends or receives.
        rate_known: whether the write rate is known; if not, the traffic counts as 0.
        size_known: whether the size is known; if not, the bytes count as 0.
    """

    assignment: TargetAssignment
    required_bytes_per_s: Mapping[BrokerRole, float]
    copied_bytes: Mapping[BrokerRole, int]
    rate_known: bool
    size_known: bool


def copy_needs(
    state: ClusterState, assignments: Iterable[TargetAssignment], first_leads: Mapping[TopicPartition, int]
) -> list[CopyNeed]:
    """Return the copies of every partition that gains a replica, in the order of the assignments.

    A partition that gains none is not listed in a throttle, so it adds nothing.

    Args:
        state: the cluster.
        assignments: target replicas; partitions that do not exist are left out.
        first_leads: leader of partitions that get another one before the copies.
    """
    alive = state.alive
    needs = []
    for assignment in assignments:
        p = state.partitions.get(assignment.name)
        if p is not None and not set(p.replicas).issuperset(assignment.replicas):
            leader = first_leads.get(assignment.name, p.leader)
            needs.append(_copy_need(p, assignment, leader, alive))
    return needs


def _copy_need(
    p: PartitionPlacement, assignment: TargetAssignment, leader: int | None, alive: Collection[int]
) -> CopyNeed:
    """Return the copies of one partition.

    The first target replica is the preferred leader from the beginning. If it is in sync, Kafka gives it the lead at
    some time during the move, so the traffic of the leader counts on both brokers: no order of these switches then
    needs more.
    """
    rate, size = p.write_bytes_per_s or 0.0, p.size_bytes or 0
    new = [broker for broker in assignment.replicas if broker not in p.replicas]
    fetching = {broker for broker in (*p.replicas, *new) if broker in alive}
    required = {BrokerRole(broker, Role.FOLLOWER): rate for broker in new}
    copied = {BrokerRole(broker, Role.FOLLOWER): size for broker in new}
    preferred = assignment.replicas[0]
    next_leader = preferred if preferred in p.isr and preferred in p.replicas else leader
    for broker in (leader, next_leader):
        if broker is not None:
            required[BrokerRole(broker, Role.LEADER)] = rate * len(fetching - {broker})
    if next_leader is not None:
        copied[BrokerRole(next_leader, Role.LEADER)] = size * len(new)
    return CopyNeed(assignment, required, copied, p.write_bytes_per_s is not None, p.size_bytes is not None)

"""Changes that a plan makes: replicas added and removed, and the throttled replica lists it needs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum

from headroom.planning.reassignments.cluster_state import ClusterState, PartitionPlacement
from headroom.planning.reassignments.plan import ANY_LOG_DIR, ReassignmentPlan, TargetAssignment
from headroom.planning.throttles.replica_lists import Move, TopicLists, lists_of_plan
from headroom.schemas.keys import TopicPartition


class Exemption(str, Enum):
    """Reason why a partition of a plan needs no throttled replica list: it gains no replica."""

    UNCHANGED = "unchanged"
    REORDERED = "reordered"
    REDUCED = "loses replicas only"
    OTHER_DIRECTORY = "moves between directories of its brokers only"


@dataclass(frozen=True)
class PlanChanges:
    """Changes that a plan makes to a cluster.

    Attributes:
        gaining: partitions that gain a replica, which alone copy between brokers.
        placements: the present state of each of them, in the same order.
        exempt: the other partitions of the plan, by reason.
        added: number of replicas that each broker gains, by broker.
        removed: number of replicas that each broker loses, by broker.
        lists: throttled replica lists of the partitions that gain a replica, by topic.
        rollback: the present replicas of every partition of the plan, with their log directories, as far as known,
            where the plan names any.
        factor_changes: number of partitions whose replication factor changes.
    """

    gaining: tuple[TargetAssignment, ...]
    placements: tuple[PartitionPlacement, ...]
    exempt: Mapping[Exemption, tuple[TopicPartition, ...]]
    added: Mapping[int, int]
    removed: Mapping[int, int]
    lists: Mapping[str, TopicLists]
    rollback: ReassignmentPlan
    factor_changes: int


def plan_changes(plan: ReassignmentPlan, state: ClusterState) -> PlanChanges:
    """Return the changes that a plan makes.

    The lists are those of Kafka's own tool for partitions that gain a replica. Others stay off them, unlike with that
    tool: their in-sync traffic would use the quota of those that copy.

    Args:
        plan: the plan; every partition of it exists.
        state: the cluster.
    """
    gaining: list[TargetAssignment] = []
    placements: list[PartitionPlacement] = []
    exempt: dict[Exemption, list[TopicPartition]] = {}
    added: list[int] = []
    removed: list[int] = []
    before_all: list[TargetAssignment] = []
    moves: list[Move] = []
    factor_changes = 0
    for name, target in plan.by_name.items():
        placement = state.partitions[name]
        before = placement.before
        named = None
        if target.named_log_dirs:
            named = tuple(placement.log_dirs.get(broker, ANY_LOG_DIR) for broker in before)
        before_all.append(TargetAssignment(name, before, named))
        factor_changes += len(before) != len(target.replicas)
        new = [broker for broker in target.replicas if broker not in before]
        added += new
        removed += [broker for broker in before if broker not in target.replicas]
        if new:
            gaining.append(target)
            placements.append(placement)
            moves.append(Move(target.name, before, target.replicas))
        else:
            exempt.setdefault(_exemption(target, placement, before), []).append(name)
    return PlanChanges(
        tuple(gaining),
        tuple(placements),
        {reason: tuple(exempt[reason]) for reason in Exemption if reason in exempt},
        dict(sorted(Counter(added).items())),
        dict(sorted(Counter(removed).items())),
        lists_of_plan(moves),
        ReassignmentPlan(tuple(before_all)),
        factor_changes,
    )


def _exemption(target: TargetAssignment, placement: PartitionPlacement, before: tuple[int, ...]) -> Exemption:
    if len(target.replicas) < len(before):
        return Exemption.REDUCED
    if target.replicas != before:
        return Exemption.REORDERED
    is_moved = any(path != placement.log_dirs.get(broker) for broker, path in target.named_log_dirs.items())
    return Exemption.OTHER_DIRECTORY if is_moved else Exemption.UNCHANGED

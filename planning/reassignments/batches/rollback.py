"""The plan that undoes a plan."""

from __future__ import annotations

from planning.reassignments.cluster_state import ClusterState, PartitionPlacement
from planning.reassignments.plan import ANY_LOG_DIR, ReassignmentPlan, TargetAssignment


def rollback_plan(state: ClusterState, plan: ReassignmentPlan) -> ReassignmentPlan:
    """Return the plan that restores the present replicas of every partition in a plan, in their present order.

    Replicas that a running reassignment adds are left out. Log directories are restored where the plan names any and
    the present ones are known.

    Args:
        state: the cluster before the plan.
        plan: target replicas; partitions that do not exist are left out.
    """
    found = ((state.partitions.get(target.name), target) for target in plan)
    return ReassignmentPlan(tuple(_present(p, target) for p, target in found if p is not None))


def _present(p: PartitionPlacement, target: TargetAssignment) -> TargetAssignment:
    replicas = tuple(broker for broker in p.replicas if broker not in p.adding)
    if target.log_dirs is None:
        return TargetAssignment(p.topic, p.partition, replicas)
    return TargetAssignment(p.topic, p.partition, replicas, tuple(p.log_dirs.get(b, ANY_LOG_DIR) for b in replicas))

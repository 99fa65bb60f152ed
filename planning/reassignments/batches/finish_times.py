"""Time of a batch by Kafka's quotas, simulated."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import replace
from functools import lru_cache

from headroom.planning.reassignments.batches.batch import ReassignmentBatch, copy_time_s
from headroom.planning.reassignments.batches.batching import Duration
from headroom.planning.reassignments.changes import plan_changes
from headroom.planning.reassignments.cluster_state import ClusterState
from headroom.planning.reassignments.plan import ReassignmentPlan, TargetAssignment
from headroom.planning.reassignments.timing import MoveTimes
from headroom.planning.reassignments.traffic import OtherReplication, planned_traffic
from headroom.schemas.keys import Role

# A batch is simulated many times in the search. Of larger ones the sums decide, and quotas make little difference.
_MOST_PARTITIONS = 2_000


def finish_times(
    state: ClusterState, leads_first: Iterable[TargetAssignment], capacity_bytes_per_s: float | None
) -> Duration:
    """Return the function that simulates a batch; the time of a large one is ``copy_time_s``.

    Args:
        state: the cluster before the plan.
        leads_first: orders of present replicas that are carried out before, with elections.
        capacity_bytes_per_s: replication traffic that a broker can carry; None if unknown.
    """
    partitions = dict(state.partitions)
    for target in leads_first:
        partitions[target.name] = replace(partitions[target.name], replicas=target.replicas, leader=target.replicas[0])
    # A batch may begin before the traffic of the last one has left the quotas, so none has room for a burst.
    brokers = {broker: replace(own, unused_quotas=frozenset(Role)) for broker, own in state.brokers.items()}
    switched = replace(state, partitions=partitions, brokers=brokers)
    others = OtherReplication(switched, capacity_bytes_per_s)

    @lru_cache(maxsize=64)
    def times_of(assignments: tuple[TargetAssignment, ...]) -> MoveTimes:
        changes = plan_changes(ReassignmentPlan(assignments), switched)
        traffic = planned_traffic(switched, changes, changes.lists)
        return MoveTimes(traffic, switched, others.ceilings(traffic))

    def finish_s(batch: ReassignmentBatch) -> float | None:
        if len(batch.assignments) > _MOST_PARTITIONS or batch.unknown_rates or batch.unknown_sizes:
            return copy_time_s(batch, others.rough_ceilings(a.name for a in batch.assignments))
        finish = times_of(batch.assignments).finish(batch.throttle_bytes_per_s or 0, 1)
        return math.inf if finish is None else finish.middle_s

    return finish_s


def plan_time_s(
    plan: ReassignmentPlan, state: ClusterState, throttle_bytes_per_s: int, capacity_bytes_per_s: float | None
) -> float | None:
    """Return the time of a plan that is about to begin under a throttle, seconds; None if it is unknown.

    Args:
        plan: the plan; every partition of it exists.
        state: the cluster.
        throttle_bytes_per_s: throttle of every broker that takes part.
        capacity_bytes_per_s: replication traffic that a broker can carry; None if unknown.
    """
    changes = plan_changes(plan, state)
    traffic = planned_traffic(state, changes, changes.lists)
    times = MoveTimes(traffic, state, OtherReplication(state, capacity_bytes_per_s).ceilings(traffic))
    finish = times.at(throttle_bytes_per_s, 1).finish
    return None if finish is None else float(finish.middle_s)

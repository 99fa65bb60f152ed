"""Estimate of a planned reassignment: throttle, time, and what would make it fail."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

from headroom.operations.plans.result import FittingWay, PlanResult
from headroom.planning.elections.quiet_hours import DailyWindow
from headroom.planning.log_dirs.duration import directory_estimates
from headroom.planning.reassignments.batches.batching import BatchPolicy, cut_into_batches
from headroom.planning.reassignments.batches.finish_times import finish_times
from headroom.planning.reassignments.changes import plan_changes
from headroom.planning.reassignments.cluster_state import ClusterState
from headroom.planning.reassignments.directory_moves import directory_moves
from headroom.planning.reassignments.estimate import estimate, running_plan
from headroom.planning.reassignments.generation.planner import MadePlan, PlanExclusion
from headroom.planning.reassignments.plan import ReassignmentPlan, TargetAssignment
from headroom.planning.reassignments.validation import plan_notes, require_possible, require_room
from headroom.planning.throttles.recommendation import ThrottlePolicy
from headroom.schemas.errors import HeadroomError

AUTO = "auto"


@dataclass(frozen=True)
class BatchingRequest:
    """How a plan is cut into batches; None where nothing is asked for.

    Attributes:
        batches: number of batches, or ``auto``.
        max_throttle: largest throttle, bytes per second.
        window: daily window in which batches run.
    """

    batches: int | str | None = None
    max_throttle: int | None = None
    window: DailyWindow | None = None

    def policy(
        self, margin_ratio: float, throttle: float | None, finish_within_s: float | None, capacity: float | None
    ) -> BatchPolicy:
        """Return the limits of batches. Without any of the options, the plan is one batch.

        Args:
            margin_ratio: factor between the required rate and the throttle.
            throttle: throttle that was given for the whole plan, bytes per second; None if none was.
            finish_within_s: longest time for all batches together, seconds; None without a limit.
            capacity: replication traffic that a broker can carry, bytes per second; None if unknown.
        """
        wanted = self.batches
        if wanted is None:
            wanted = AUTO if self.max_throttle is not None or self.window is not None else 1
        limits = [self.max_throttle if self.max_throttle is not None else throttle]
        if wanted == AUTO:
            limits.append(capacity)
        known = [limit for limit in limits if limit is not None]
        return BatchPolicy(
            batches=None if wanted == AUTO else int(wanted),
            max_throttle_bytes_per_s=min(known, default=None),
            finish_within_s=finish_within_s,
            window_s=None if self.window is None else self.window.length_s(),
            margin_ratio=margin_ratio,
            capacity_bytes_per_s=None if capacity is None else math.floor(capacity),
        )


@dataclass(frozen=True)
class EstimateRequest:
    """What is asked of an estimate.

    Attributes:
        policy: margin, deadline and capacity.
        throttle: throttle of the estimate, bytes per second; None: the recommended one.
        log_dirs_throttle: throttle of moves between log directories, bytes per second; None: that in force.
        batching: how the plan is cut; None: it is not.
    """

    policy: ThrottlePolicy
    throttle: int | None = None
    log_dirs_throttle: int | None = None
    batching: BatchingRequest | None = None


def estimate_plan(
    wanted: ReassignmentPlan | MadePlan | None, state: ClusterState, request: EstimateRequest, subject: str
) -> PlanResult:
    """Return the estimate of a plan.

    Args:
        wanted: the plan, read or made; None: the reassignments that run now.
        state: the cluster.
        request: what is asked for.
        subject: name of the plan, for errors.

    Raises:
        HeadroomError: the plan cannot be carried out, or nothing runs.
    """
    made = wanted if isinstance(wanted, MadePlan) else None
    plan = wanted.plan if isinstance(wanted, MadePlan) else wanted
    result = _whole_plan(plan, state, request.policy, request.throttle, subject)
    rates = {broker: of_broker.log_dirs_bytes_per_s for broker, of_broker in state.brokers.items()}
    directories = directory_estimates(directory_moves(result.plan, state), rates, request.log_dirs_throttle)
    result = replace(result, directories=directories)
    leads_first = () if made is None else made.leads_first
    if made is not None:
        result = replace(result, made=True, notes=[*made_notes(made), *result.notes])
    if request.batching is not None or leads_first:
        result = _with_batches(result, request.batching or BatchingRequest(), request.throttle, leads_first)
    if not result.in_flight:
        result = replace(result, notes=[*result.notes, *require_room(result.batches, state, subject)])
    if result.fits is False and not result.waits_for_dead:
        result = replace(result, would_fit=_fitting_way(result, leads_first))
    return result


def _whole_plan(
    wanted: ReassignmentPlan | None, state: ClusterState, policy: ThrottlePolicy, throttle: int | None, subject: str
) -> PlanResult:
    in_flight = wanted is None
    plan = running_plan(state) if wanted is None else wanted
    if in_flight and not plan.assignments:
        raise HeadroomError("the cluster", "has no running reassignment", "Name a plan file to estimate it.")
    changes = plan_changes(plan, state) if in_flight else require_possible(plan, state, subject)
    notes = plan_notes(plan, changes, state)
    move = estimate(changes, state, policy, throttle, in_flight)
    return PlanResult(plan, (plan,), state, policy, move, notes, in_flight)


def _with_batches(
    result: PlanResult, batching: BatchingRequest, throttle: int | None, leads_first: Sequence[TargetAssignment]
) -> PlanResult:
    policy = result.policy
    limits = batching.policy(policy.margin_ratio, throttle, policy.finish_within_s, policy.capacity_bytes_per_s)
    times = finish_times(result.state, leads_first, policy.capacity_bytes_per_s)
    cut = cut_into_batches(result.state, result.plan, limits, leads_first, times)
    batches = [ReassignmentPlan(batch.assignments) for batch in cut.batches]
    return replace(result, cut=cut, batches=batches)


def _fitting_way(result: PlanResult, leads_first: Sequence[TargetAssignment]) -> FittingWay | None:
    """Return how a plan fits that does not: under the recommended throttle, or in the fewest batches that do."""
    estimate, policy = result.estimate, result.policy
    enough = None if estimate.recommendation is None else estimate.recommendation.throttle_bytes_per_s
    finish = next((time.finish for time in estimate.times if time.throttle_bytes_per_s == enough), None)
    within_s = math.inf if policy.finish_within_s is None else policy.finish_within_s
    if result.cut is None and enough is not None and finish is not None and finish.middle_s <= within_s:
        return FittingWay(enough, 1, finish.middle_s)
    # What runs already cannot be cut, and nothing is copied by the rest.
    if result.in_flight or not estimate.changes.gaining:
        return None
    try:
        cut = _with_batches(result, BatchingRequest(AUTO), None, leads_first).cut
    except HeadroomError:
        # One partition alone needs more.
        return None
    if cut is None or not cut.chosen.fits or cut.chosen.total_s is None or not cut.chosen.throttle_bytes_per_s:
        return None
    return FittingWay(cut.chosen.throttle_bytes_per_s, cut.chosen.batches, cut.chosen.total_s)


def made_notes(made: MadePlan) -> list[str]:
    """Return what the operator should know of a plan that was made, in sentences."""
    notes = list(made.notes)
    for reason in PlanExclusion:
        names = [name for name, excluded in made.excluded.items() if excluded is reason]
        if names:
            more = f" and {len(names) - 1:,} more" if len(names) > 1 else ""
            notes.append(f"Left out: {names[0]}{more}, because {reason.value}.")
    return notes

"""The plan that undoes a run, from its record."""

from __future__ import annotations

from headroom.planning.reassignments.plan import ANY_LOG_DIR, ReassignmentPlan, TargetAssignment
from headroom.planning.reassignments.run.record import RecordedRun
from headroom.schemas.errors import HeadroomError
from headroom.schemas.keys import ReplicaKey, TopicPartition


def plan_back(record: RecordedRun) -> ReassignmentPlan:
    """Return the plan that undoes a run.

    Raises:
        HeadroomError: the run has moved nothing.
    """
    if not record.submitted:
        raise HeadroomError(f"run {record.run_id}", "has moved nothing", "There is nothing to roll back.")
    return ReassignmentPlan(
        tuple(
            TargetAssignment(name, move.before, _directories(name, move.before, record))
            for name, move in sorted(record.submitted.items())
        )
    )


def batches_back(record: RecordedRun) -> list[ReassignmentPlan]:
    """Return the plan that undoes a run, in the batches of the run, the last one first.

    In one batch, the way back of many would need a higher throttle than the run, and room for all copies at once.

    Raises:
        HeadroomError: the run has moved nothing.
    """
    by_request: dict[int, list[TargetAssignment]] = {}
    for assignment in plan_back(record):
        by_request.setdefault(record.requests.get(assignment.name, 0), []).append(assignment)
    return [ReassignmentPlan(tuple(by_request[request])) for request in sorted(by_request, reverse=True)]


def _directories(name: TopicPartition, before: tuple[int, ...], record: RecordedRun) -> tuple[str, ...] | None:
    """Return the directories that the run took replicas away from; None if it took none."""
    placed = [record.placed.get(ReplicaKey(name, broker)) for broker in before]
    paths = [place.before if place is not None else None for place in placed]
    return tuple(path or ANY_LOG_DIR for path in paths) if any(paths) else None

"""Batches in which a plan is carried out."""

from __future__ import annotations

from planning.reassignments.plan import ReassignmentPlan


def batches_of(plan: ReassignmentPlan) -> tuple[ReassignmentPlan, ...]:
    """Return the batches of a plan, in order; together they are the plan."""
    return (plan,)

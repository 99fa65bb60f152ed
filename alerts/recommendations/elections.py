"""Text and JSON of an election plan in a recommendation."""

from __future__ import annotations

from typing import Any

from alerts.text.formatting import format_rate, percent
from planning.elections.planner import WHY, Reason, RequiredThrottleIncrease
from planning.elections.summary import ElectionPlanSummary


def describe_plan(plan: ElectionPlanSummary | None) -> str:
    """Return the plan in one sentence; without a plan, general advice."""
    if plan is None:
        return "elect preferred leaders in small batches, at a quiet time"
    if not plan.batches:
        return f"nothing can be elected just now: {_describe_left_out(plan)}"
    parts = [_describe_batches(plan)]
    if plan.left_out:
        parts.append(f"left out: {_describe_left_out(plan)}")
    if plan.raise_first:
        parts.append(
            f"to elect more, first raise the throttle of {', '.join(map(_describe_increase, plan.raise_first))}"
        )
    return "; ".join(parts)


def plan_json(plan: ElectionPlanSummary) -> dict[str, Any]:
    """Return the plan ready for JSON."""
    return {
        "plan_tick_ms": plan.tick_ms,
        "batches": plan.batches,
        "elections": plan.elections,
        "write_bytes_per_s": plan.write_bytes_per_s,
        "first_batch": [{"topic": topic, "partition": partition} for topic, partition in plan.first_batch],
        "first_batch_write_bytes_per_s": plan.first_batch_write_bytes_per_s,
        "imbalance_ratios": [outlook._asdict() for outlook in plan.outlooks],
        "left_out": dict(plan.left_out),
        "raise_first": [
            {
                "broker_id": first.broker_role[0],
                "role": first.broker_role[1].value,
                "throttle_bytes_per_s": first.throttle_bytes_per_s,
                "required_bytes_per_s": first.required_bytes_per_s,
            }
            for first in plan.raise_first
        ],
    }


def _describe_batches(plan: ElectionPlanSummary) -> str:
    after = f"no broker then lacks more than {percent(plan.greatest_last_batch_ratio)} of its leads"
    written = "what is written to them is not known"
    if plan.first_batch_write_bytes_per_s is not None:
        written = f"{format_rate(plan.first_batch_write_bytes_per_s)} are written to them"
    first = f"{len(plan.first_batch)} partition(s) ({written})"
    if plan.batches == 1:
        return f"elect the preferred leaders of {first} in one batch, at a quiet time: {after}"
    return (
        f"elect the preferred leaders of {plan.elections} partitions in {plan.batches} batches, at a quiet time: first "
        f"of {first}, after which no broker lacks more than {percent(plan.greatest_first_batch_ratio)} of its leads; "
        f"after the last it is {percent(plan.greatest_last_batch_ratio)}"
    )


def _describe_left_out(plan: ElectionPlanSummary) -> str:
    return ", ".join(f"{count} ({WHY[Reason(reason)]})" for reason, count in plan.left_out)


def _describe_increase(first: RequiredThrottleIncrease) -> str:
    broker, role = first.broker_role
    return f"broker {broker} as {role.value} above {format_rate(first.required_bytes_per_s)}"

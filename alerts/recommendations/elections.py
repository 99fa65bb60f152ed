"""Recommendation of preferred elections, with the plan as text and JSON."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from functools import cached_property
from typing import Any

from headroom.alerts.recommendations import commands
from headroom.alerts.recommendations.recommendation import (
    NO_FINISH,
    Action,
    BrokerThrottle,
    FinishRange,
    recommendation_json,
)
from headroom.planning.elections.planner import WHY, Reason, RequiredThrottleIncrease
from headroom.planning.elections.summary import ElectionPlanSummary
from headroom.schemas.text.amounts import percent_text, rate_text

# Most partitions that one command lists; for larger batches Headroom's own command writes files.
_MOST_NAMED = 50


@dataclass(frozen=True)
class ElectPreferred:
    """The recommendation to elect preferred leaders; text and commands are computed when they are read.

    Attributes:
        plan: plan of preferred elections; None if there is none.
        bootstrap_servers: bootstrap servers in Kafka's commands.
        config: configuration file in Headroom's commands; None if there is none.
    """

    plan: ElectionPlanSummary | None
    bootstrap_servers: str
    config: str | None
    action: Action = Action.ELECT_PREFERRED
    throttle_bytes_per_s: int | None = None
    smallest_bytes_per_s: float | None = None
    per_broker: Sequence[BrokerThrottle] = ()
    finish: FinishRange = NO_FINISH

    @cached_property
    def reason(self) -> str:
        """Return the plan in one sentence."""
        return describe_plan(self.plan)

    @cached_property
    def commands(self) -> list[str]:
        """Return the commands that elect: Headroom's, and Kafka's for the first batch."""
        result = [commands.headroom_elections(self.config)]
        if self.plan is not None and 0 < len(self.plan.first_batch) <= _MOST_NAMED:
            result.append(commands.kafka_elect_these(self.plan.first_batch, self.bootstrap_servers))
        return result

    def to_json(self) -> dict[str, Any]:
        """Return the recommendation as it is stored, with the figures of the plan, ready for JSON."""
        return recommendation_json(self) | ({} if self.plan is None else plan_json(self.plan))


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
        "imbalance_ratios": [asdict(outlook) for outlook in plan.outlooks],
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
    after = f"no broker then lacks more than {percent_text(plan.greatest_last_batch_ratio)} of its leads"
    written = "what is written to them is not known"
    if plan.first_batch_write_bytes_per_s is not None:
        written = f"{rate_text(plan.first_batch_write_bytes_per_s)} are written to them"
    first = f"{len(plan.first_batch)} partition(s) ({written})"
    if plan.batches == 1:
        return f"elect the preferred leaders of {first} in one batch, at a quiet time: {after}"
    return (
        f"elect the preferred leaders of {plan.elections} partitions in {plan.batches} batches, at a quiet time: first "
        f"of {first}, after which no broker lacks more than {percent_text(plan.greatest_first_batch_ratio)} of its "
        f"leads; after the last it is {percent_text(plan.greatest_last_batch_ratio)}"
    )


def _describe_left_out(plan: ElectionPlanSummary) -> str:
    return ", ".join(f"{count} ({WHY[Reason(reason)]})" for reason, count in plan.left_out)


def _describe_increase(first: RequiredThrottleIncrease) -> str:
    broker, role = first.broker_role
    return f"broker {broker} as {role.value} above {rate_text(first.required_bytes_per_s)}"

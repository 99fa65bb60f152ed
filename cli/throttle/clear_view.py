"""Output of ``headroom throttle clear``, as text and as JSON."""

from __future__ import annotations

from typing import Any

from headroom.cli.common.changing import error_json, passed_over_json
from headroom.cli.common.output import echo, print_table
from headroom.cluster.live.throttle_state import ThrottleState
from headroom.operations.throttles.clear_plan import ClearPlan, ClearResult
from headroom.operations.throttles.throttle_view import throttle_text


def print_plan(view: ThrottleState, plan: ClearPlan) -> None:
    """Print the rates and lists that are removed; nothing if there are none."""
    log_dirs = bool(view.log_dirs())
    roles = ("leader", "follower", *["log_dirs"] * log_dirs)
    rows = [(f"broker {b}", *(throttle_text(view.rates[b], role) for role in roles)) for b in plan.brokers]
    if plan.cluster_default:
        rows.append(("cluster default", *(throttle_text(view.default, role) for role in roles)))
    for topic in plan.topics:
        config = view.snapshot.topic_configs[topic]
        rows.append((f"topic {topic}", config.leader_list or "none", config.follower_list or "none", *[""] * log_dirs))
    if rows:
        print_table("", ("to clear", "leader", "follower", *["log directories"] * log_dirs), rows)
        echo()


def print_result(result: ClearResult) -> None:
    """Print that everything was cleared, or that there was nothing to clear; nothing if an error is printed instead."""
    if result.plan.empty():
        echo("Nothing to clear." if not result.plan.passed_over else "Nothing else to clear.")
    elif result.error is None:
        echo("Cleared, and read back.")


def clear_json(result: ClearResult) -> dict[str, Any]:
    """Return the result as a JSON object; ``keys`` are the configuration keys that are removed."""
    plan = result.plan
    return {
        "executed": result.executed,
        "brokers": list(plan.brokers),
        "topics": list(plan.topics),
        "cluster_default": plan.cluster_default,
        "keys": {
            "brokers": [{"broker": broker, "keys": list(keys)} for broker, keys in plan.broker_keys.items()],
            "topics": [{"topic": topic, "keys": list(keys)} for topic, keys in plan.topic_keys.items()],
            "cluster_default": list(plan.default_keys),
        },
        "passed_over": passed_over_json(plan.passed_over),
        "failed": error_json(result.error),
    }

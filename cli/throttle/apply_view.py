"""Output of ``headroom throttle apply``, as text and as JSON."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any

from headroom.cli.common.changing import error_json, passed_over_json
from headroom.cli.common.output import echo, print_table
from headroom.cluster.live.throttle_state import ThrottleState
from headroom.cluster.throttles.rates import ROLES
from headroom.operations.throttles.apply_plan import (
    DOWN,
    LOG_DIRS,
    ApplyPlan,
    ApplyResult,
    PlannedRateChange,
    RateAction,
)
from headroom.operations.throttles.lists_plan import ListsPlan, lists_json
from headroom.operations.throttles.needs.throttle_need import ThrottleNeeds
from headroom.operations.throttles.throttle_view import throttle_text
from headroom.planning.throttles.rate_options import is_low, rate_options
from headroom.schemas.config import Settings
from headroom.schemas.text.amounts import UNKNOWN, rate_text
from headroom.schemas.text.names import broker_names


def print_plan(view: ThrottleState, plan: ApplyPlan) -> None:
    """Print one row per broker, with the changes of its rates, and one per topic whose lists get entries."""
    changes = {(change.broker, change.role): change for change in plan.changes}
    brokers = sorted({*plan.brokers(), *plan.passed_over})
    with_log_dirs = plan.log_dirs_bytes_per_s is not None
    roles = (*ROLES, *[LOG_DIRS] * with_log_dirs)
    rows = [(str(b), *(_cell(view, b, role, changes.get((b, role))) for role in roles)) for b in brokers]
    print_table("", ("broker", "leader", "follower", *["log directories"] * with_log_dirs), rows)
    echo()
    if plan.lists is not None:
        _print_lists(plan.lists)


def _print_lists(lists: ListsPlan) -> None:
    if not lists.entries:
        echo("The throttled replica lists are complete; nothing is added to them.")
    else:
        rows = [(topic, added.leader or "", added.follower or "") for topic, added in lists.entries.items()]
        print_table("Added to the throttled replica lists", ("topic", "leader", "follower"), rows)
    echo()


def _cell(view: ThrottleState, broker: int, role: str, change: PlannedRateChange | None) -> str:
    if not view.alive(broker):
        return "down, stays as it is"
    if change is None:
        return throttle_text(view.of(broker), role)
    return change_text(change, view.of(broker).known)


def change_text(change: PlannedRateChange, known: bool = True) -> str:
    """Return the change of a rate as text; ``known`` is false if the broker did not report its rates."""
    now = rate_text(change.from_bytes_per_s)
    if change.changes:
        before = UNKNOWN if not known else "none" if change.from_bytes_per_s is None else now
        return f"{before} -> {rate_text(change.to_bytes_per_s)}"
    return {
        RateAction.KEEP: f"keeps {now}",
        RateAction.KEEP_UNLIMITED: "has none, stays so",
        RateAction.UNKNOWN: "unknown, stays as it is",
    }[change.action]


def apply_notes(settings: Settings, view: ThrottleState, plan: ApplyPlan) -> list[str]:
    """Return warnings about the rate, and the rates that stay as they are, in sentences."""
    notes = [_passed_over_note(broker, reason) for broker, reason in sorted(plan.passed_over.items())]
    capacity = settings.cluster.replication_capacity
    rates = [rate for rate in (plan.rate_bytes_per_s, plan.log_dirs_bytes_per_s) if rate is not None]
    if any(map(is_low, rates)):
        notes.append("1 MB/s is the least that Kafka keeps accurately.")
    notes += _lists_notes(plan.lists) if plan.lists is not None else []
    if plan.rate_bytes_per_s is None:
        return notes
    if capacity is not None and plan.rate_bytes_per_s > capacity:
        notes.append(f"This is more than cluster.replication_capacity ({rate_text(capacity)}).")
    # The rate of one of these may be what holds a move back.
    left_out = sorted(set(view.participants()) - set(plan.brokers()) - set(plan.passed_over))
    if left_out:
        notes.append(f"Brokers {', '.join(map(str, left_out))} take part in running moves and keep their rates.")
    if not view.listed_topics() and not view.unread_topics() and plan.lists is None:
        notes.append("No throttled replica list is set: a rate without a list limits nothing.")
    return notes


def _lists_notes(lists: ListsPlan) -> list[str]:
    return [
        f"The {role} list of topic {topic} is *, which names every replica: it stays."
        for topic, roles in lists.every.items()
        for role in roles
    ]


def need_notes(plan: ApplyPlan, needs: ThrottleNeeds | None) -> list[str]:
    """Return one note per broker and role whose moving partitions need more than the rate that they get.

    Args:
        plan: the plan; only one that throttles a running move is checked.
        needs: needs of the running moves; None if unknown.
    """
    if plan.lists is None or plan.rate_bytes_per_s is None or needs is None:
        return []
    in_force = {(c.broker, c.role): c.to_bytes_per_s for c in plan.changes}
    notes = []
    for need in needs.needs:
        # Once the moves are in the lists, both count at least.
        least = max(need.lasting_required_bytes_per_s or 0.0, need.moving_bytes_per_s or 0.0)
        rate = in_force.get((need.broker, need.role))
        if rate is not None and rate <= least:
            notes.append(
                f"Broker {need.broker} as {need.role} needs more than {rate_text(least)}: at {rate_text(rate)} its "
                "moving partitions never get in sync."
            )
    return notes


def _passed_over_note(broker: int, reason: str) -> str:
    if reason == DOWN:
        return (
            f"Broker {broker} is down and is skipped: its rates stay as they are, and are in force when it "
            "returns. Run the command again when it is up."
        )
    return f"Broker {broker} {reason}: they stay as they are. Run the command again when it answers."


def command_words(plan: ApplyPlan, roles: Collection[str]) -> list[str]:
    """Return the words of the command that executes the plan, including brokers that are down."""
    brokers = sorted({*plan.brokers(), *plan.passed_over})
    rates = {"--rate": plan.rate_bytes_per_s, "--log-dirs": plan.log_dirs_bytes_per_s}
    # Brokers are named even if none were: who takes part may change before the command is run.
    words = ["throttle", "apply", *rate_options(rates), "--brokers", ",".join(map(str, brokers))]
    if set(roles) != set(ROLES):
        words += [word for role in ROLES if role in roles for word in ("--role", role)]
    return words + ["--raise-only"] * plan.raise_only + ["--lists"] * (plan.lists is not None)


def print_result(result: ApplyResult) -> None:
    """Print the rates that are in force now, or that there was nothing to raise."""
    plan = result.plan
    if result.listed:
        echo(f"In the throttled replica lists, and read back: topics {', '.join(result.listed)}.")
    if not plan.rates():
        qualifier = "that is known " if plan.unknown() else ""
        rate = " or ".join(text for _, text in _rate_texts(plan))
        echo(f"Nothing to raise: no rate in force {qualifier}on {broker_names(plan.brokers())} is lower than {rate}.")
        return
    where = "where it was lower, on" if plan.raise_only else "on"
    for roles, text in _rate_texts(plan):
        brokers = sorted({broker for broker, role in plan.rates() if role in roles and broker in result.after})
        if brokers:
            echo(f"In force: {text} {where} {broker_names(brokers)}, read back from each.")


def _rate_texts(plan: ApplyPlan) -> list[tuple[tuple[str, ...], str]]:
    """Return the roles and the text of each requested rate."""
    texts = ((ROLES, plan.rate_bytes_per_s, ""), ((LOG_DIRS,), plan.log_dirs_bytes_per_s, " between log directories"))
    return [(roles, f"{rate_text(rate)}{kind}") for roles, rate, kind in texts if rate is not None]


def apply_json(result: ApplyResult) -> dict[str, Any]:
    """Return the result as a JSON object; ``after`` is null for a broker that was not changed."""
    plan = result.plan
    return {
        "executed": result.executed,
        "rate_bytes_per_s": plan.rate_bytes_per_s,
        "log_dirs_bytes_per_s": plan.log_dirs_bytes_per_s,
        "raise_only": plan.raise_only,
        "brokers": [
            {
                "broker": broker,
                "before": vars(result.view.of(broker)),
                "after": vars(result.after[broker]) if broker in result.after else None,
                "changes": _changes_json(plan.changes, broker),
            }
            for broker in plan.brokers()
        ],
        "lists": None if plan.lists is None else lists_json(plan.lists),
        "passed_over": passed_over_json(plan.passed_over),
        "failed": error_json(result.error),
    }


def _changes_json(changes: Sequence[PlannedRateChange], broker: int) -> Mapping[str, object]:
    """Return the changes of a broker's rates by role, as a JSON object; null for a role that was not requested."""
    by_role = {c.role: c for c in changes if c.broker == broker}
    # Readers of the older form go through all keys, so that of log directories is there only if it was requested.
    roles = (*ROLES, *[LOG_DIRS] * (LOG_DIRS in by_role))
    return {role: _change_json(by_role[role]) if role in by_role else None for role in roles}


def _change_json(change: PlannedRateChange) -> Mapping[str, object]:
    return {
        "action": change.action.value,
        "from_bytes_per_s": change.from_bytes_per_s,
        "to_bytes_per_s": change.to_bytes_per_s,
    }

"""Output of ``headroom throttle apply``, as text and as JSON."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any

from cli.common.changing import error_json, passed_over_json
from cli.common.output import UNKNOWN, broker_names, echo, mb_per_s, print_table
from cli.throttle.apply_plan import DOWN, ApplyPlan, ApplyResult, RateAction, RateChange
from cli.throttle.rates import ACCURATE_BYTES_PER_S, MIN_BYTES_PER_S
from cli.throttle.view import ThrottleView, rate_text
from cluster.throttles.rates import ROLES
from schemas.config import Settings


def print_plan(view: ThrottleView, plan: ApplyPlan) -> None:
    """Print one row per broker, with the changes of its leader and follower rates."""
    changes = {(change.broker, change.role): change for change in plan.changes}
    brokers = sorted({*plan.brokers(), *plan.passed_over})
    rows = [(str(b), *(_cell(view, b, role, changes.get((b, role))) for role in ROLES)) for b in brokers]
    print_table("", ("broker", "leader", "follower"), rows)
    echo()


def _cell(view: ThrottleView, broker: int, role: str, change: RateChange | None) -> str:
    if not view.alive(broker):
        return "down, stays as it is"
    if change is None:
        return rate_text(view.of(broker), role)
    return change_text(change, view.of(broker).known)


def change_text(change: RateChange, known: bool = True) -> str:
    """Return the change of a rate as text; ``known`` is false if the broker did not report its rates."""
    now = mb_per_s(change.from_bytes_per_s)
    if change.changes:
        before = UNKNOWN if not known else "none" if change.from_bytes_per_s is None else now
        return f"{before} -> {mb_per_s(change.to_bytes_per_s)}"
    return {
        RateAction.KEEP: f"keeps {now}",
        RateAction.KEEP_UNLIMITED: "has none, stays so",
        RateAction.UNKNOWN: "unknown, stays as it is",
    }[change.action]


def apply_notes(settings: Settings, view: ThrottleView, plan: ApplyPlan) -> list[str]:
    """Return warnings about the rate, and the rates that stay as they are, in sentences."""
    notes = [_passed_over_note(broker, reason) for broker, reason in sorted(plan.passed_over.items())]
    capacity = settings.cluster.replication_capacity
    if plan.rate_bytes_per_s < ACCURATE_BYTES_PER_S:
        notes.append("1 MB/s is the least that Kafka keeps accurately.")
    if capacity is not None and plan.rate_bytes_per_s > capacity:
        notes.append(f"This is more than cluster.replication_capacity ({mb_per_s(capacity)}).")
    left_out = sorted(set(view.participants()) - set(plan.brokers()) - set(plan.passed_over))
    if left_out:
        notes.append(f"Brokers {', '.join(map(str, left_out))} take part in running moves and keep their rates.")
    if not view.listed() and not view.unread_topics():
        notes.append("No throttled replica list is set: a rate without a list limits nothing.")
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
    words = ["throttle", "apply", "--rate", _rate_word(plan.rate_bytes_per_s), "--brokers", ",".join(map(str, brokers))]
    if set(roles) != set(ROLES):
        words += [word for role in ROLES if role in roles for word in ("--role", role)]
    return words + ["--raise-only"] * plan.raise_only


def _rate_word(bytes_per_s: int) -> str:
    return f"{bytes_per_s}B" if bytes_per_s < MIN_BYTES_PER_S else str(bytes_per_s)


def print_result(result: ApplyResult) -> None:
    """Print the rates that are in force now, or that there was nothing to raise."""
    plan, rate = result.plan, mb_per_s(result.plan.rate_bytes_per_s)
    if not plan.rates():
        qualifier = "that is known " if plan.unknown() else ""
        echo(f"Nothing to raise: no rate in force {qualifier}on {broker_names(plan.brokers())} is lower than {rate}.")
    elif result.after:
        where = "where it was lower, on" if plan.raise_only else "on"
        echo(f"In force: {rate} {where} {broker_names(sorted(result.after))}, read back from each.")


def apply_json(result: ApplyResult) -> dict[str, Any]:
    """Return the result as a JSON object; ``after`` is null for a broker that was not changed."""
    plan = result.plan
    return {
        "executed": result.executed,
        "rate_bytes_per_s": plan.rate_bytes_per_s,
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
        "passed_over": passed_over_json(plan.passed_over),
        "failed": error_json(result.error),
    }


def _changes_json(changes: Sequence[RateChange], broker: int) -> Mapping[str, object]:
    """Return the changes of a broker's rates by role, as a JSON object; null for a role that was not requested."""
    by_role = {c.role: c for c in changes if c.broker == broker}
    return {role: _change_json(by_role[role]) if role in by_role else None for role in ROLES}


def _change_json(change: RateChange) -> Mapping[str, object]:
    return {
        "action": change.action.value,
        "from_bytes_per_s": change.from_bytes_per_s,
        "to_bytes_per_s": change.to_bytes_per_s,
    }

"""``headroom throttle apply``: set one rate on brokers, or only raise lower rates to it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import click

from cli.common.changing import (
    broker_names,
    error_json,
    execute_option,
    passed_over_json,
    print_notes,
    print_nothing_changed,
    print_step,
)
from cli.common.options import config_option, format_option
from cli.common.output import echo, mb_per_s, print_json
from cli.common.parameters import BrokerIds, Rate
from cli.config.load import load_settings
from cli.throttle.apply_plan import ApplyPlan, apply_plan
from cli.throttle.apply_view import apply_notes, changes_json, command_words, print_plan
from cli.throttle.view import ThrottleView, read_view
from cluster.model import BrokerThrottles
from cluster.throttles.broker_rates import RatesError
from cluster.throttles.rates import ROLES, apply_rates
from schemas.config import Settings
from schemas.errors import HeadroomError


@dataclass(frozen=True)
class ApplyResult:
    """Result of executing a plan.

    Attributes:
        after: rates in force on the changed brokers, read back from each.
        error: error of the brokers that could not be changed; None if there was none.
    """

    after: Mapping[int, BrokerThrottles] = field(default_factory=dict)
    error: HeadroomError | None = None


@click.command(short_help="Set one throttle rate on brokers, or only raise lower ones to it.")
@config_option
@format_option
@click.option("--rate", type=Rate(), required=True, metavar="BYTES_PER_S", help="New rate, e.g. 12500000 or 12.5MB.")
@click.option(
    "--brokers", type=BrokerIds(), metavar="ID,...", help="Default: all brokers that take part in running moves."
)
@click.option(
    "--role",
    "roles",
    type=click.Choice(ROLES),
    multiple=True,
    default=ROLES,
    show_default="both",
    help="Set only this rate; may be given twice.",
)
@click.option(
    "--raise-only",
    is_flag=True,
    help="Only raise lower rates; leave higher rates, and brokers without a rate, as they are.",
)
@execute_option
def apply(
    config: str | None,
    output_format: str,
    rate: int,
    brokers: list[int] | None,
    roles: tuple[str, ...],
    raise_only: bool,
    execute: bool,
) -> None:
    """Set the leader and follower throttle rates of brokers, and read them back until they are in force.

    With --raise-only no rate in force is lowered. For each broker and role, a lower rate is raised, be it the broker's
    own or the cluster default. A higher rate stays, and a broker without a rate stays unlimited.

    A broker that is down is skipped, because only the broker itself can change its rate. The others are set. Run the
    command again when the broker is up.

    \b
    Example:  headroom throttle apply --rate 12.5MB
              headroom throttle apply --rate 12.5MB --brokers 1,2 --raise-only --execute
              headroom throttle apply --rate 12.5MB --brokers 3 --role follower --execute
    """  # noqa: D301
    settings = load_settings(config)
    view = read_view(settings)
    plan = apply_plan(view, rate, brokers, roles, raise_only)
    if output_format == "text":
        print_plan(view, plan)
    print_notes(apply_notes(settings, view, plan))
    result = _execute(settings, plan) if execute else ApplyResult()
    if output_format == "json":
        print_json(_plan_json(view, plan, result, execute))
    elif not plan.rates():
        echo(f"Nothing to raise: {_lowest(plan)}.")
    elif execute:
        _print_in_force(plan, result)
    else:
        print_nothing_changed(command_words(plan, roles), config)
    if result.error is not None:
        raise result.error


def _execute(settings: Settings, plan: ApplyPlan) -> ApplyResult:
    """Set the rates and return the result; the failure of a broker does not stop the others."""
    try:
        after = apply_rates(settings, plan.rates(), on_step=print_step) if plan.rates() else {}
    except RatesError as error:
        return ApplyResult(error.in_force, error)
    return ApplyResult(after, plan.unknown_error())


def _lowest(plan: ApplyPlan) -> str:
    qualifier = "that is known " if plan.unknown() else ""
    return (
        f"no rate in force {qualifier}on {broker_names(plan.brokers())} is lower than {mb_per_s(plan.rate_bytes_per_s)}"
    )


def _print_in_force(plan: ApplyPlan, result: ApplyResult) -> None:
    if result.after:
        where = "where it was lower, on" if plan.raise_only else "on"
        rate = mb_per_s(plan.rate_bytes_per_s)
        echo(f"In force: {rate} {where} {broker_names(sorted(result.after))}, read back from each.")


def _plan_json(view: ThrottleView, plan: ApplyPlan, result: ApplyResult, execute: bool) -> dict[str, Any]:
    """Return the plan and its result as a JSON object; ``after`` is null for a broker that was not changed."""
    return {
        "executed": execute,
        "rate_bytes_per_s": plan.rate_bytes_per_s,
        "raise_only": plan.raise_only,
        "brokers": _brokers_json(view, plan, result, plan.brokers()),
        "passed_over": passed_over_json(plan.passed_over),
        "failed": error_json(result.error),
    }


def _brokers_json(
    view: ThrottleView, plan: ApplyPlan, result: ApplyResult, brokers: Sequence[int]
) -> list[dict[str, Any]]:
    return [
        {
            "broker": broker,
            "before": vars(view.of(broker)),
            "after": vars(result.after[broker]) if broker in result.after else None,
            "changes": changes_json(plan.changes, broker),
        }
        for broker in brokers
    ]

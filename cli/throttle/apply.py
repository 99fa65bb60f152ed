"""``headroom throttle apply``: set one rate on brokers, or only raise lower rates to it."""

from __future__ import annotations

import click

from cli.common.changing import execute_option, print_notes, print_nothing_changed, print_step
from cli.common.options import config_option, format_option
from cli.common.output import print_json
from cli.common.parameters import BrokerIds, Rate
from cli.config.load import load_settings
from cli.reassign.journalled import journalled
from cli.throttle.apply_plan import ApplyPlan, ApplyResult, apply_plan
from cli.throttle.apply_view import apply_json, apply_notes, command_words, print_plan, print_result
from cli.throttle.view import ThrottleView, read_view
from cluster.model import BrokerThrottles
from cluster.throttles.broker_rates import RatesError
from cluster.throttles.rates import ROLES, apply_rates
from schemas.config import Settings


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
    result = _execute(settings, view, plan) if execute else ApplyResult(view, plan, executed=False)
    if output_format == "json":
        print_json(apply_json(result))
    elif execute or not plan.rates():
        print_result(result)
    else:
        print_nothing_changed(command_words(plan, roles), config)
    if result.error is not None:
        raise result.error


def _apply_rates(settings: Settings, plan: ApplyPlan) -> dict[int, BrokerThrottles]:
    return journalled(
        settings, "throttle apply", plan.steps(), lambda: apply_rates(settings, plan.rates(), on_step=print_step)
    )


def _execute(settings: Settings, view: ThrottleView, plan: ApplyPlan) -> ApplyResult:
    """Set the rates and return the result; the failure of a broker does not stop the others."""
    try:
        after = _apply_rates(settings, plan) if plan.rates() else {}
    except RatesError as error:
        return ApplyResult(view, plan, executed=True, after=error.in_force, error=error)
    return ApplyResult(view, plan, executed=True, after=after, error=plan.unknown_error())

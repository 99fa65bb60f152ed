"""``headroom throttle apply``: set one rate on brokers, or only raise lower rates to it."""

from __future__ import annotations

import click

from headroom.cli.common.changing import execute_option, print_note, print_notes, print_nothing_changed, print_step
from headroom.cli.common.options import config_option
from headroom.cli.common.outcome import CommandOutcome, in_text, with_format
from headroom.cli.common.parameters import BrokerIds, Rate
from headroom.cli.config.load import load_settings
from headroom.cli.throttle.apply_view import (
    apply_json,
    apply_notes,
    command_words,
    need_notes,
    print_plan,
    print_result,
)
from headroom.cli.throttle.rates import low_rate_option, require_low_rate
from headroom.cluster.live.live_cluster import read_throttles
from headroom.cluster.throttles.rates import ROLES
from headroom.operations.throttles.apply_plan import ApplyResult
from headroom.operations.throttles.applying import ApplyRequest, apply_throttle, plan_throttle
from headroom.operations.throttles.needs.throttle_need import ThrottleNeeds
from headroom.operations.throttles.needs.watch_needs import watch_needs
from headroom.schemas.config import Settings
from headroom.schemas.errors import HeadroomError


@click.command(short_help="Set one throttle rate on brokers, or only raise lower ones to it.")
@config_option
@with_format
@click.option(
    "--rate", type=Rate(), metavar="BYTES_PER_S", help="New leader and follower rate, e.g. 12500000 or 12.5MB."
)
@click.option(
    "--log-dirs",
    type=Rate(),
    metavar="BYTES_PER_S",
    help="New rate of moves between the log directories of a broker; may be given with or without --rate.",
)
@click.option(
    "--lists",
    is_flag=True,
    help="First add running moves to the throttled replica lists, without which a rate limits nothing.",
)
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
@low_rate_option
@execute_option
def apply(
    config: str | None,
    rate: int | None,
    log_dirs: int | None,
    lists: bool,
    brokers: list[int] | None,
    roles: tuple[str, ...],
    raise_only: bool,
    low_rate: bool,
    execute: bool,
) -> CommandOutcome:
    """Set the leader and follower throttle rates of brokers, and read them back until they are in force.

    With --lists a running move that has no throttle gets one: its replicas before the move are added to the leader
    lists, and its adding replicas to the follower lists. Other entries stay, and a list of * stays as it is.

    With --log-dirs the rate of moves between a broker's own log directories is set. It needs no list.

    With --raise-only no rate in force is lowered. For each broker and role, a lower rate is raised, be it the broker's
    own or the cluster default. A higher rate stays, and a broker without a rate stays unlimited.

    A broker that is down is skipped, because only the broker itself can change its rate. The others are set. Run the
    command again when the broker is up.

    \b
    Example:  headroom throttle apply --rate 12.5MB
              headroom throttle apply --rate 12.5MB --brokers 1,2 --raise-only --execute
              headroom throttle apply --rate 12.5MB --brokers 3 --role follower --execute
              headroom throttle apply --rate 12.5MB --lists --execute
              headroom throttle apply --log-dirs 50MB --brokers 3 --execute
    """  # noqa: D301
    if rate is None and (lists or log_dirs is None):
        raise click.UsageError("Give --rate; for moves between log directories, --log-dirs.")
    require_low_rate(low_rate, {"--rate": rate, "--log-dirs": log_dirs})
    settings = load_settings(config)
    view = read_throttles(settings)
    plan = plan_throttle(view, ApplyRequest(rate, brokers, roles, raise_only, log_dirs, lists))
    # Before anything is set, so that it is on the terminal even if the command is killed.
    if in_text():
        print_plan(view, plan)
    print_notes([*apply_notes(settings, view, plan), *need_notes(plan, _needs(settings) if lists else None)])
    result = (
        apply_throttle(settings, view, plan, print_step, print_note)
        if execute
        else ApplyResult(view, plan, executed=False)
    )

    def print_end() -> None:
        if execute or plan.empty():
            print_result(result)
        else:
            print_nothing_changed(command_words(plan, roles), config)

    return CommandOutcome(lambda: apply_json(result), print_end, error=result.error)


def _needs(settings: Settings) -> ThrottleNeeds | None:
    """Return the needs that a running watch knows; None without one. A store that cannot be read stops no throttle."""
    try:
        return watch_needs(settings)
    except HeadroomError:
        return None

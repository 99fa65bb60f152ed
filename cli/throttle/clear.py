"""``headroom throttle clear``: remove throttle rates and lists after a move."""

from __future__ import annotations

import click

from headroom.cli.common.changing import execute_option, print_note, print_notes, print_nothing_changed, print_step
from headroom.cli.common.options import config_option
from headroom.cli.common.outcome import CommandOutcome, in_text, with_format
from headroom.cli.config.load import load_settings
from headroom.cli.throttle.clear_view import clear_json, print_plan, print_result
from headroom.cluster.live.live_cluster import read_throttles
from headroom.operations.journal.owners import owners_or_none
from headroom.operations.throttles.clear_plan import (
    ClearResult,
    clear_notes,
    clear_plan,
    clear_steps,
    owner_notes,
    require_idle,
)
from headroom.operations.throttles.clearing import clear_throttles


@click.command(short_help="Remove throttle rates and lists after a move.")
@config_option
@with_format
@click.option("--rates", "only", flag_value="rates", help="Clear only the rates.")
@click.option("--lists", "only", flag_value="lists", help="Clear only the throttled replica lists.")
@click.option("--cluster-default", is_flag=True, help="Also clear the cluster-wide default rates.")
@click.option("--force", is_flag=True, help="Clear even while a reassignment is running.")
@execute_option
def clear(config: str | None, only: str | None, cluster_default: bool, force: bool, execute: bool) -> CommandOutcome:
    """Remove the brokers' throttle rates and the topics' throttled replica lists, and read back until they are gone.

    Removes the leader and follower rates, and the rate of moves between log directories, where they are set. Refuses
    to run while a reassignment is running.

    A broker that is down is skipped: its rate stays, and is in force when the broker returns. Run the command again
    then.

    \b
    Example:  headroom throttle clear
              headroom throttle clear --execute
    """  # noqa: D301
    settings = load_settings(config)
    view = read_throttles(settings)
    plan = clear_plan(view, only, cluster_default)
    if in_text():
        print_plan(view, plan)
    owners = owners_or_none(settings, print_step)
    by = owner_notes(clear_steps(view, plan), owners, config, moves=bool(view.moving()))
    print_notes([*clear_notes(view, plan), *by])
    # Only with --execute: during a move it may still be looked up what is there to clear.
    if execute and not plan.empty():
        require_idle(view, force)
    result = ClearResult(
        plan, execute, clear_throttles(settings, view, plan, print_step, print_note) if execute else None
    )

    def print_end() -> None:
        if execute or plan.empty():
            print_result(result)
            return
        options = [f"--{only}"] * bool(only) + ["--cluster-default"] * cluster_default + ["--force"] * force
        print_nothing_changed(["throttle", "clear", *options], config)

    return CommandOutcome(lambda: clear_json(result), print_end, error=result.error)

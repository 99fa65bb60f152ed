"""``headroom throttle show|apply|clear``: replication throttles, seen and changed."""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from typing import Any

import click

from cli.config import load_settings
from cli.options import config_option, format_option
from cli.output import mb_per_s, print_json, print_table
from cli.parameters import BrokerIds, Rate
from cli.throttle_plan import (
    ClearPlan,
    apply_warnings,
    brokers_to_set,
    clear_plan,
    clear_warnings,
    require_idle,
)
from cli.throttle_view import ThrottleView, rate_text, read_view, remarks, view_json, view_rows
from cluster.model import BrokerThrottles
from cluster.throttles import apply_rates, clear_lists, clear_rates
from schemas.config import Settings

execute_option = click.option("--execute", is_flag=True, help="Change the cluster; without it, only show the change.")


@click.group(short_help="Show, apply or clear replication throttles.")
def throttle() -> None:
    """Show the replication throttles in force, set their rates, or clear them.

    Nothing is changed without --execute.
    """


@throttle.command(short_help="Show the rates and lists that are set, and what moves.")
@config_option
@format_option
def show(config: str | None, output_format: str) -> None:
    """Show the brokers' throttle rates with where they are set, the topics' throttled replica lists, and what moves.

    \b
    Example:  headroom throttle show
    """  # noqa: D301
    view = read_view(load_settings(config))
    if output_format == "json":
        print_json(view_json(view))
        return
    print_table("", ("what", "leader", "follower", "part in moves"), view_rows(view))
    click.echo()
    for remark in remarks(view):
        click.echo(remark)


@throttle.command(short_help="Set one throttle rate on brokers.")
@config_option
@format_option
@click.option("--rate", type=Rate(), required=True, metavar="BYTES_PER_S", help="New rate, e.g. 12500000 or 12.5MB.")
@click.option("--brokers", type=BrokerIds(), metavar="ID,...", help="Default: all that take part in running moves.")
@execute_option
def apply(config: str | None, output_format: str, rate: int, brokers: list[int] | None, execute: bool) -> None:
    """Set the leader and the follower throttle rate of brokers, and read them back until they are in force.

    \b
    Example:  headroom throttle apply --rate 12.5MB
              headroom throttle apply --rate 12.5MB --brokers 1,2 --execute
    """  # noqa: D301
    settings = load_settings(config)
    view = read_view(settings)
    chosen = brokers_to_set(view, brokers)
    warnings = apply_warnings(settings, view, rate, chosen)
    if output_format == "text":
        _print_apply(view, chosen, rate)
    _warn(warnings)
    after = apply_rates(settings, dict.fromkeys(chosen, rate), on_step=_step) if execute else {}
    if output_format == "json":
        print_json({"executed": execute, "rate_bytes_per_s": rate, "brokers": _changes(view, after, chosen)})
    elif execute:
        click.echo(f"In force: {mb_per_s(rate)} on {_names(chosen)}, read back from each.")
    else:
        _nothing_changed(f"headroom throttle apply --rate {rate} --brokers {','.join(map(str, chosen))}", config)


@throttle.command(short_help="Remove rates and lists once the move is done.")
@config_option
@format_option
@click.option("--rates", "only", flag_value="rates", help="Clear the rates only.")
@click.option("--lists", "only", flag_value="lists", help="Clear the throttled replica lists only.")
@click.option("--cluster-default", is_flag=True, help="Clear the cluster-wide default rates too.")
@click.option("--force", is_flag=True, help="Clear even while a reassignment is running.")
@execute_option
def clear(
    config: str | None, output_format: str, only: str | None, cluster_default: bool, force: bool, execute: bool
) -> None:
    """Remove the brokers' throttle rates and the topics' throttled replica lists, and read back until they are gone.

    Refuses while a reassignment is running.

    \b
    Example:  headroom throttle clear
              headroom throttle clear --execute
    """  # noqa: D301
    settings = load_settings(config)
    view = read_view(settings)
    plan = clear_plan(view, only, cluster_default)
    if output_format == "text":
        _print_clear(view, plan)
    _warn(clear_warnings(view, plan))
    if execute and not plan.empty():
        require_idle(view, force)
        _clear(settings, plan)
    if output_format == "json":
        print_json({"executed": execute, **vars(plan)})
    elif execute and not plan.empty():
        click.echo("Cleared, and read back.")
    elif not plan.empty():
        options = [f"--{only}"] * bool(only) + ["--cluster-default"] * cluster_default + ["--force"] * force
        _nothing_changed(" ".join(["headroom throttle clear", *options]), config)


def _print_apply(view: ThrottleView, brokers: Sequence[int], rate: int) -> None:
    rows = [
        (str(b), rate_text(view.rates[b], "leader"), rate_text(view.rates[b], "follower"), mb_per_s(rate))
        for b in brokers
    ]
    print_table("", ("broker", "leader rate now", "follower rate now", "both then"), rows)
    click.echo()


def _print_clear(view: ThrottleView, plan: ClearPlan) -> None:
    rows = [
        (f"broker {b}", rate_text(view.rates[b], "leader"), rate_text(view.rates[b], "follower")) for b in plan.brokers
    ]
    for topic in plan.topics:
        config = view.snapshot.topic_configs[topic]
        rows.append((f"topic {topic}", config.leader_list or "none", config.follower_list or "none"))
    if rows:
        print_table("", ("to clear", "leader", "follower"), rows)
        click.echo()
    else:
        click.echo("Nothing to clear.")


def _changes(view: ThrottleView, after: Mapping[int, BrokerThrottles], brokers: Sequence[int]) -> list[dict[str, Any]]:
    """Return per broker what was in force, and what is now; null: nothing was changed."""
    return [{"broker": b, "before": vars(view.rates[b]), "after": vars(after[b]) if after else None} for b in brokers]


def _clear(settings: Settings, plan: ClearPlan) -> None:
    if plan.brokers:
        clear_rates(settings, plan.brokers, plan.cluster_default, on_step=_step)
    if plan.topics:
        clear_lists(settings, plan.topics, on_step=_step)


def _names(brokers: Sequence[int]) -> str:
    return f"broker{'s' if len(brokers) > 1 else ''} {', '.join(map(str, brokers))}"


def _step(text: str) -> None:
    click.echo(text, err=True)


def _warn(warnings: Sequence[str]) -> None:
    for warning in warnings:
        click.echo(f"Note: {warning}", err=True)


def _nothing_changed(command: str, config: str | None) -> None:
    where = f" --config {shlex.quote(config)}" if config else ""
    click.echo(f"Nothing was changed. To do it: {command}{where} --execute")

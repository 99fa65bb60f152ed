"""``headroom alerts``: the state of every alert, with acknowledgements and silences, without Spark."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence, Set
from functools import partial
from typing import Any

import click

from headroom.cli.alerts.silences import ack, silence, silences, unsilence
from headroom.cli.alerts.undelivered import print_undelivered, read_undelivered, undelivered_json
from headroom.cli.common.options import config_option, require_options_after
from headroom.cli.common.outcome import CommandOutcome, in_text, with_format
from headroom.cli.common.output import echo, echo_lines
from headroom.cli.config.load import read_settings
from headroom.operations.evaluation import Evaluation, evaluation_text, read_evaluations
from headroom.schemas.alerts import AlertKind
from headroom.schemas.config import Settings
from headroom.schemas.tables import ALERT_EVENTS
from headroom.streaming.clock import now_ms
from headroom.streaming.delta.query import table_url
from headroom.streaming.store.single_instance import running_process
from headroom.streaming.tables.current_alerts import CurrentAlert, as_json, read_current_alerts, suppression_lines

# Of a command whose answer is not that of now.
EXIT_NOT_CURRENT = 3


@click.group(
    invoke_without_command=True,
    subcommand_metavar="[COMMAND [ARGS]...]",
    short_help="Show active alerts; acknowledge or silence them.",
)
@config_option
@with_format
@click.option(
    "--all", "show_all", is_flag=True, help="Also show resolved alerts, including those that cleared before firing."
)
@click.option("--undelivered", is_flag=True, help="Show events that a receiver has not accepted yet, and why.")
@click.option("--kind", type=click.Choice([kind.value for kind in AlertKind]), help="Show alerts of this kind only.")
@click.pass_context
def alerts(
    context: click.Context, config: str | None, show_all: bool, undelivered: bool, kind: str | None
) -> CommandOutcome | None:
    """Show pending and firing alerts, newest first, each with its evidence and the commands that fix it.

    The first line says when the cluster was last evaluated. If no watch evaluates it now, what follows is the state of
    then, and the exit code is 3.

    \b
    Example:  headroom alerts
              headroom alerts --all --kind throttle_below_leader_write --format json
              headroom alerts --undelivered
              headroom alerts ack 46dd --note "raising the throttle"
              headroom alerts silence --cluster orders --for 2h --note "disks are replaced"
    """  # noqa: D301
    if context.invoked_subcommand is not None:
        require_options_after(context, "alerts")
        return None
    settings = read_settings(config)
    return _list_undelivered(settings, kind) if undelivered else _alerts(settings, show_all, kind)


def _list_undelivered(settings: Settings, kind: str | None) -> CommandOutcome:
    """Return the events that a receiver has not accepted. There may be others that are not stored."""
    stored = read_undelivered(settings)
    undelivered = [one for one in stored or [] if kind in (None, one.event.kind)]
    others = len(stored or []) - len(undelivered)
    evaluations = _report_evaluations(settings, {one.event.cluster for one in undelivered})
    return _result(
        settings,
        evaluations,
        stored is not None,
        lambda: undelivered_json(undelivered),
        lambda: print_undelivered(settings, undelivered, others),
    )


def _alerts(settings: Settings, show_all: bool, kind: str | None) -> CommandOutcome:
    """Return the alerts."""
    latest = read_current_alerts(settings)
    shown = [a for a in latest or [] if (show_all or a.is_active) and kind in (None, a.event.kind)]
    # Of an alert that has ended nothing is expected any more.
    evaluations = _report_evaluations(settings, {a.event.cluster for a in shown if a.is_active})
    return _result(
        settings,
        evaluations,
        latest is not None,
        lambda: [as_json(alert) | _evaluation_json(evaluations.get(alert.event.cluster)) for alert in shown],
        lambda: _print_text(shown) if shown else echo(_none_text(latest or [], kind)),
    )


def _result(
    settings: Settings,
    evaluations: Mapping[str, Evaluation],
    is_there: bool,
    as_json: Callable[[], list[dict[str, Any]]],
    print_text: Callable[[], None],
) -> CommandOutcome:
    """Return what is stored; its exit code says whether that is the state of now.

    Args:
        settings: all settings.
        evaluations: last evaluation by cluster.
        is_there: whether there is a table of events.
        as_json: returns it as a JSON array.
        print_text: prints it as text.
    """
    if is_there:
        is_current = all(one.is_current for one in evaluations.values())
        return CommandOutcome(as_json, print_text, exit_code=0 if is_current else EXIT_NOT_CURRENT)
    absent = _no_events_text(settings)
    # Without it, an empty array would read as if all was well.
    note = None if in_text() else partial(echo, absent, err=True)
    return CommandOutcome(list, lambda: echo(absent), note, exit_code=EXIT_NOT_CURRENT)


def _none_text(latest: Sequence[CurrentAlert], kind: str | None) -> str:
    """Return why no alert is shown, and how many of other kinds are active: they must not read as all clear."""
    of_kind = [alert for alert in latest if kind in (None, alert.event.kind)]
    which = "" if kind is None else f" of kind {kind}"
    text = f"No alert{which} was ever raised."
    if of_kind:
        text = f"No alert{which} is pending or firing; {len(of_kind)} in all have ended (--all shows them)."
    others = sum(alert.is_active for alert in latest) - sum(alert.is_active for alert in of_kind)
    return text + (f" Of other kinds {others} are pending or firing (shown without --kind)." if others else "")


def _report_evaluations(settings: Settings, clusters: Set[str]) -> dict[str, Evaluation]:
    """Print when clusters and that of the settings were last evaluated, and return that by cluster."""
    at_ms = now_ms()
    evaluations = read_evaluations(settings, clusters | {settings.cluster.name}, at_ms)
    # A watch that is cut off from the cluster writes no verdict either, and needs another remedy than a dead one.
    is_current = all(one.is_current for one in evaluations)
    process = None if is_current else running_process(settings.store, "alerts")
    for one in evaluations:
        # JSON has it in each alert, but an empty array has no place for it.
        if in_text() or not one.is_current:
            echo(evaluation_text(one, at_ms, process), err=not in_text())
    return {one.cluster: one for one in evaluations}


def _evaluation_json(evaluation: Evaluation | None) -> dict[str, Any]:
    """Return the keys of an alert's cluster: null where nothing was asked, because the alert has ended."""
    return {
        "evaluated_ms": evaluation and evaluation.tick_ms,
        "is_current": evaluation and evaluation.is_current,
    }


for command in (ack, silence, silences, unsilence):
    alerts.add_command(command)


def _print_text(alerts: list[CurrentAlert]) -> None:
    from headroom.alerts.text.terminal import render_event

    for number, alert in enumerate(alerts):
        if number:
            echo()
        echo_lines(render_event(alert.event, alert.fired))
        for line in suppression_lines(alert):
            echo(f"  {line}")


def _no_events_text(settings: Settings) -> str:
    url = table_url(settings.store.path, ALERT_EVENTS.path)
    return (
        f"No alert is known: {url} is not there. `headroom watch` makes it before it evaluates. Start that with the "
        "same settings, or correct store.path."
    )

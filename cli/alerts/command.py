"""``headroom alerts``: where every alert stands, and what people say of alerts, without Spark."""

from __future__ import annotations

import click
from click.core import ParameterSource

from alerts.text.formatting import moment
from cli.alerts.silences import ack, silence, silences, unsilence
from cli.alerts.undelivered import show_undelivered
from cli.common.options import config_option, format_option
from cli.common.output import echo, echo_lines, print_json
from cli.config.load import read_settings
from schemas.alerts import AlertKind
from schemas.config import Settings
from schemas.tables import ALERT_EVENTS
from streaming.delta.query import table_url
from streaming.tables.current_alerts import CurrentAlert, as_json, read_current_alerts


@click.group(
    invoke_without_command=True,
    subcommand_metavar="[COMMAND [ARGS]...]",
    short_help="Show the alerts that stand; acknowledge or silence them.",
)
@config_option
@format_option
@click.option(
    "--all", "show_all", is_flag=True, help="Show those that have ended too: put right, or over before they fired."
)
@click.option("--undelivered", is_flag=True, help="Show the events that a receiver has not got, and why.")
@click.option("--kind", type=click.Choice([kind.value for kind in AlertKind]), help="Show alerts of this kind only.")
@click.pass_context
def alerts(
    context: click.Context, config: str | None, output_format: str, show_all: bool, undelivered: bool, kind: str | None
) -> None:
    """Show the alerts that are pending or firing, newest first, each with its evidence and the commands that put it
    right.

    \b
    Example:  headroom alerts
              headroom alerts --all --kind throttle_below_leader_write --format json
              headroom alerts --undelivered
              headroom alerts ack 46dd --note "raising the throttle"
              headroom alerts silence --cluster orders --for 2h --note "disks are replaced"
    """  # noqa: D301
    if context.invoked_subcommand is not None:
        _require_options_after(context, context.invoked_subcommand)
        return
    settings = read_settings(config)
    if undelivered:
        show_undelivered(settings, output_format, kind)
        return
    latest = read_current_alerts(settings)
    shown = [alert for alert in latest or [] if _wanted(alert, show_all, kind)]
    if output_format == "json":
        print_json([as_json(alert) for alert in shown])
    elif shown:
        _print_text(shown)
    else:
        echo(_nothing(settings, latest))


for command in (ack, silence, silences, unsilence):
    alerts.add_command(command)


def _require_options_after(context: click.Context, command: str) -> None:
    """Refuse options before a command's name: they would quietly not hold for it."""
    given = [name for name in context.params if context.get_parameter_source(name) is ParameterSource.COMMANDLINE]
    if given:
        raise click.UsageError(f"Options go after the command: headroom alerts {command} ...", context)


def _wanted(alert: CurrentAlert, show_all: bool, kind: str | None) -> bool:
    return (show_all or alert.stands) and kind in (None, alert.event.kind)


def _print_text(alerts: list[CurrentAlert]) -> None:
    from alerts.text.terminal import render_event

    for number, alert in enumerate(alerts):
        if number:
            echo()
        echo_lines(render_event(alert.event, alert.fired))
        for line in _said(alert):
            echo(line)


def _said(alert: CurrentAlert) -> list[str]:
    """Return the lines of what people say of an alert."""
    lines = []
    if alert.ack is not None:
        note = f": {alert.ack.note}" if alert.ack.note else ""
        lines.append(f"  Acknowledged by {alert.ack.by} at {moment(alert.ack.mark_ms)}{note}")
    if alert.silenced_until_ms is not None:
        lines.append(f"  Silenced until {moment(alert.silenced_until_ms)}")
    return lines


def _nothing(settings: Settings, latest: list[CurrentAlert] | None) -> str:
    if latest is None:
        url = table_url(settings.store.path, ALERT_EVENTS.path)
        return f"No alert yet: {url} is not there. `headroom watch` makes it; start that first, with the same settings."
    told = f"No alert is pending or firing; {len(latest)} in all have ended (--all shows them)."
    return told if latest else "No alert was ever raised."

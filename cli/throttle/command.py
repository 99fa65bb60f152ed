"""``headroom throttle show|apply|clear``: show and change replication throttles."""

from __future__ import annotations

import click

from cli.common.options import config_option, format_option
from cli.common.output import echo, print_json, print_table
from cli.config.load import load_settings
from cli.throttle.apply import apply
from cli.throttle.clear import clear
from cli.throttle.expected_finish import finish_json, finish_note
from cli.throttle.view import notes, read_view, view_header, view_json, view_rows


@click.group(short_help="Show, apply or clear replication throttles.")
def throttle() -> None:
    """Show the replication throttles in force, set their rates, or clear them.

    Nothing is changed without --execute.
    """


@throttle.command(short_help="Show throttle rates, throttled replica lists, and running moves.")
@config_option
@format_option
def show(config: str | None, output_format: str) -> None:
    """Show the brokers' throttle rates and where they are set, the throttled replica lists, and the running moves.

    If a rate for moves between the log directories of a broker is set, it has a column too. While headroom watch runs,
    the last line predicts when the moves finish at the throttles in force.

    \b
    Example:  headroom throttle show
    """  # noqa: D301
    settings = load_settings(config)
    view = read_view(settings)
    if output_format == "json":
        print_json({**view_json(view), "expected_finish": finish_json(settings) if view.moving() else None})
        return
    print_table("", view_header(view), view_rows(view))
    echo()
    for note in notes(view):
        echo(note)
    if view.moving():
        echo(finish_note(settings))


throttle.add_command(apply)
throttle.add_command(clear)

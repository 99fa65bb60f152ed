"""``headroom throttle show|apply|clear``: show and change replication throttles."""

from __future__ import annotations

from typing import Any

import click

from headroom.cli.common.changing import print_step
from headroom.cli.common.options import config_option
from headroom.cli.common.outcome import CommandOutcome, with_format
from headroom.cli.common.output import echo, print_table
from headroom.cli.config.load import load_settings
from headroom.cli.throttle.apply import apply
from headroom.cli.throttle.clear import clear
from headroom.cli.throttle.show.text_view import print_left_behind, print_needs, print_without_effect
from headroom.cluster.live.live_cluster import read_throttles
from headroom.cluster.live.throttle_state import ThrottleState
from headroom.cluster.log_dirs.describe import LogDirsReading
from headroom.operations.journal.owners import owners_or_none
from headroom.operations.throttles.expected_finish import expected_finish, finish_note
from headroom.operations.throttles.left_behind import left_behind
from headroom.operations.throttles.needs.directory_needs import read_limited_log_dirs
from headroom.operations.throttles.needs.needs import read_needs
from headroom.operations.throttles.throttle_view import notes, view_header, view_json, view_rows
from headroom.operations.throttles.without_effect import throttles_without_effect
from headroom.schemas.config import Settings
from headroom.schemas.errors import HeadroomError
from headroom.streaming.clock import now_ms


@click.group(short_help="Show, apply or clear replication throttles.")
def throttle() -> None:
    """Show the replication throttles in force, set their rates, or clear them.

    Nothing is changed without --execute.
    """


@throttle.command(short_help="Show throttle rates, throttled replica lists, and running moves.")
@config_option
@with_format
@click.option(
    "--measure/--no-measure",
    default=True,
    show_default=True,
    help="Measure write rates for some seconds if something moves and no headroom watch is running.",
)
def show(config: str | None, measure: bool) -> CommandOutcome:
    """Show the brokers' throttle rates and where they are set, the throttled replica lists, and the running moves.

    If a rate for moves between the log directories of a broker is set, it has a column too. While something moves,
    the required rate of each broker and role is shown with the partitions that need it. It comes from the newest tick
    of headroom watch; if none is running, write rates are measured. Rates that are set but limit nothing of a move
    are named with the reason, the rate in force, and the observed one. Rates and lists that no running move uses are
    shown as left behind.

    While headroom watch runs, the last line predicts when the moves finish at the throttles in force.

    \b
    Example:  headroom throttle show
              headroom throttle show --no-measure --format json
    """  # noqa: D301
    settings = load_settings(config)
    view = read_throttles(settings)
    reading = _read_log_dirs(settings, view)
    needs = read_needs(settings, view, reading, measure, print_step)
    without_effect = throttles_without_effect(view, needs)
    # Without the journal the owner of a rate is unknown, but the rate is shown all the same.
    left = left_behind(view, reading, owners_or_none(settings, print_step))

    def as_json() -> dict[str, Any]:
        for problem in needs.problems:
            echo(problem, err=True)
        finish = finish_json(settings) if view.moving() else None
        return {
            **view_json(view),
            "expected_finish": finish,
            "needs": needs.as_json(),
            "without_effect": [throttle.as_json() for throttle in without_effect],
            "left_behind": left.as_json(),
        }

    def print_text() -> None:
        print_table("", view_header(view), view_rows(view))
        echo()
        for note in notes(view, config):
            echo(note)
        print_needs(needs, now_ms())
        print_without_effect(without_effect)
        print_left_behind(left)
        if view.moving():
            echo(finish_note(settings))

    return CommandOutcome(as_json, print_text)


def _read_log_dirs(settings: Settings, view: ThrottleState) -> LogDirsReading:
    """Return the log directories of brokers with a rate for them; with an error for each if none can be reached."""
    try:
        return read_limited_log_dirs(settings, view)
    except HeadroomError as error:
        return LogDirsReading({}, dict.fromkeys(view.log_dirs(), error))


def finish_json(settings: Settings) -> dict[str, Any] | None:
    """Return the expected finish as a JSON object; None if unknown, with a message on stderr if a table is broken."""
    try:
        finish = expected_finish(settings)
    except HeadroomError as error:
        echo(f"expected_finish is null: {error}", err=True)
        return None
    return None if finish is None else dict(vars(finish))


throttle.add_command(apply)
throttle.add_command(clear)

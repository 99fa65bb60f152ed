"""``headroom migration shield`` and ``cancel``: no more calls to the origin, and partitions that leave a migration."""

from __future__ import annotations

from typing import Any

import click

from headroom.cli.common.changing import error_json, execute_option_of, print_note, print_nothing_changed
from headroom.cli.common.logs import silence_clients
from headroom.cli.common.options import config_option
from headroom.cli.common.outcome import CommandOutcome, with_format
from headroom.cli.common.output import echo, partition_json
from headroom.cli.config.load import load_settings
from headroom.cli.migration.options import name_option, print_rows
from headroom.operations.migration.running.changing import MigrationChange, cancel_migration, shield_migration
from headroom.schemas.text import shell_quoted


@click.command(short_help="Stop all calls to the origin of a migration, because they hang; or allow them again.")
@config_option
@with_format
@name_option
@click.option("--off", is_flag=True, help="Allow calls again.")
@execute_option_of("Write it to headroom.migrations; without it, only show the change.")
def shield(config: str | None, name: str, off: bool, execute: bool) -> CommandOutcome:
    """Stop all calls of Headroom to the origin, about the partitions of one migration, or allow them again with --off.

    Use it while the origin's brokers hang: each call would wait for its timeout. The commands, the collector and the
    alerts then know nothing new of the origin, and show shielded. What was agreed stays in force, and so do the
    routing clients. A run that is under way ends; run it again after --off, or with --ignore-origin.

    \b
    Example:  headroom migration shield --name move --execute
              headroom migration shield --name move --off --execute
    """  # noqa: D301
    silence_clients()
    settings = load_settings(config)
    change = shield_migration(settings, name, not off, execute, print_note)
    words = ["migration", "shield", "--name", shell_quoted(name), *["--off"] * off]
    after = "the origin may be called" if off else "shielded: nothing calls the origin"
    return _outcome(change, after, words, config)


@click.command(short_help="Withdraw the planned partitions of a migration; what is in use stays.")
@config_option
@with_format
@name_option
@execute_option_of("Withdraw them; without it, only show them.")
def cancel(config: str | None, name: str, execute: bool) -> CommandOutcome:
    """Withdraw the partitions of a migration that has not started: their records are removed from headroom.migrations.

    Clients then use the origin alone. A partition whose target is in use is refused, because clients have offsets there
    that would jump back. Bring it to its end with headroom migration run. Topics that the run created stay.

    \b
    Example:  headroom migration cancel --name move
              headroom migration cancel --name move --execute
    """  # noqa: D301
    silence_clients()
    settings = load_settings(config)
    change = cancel_migration(settings, name, execute, print_note)
    return _outcome(change, "withdrawn", ["migration", "cancel", "--name", shell_quoted(name)], config)


def _outcome(change: MigrationChange, after: str, words: list[str], config: str | None) -> CommandOutcome:
    def print_text() -> None:
        rows = [
            (str(name), one.status, after if name in change.after else change.refused.get(name, "as it is"))
            for name, one in change.before.items()
        ]
        print_rows(f"Migration {change.migration}", ("partition", "status", "afterwards"), rows)
        echo()
        if change.executed:
            echo(f"Changed: {len(change.after):,} of {len(change.before):,} partitions.")
        elif not change.after:
            echo("Nothing is to be changed.")
        else:
            print_nothing_changed(words, config)

    def as_json() -> dict[str, Any]:
        return {
            "migration": change.migration,
            "executed": change.executed,
            "changed": [partition_json(name) for name in change.after],
            "refused": [{**partition_json(name), "reason": why} for name, why in change.refused.items()],
            "failed": error_json(change.error()),
        }

    return CommandOutcome(as_json, print_text, error=change.error())

"""Options and texts that the commands of ``headroom migration`` share."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Any

import click

from headroom.cli.common.output import console, echo, print_first_rows
from headroom.cli.common.progress import ProgressView
from headroom.schemas.migrations import MigrationMethod
from headroom.schemas.text.amounts import UNKNOWN

# Rows of a table on a terminal; JSON has all.
_MAX_ROWS = 60


def require_names(context: click.Context, parameter: click.Parameter, value: str | tuple[str, ...]) -> Any:
    """Return names of migrations or routers, which are any text but none, and without line breaks.

    Raises:
        click.BadParameter: one is none.
    """
    for name in (value,) if isinstance(value, str) else value:
        if not name.strip() or not name.isprintable():
            raise click.BadParameter(f"{name!r} is not a name: it is empty, or has a line break.", context, parameter)
    return value


group_option = click.option("--group", required=True, metavar="NAME", help="Consumer group.")
name_option = click.option(
    "--name", required=True, metavar="NAME", callback=require_names, help="Name of the migration."
)
copied_option = click.option(
    "--method",
    type=click.Choice([MigrationMethod.MIRRORED.value, MigrationMethod.LINKED.value]),
    default=MigrationMethod.MIRRORED.value,
    show_default=True,
    help="How the target gets its records: mirrored, by MirrorMaker 2 or another mirror; linked, with the same "
    "offsets.",
)
exact_option = click.option(
    "--exact",
    is_flag=True,
    help="Look for the group's next record on the target, by timestamp, key, value and the records that follow it.",
)


def progress_view() -> ProgressView:
    """Return the progress of a command, on standard error."""
    return ProgressView(console(sys.stderr))


def count_text(count: int | None) -> str:
    """Return a number of records or an offset as text; ``unknown`` for None."""
    return UNKNOWN if count is None else f"{count:,}"


def print_rows(title: str, header: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    """Print the first rows of a table, and how many there are besides."""
    echo()
    print_first_rows(title, header, rows, _MAX_ROWS)

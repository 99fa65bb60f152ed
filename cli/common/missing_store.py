"""The store that is not there: what a command does not find in it is not known to be absent."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from headroom.cli.common.output import echo, print_json
from headroom.streaming.delta.locations import is_missing

# Of a command whose answer is not that of now.
EXIT_NOT_CURRENT = 3


def exit_if_missing(store_path: str, unknown: str, output_format: str, result: Any) -> None:
    """End the command with exit code 3 and a line on standard error if the store is not there.

    Args:
        store_path: ``store.path``.
        unknown: what is not known without it.
        output_format: "text", or "json" to print the result too.
        result: result of the command from a store with no rows.
    """
    if not is_missing(store_path):
        return
    if output_format == "json":
        print_json(result)
    place = f"{store_path} (here {Path(store_path).absolute()})" if not Path(store_path).is_absolute() else store_path
    echo(f"headroom: the store {place} is not there, so {unknown}. Correct store.path, if there was one.", err=True)
    click.get_current_context().exit(EXIT_NOT_CURRENT)

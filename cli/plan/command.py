"""``headroom plan``: estimate a planned reassignment before anything moves."""

from __future__ import annotations

from pathlib import Path

import click

from cli.common.options import config_option, format_option


@click.command(short_help="Estimate a planned reassignment: throttle, time, and what would make it fail.")
@click.argument("file", type=click.Path(path_type=Path, dir_okay=False), required=False)
@config_option
@format_option
def plan(file: Path | None, config: str | None, output_format: str) -> None:
    """Estimate the reassignment in FILE, whose format is that of kafka-reassign-partitions.sh, before anything moves.

    Nothing is changed.

    \b
    Example:  headroom plan move.json
    """  # noqa: D301

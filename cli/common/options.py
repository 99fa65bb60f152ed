"""Options shared by many commands."""

from __future__ import annotations

import click

from cli.common.parameters import Duration

config_option = click.option(
    "--config",
    "config",
    metavar="FILE",
    help="Settings file; default: headroom.toml in the working directory, if it exists. Environment variables override "
    "it.",
)

configs_option = click.option(
    "--config",
    "configs",
    metavar="FILE",
    multiple=True,
    help="Settings file; default: headroom.toml in the working directory, if it exists. Repeat it for each further "
    "cluster; all clusters share one ticks topic.",
)

format_option = click.option(
    "--format",
    "output_format",
    type=click.Choice(["text", "json"]),
    default="text",
    show_default=True,
    help="Output format.",
)

# A year. A longer duration is a typing error.
MAX_DURATION_S = 366 * 86_400.0

for_option = click.option(
    "--for",
    "seconds",
    type=Duration(MAX_DURATION_S),
    metavar="SECONDS",
    help="Stop after this time, such as 90 or 10m; default: run until stopped.",
)

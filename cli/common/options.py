"""Options that many commands share."""

from __future__ import annotations

import click

from cli.common.parameters import Duration

config_option = click.option(
    "--config",
    "config",
    metavar="FILE",
    help="Settings file; default: headroom.toml in the working directory, if there. The environment wins over it.",
)

configs_option = click.option(
    "--config",
    "configs",
    metavar="FILE",
    multiple=True,
    help="Settings file; default: headroom.toml in the working directory, if there. Give it again for each further "
    "cluster; the ticks of all go to one topic.",
)

format_option = click.option(
    "--format",
    "output_format",
    type=click.Choice(["text", "json"]),
    default="text",
    show_default=True,
    help="How to print the result.",
)

# A year, a longer time is a typing error.
_LONGEST_S = 366 * 86_400.0

for_option = click.option(
    "--for",
    "seconds",
    type=Duration(_LONGEST_S),
    metavar="SECONDS",
    help="Stop after this long, such as 90 or 10m; without it, go on.",
)

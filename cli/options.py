"""Options that many commands share."""

from __future__ import annotations

import click

config_option = click.option(
    "--config",
    "config",
    metavar="FILE",
    help="Settings; default: headroom.toml in the working directory if it is there, and the environment.",
)

configs_option = click.option(
    "--config",
    "configs",
    metavar="FILE",
    multiple=True,
    help="Settings; default as elsewhere. Given again for further clusters, whose ticks go to the same topic.",
)

format_option = click.option(
    "--format",
    "output_format",
    type=click.Choice(["text", "json"]),
    default="text",
    show_default=True,
    help="How to print the result.",
)

"""Options shared by many commands."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from dataclasses import fields
from typing import Any

import click
from click.core import ParameterSource

from headroom.cli.common.parameters import Duration

# A command, or the function that becomes one and returns its result.
Command = Callable[..., Any]
# Key of the format that a command was asked for, in the values that click's contexts share.
OUTPUT_FORMAT = "headroom.output_format"

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


def _note_format(context: click.Context, _parameter: click.Parameter, value: str) -> str:
    context.meta[OUTPUT_FORMAT] = value
    return value


format_option = click.option(
    "--format",
    "output_format",
    callback=_note_format,
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

with_parent_option = click.option(
    "--with-parent", is_flag=True, help="Stop when the process that started this one ends."
)


def require_options_after(context: click.Context, group: str) -> None:
    """Raise a usage error for options before a subcommand's name, which would have no effect on it.

    Args:
        context: context of the group, which runs without a subcommand too.
        group: name of the group.
    """
    if any(context.get_parameter_source(name) is ParameterSource.COMMANDLINE for name in context.params):
        text = f"Options go after the command: headroom {group} {context.invoked_subcommand} ..."
        raise click.UsageError(text, context)


def option_group(options: Sequence[Callable[[Any], Any]], values: type[Any], name: str) -> Callable[[Command], Command]:
    """Return a decorator that adds options to a command.

    Args:
        options: the options, in the order of the help.
        values: dataclass with a field for each of them.
        name: argument of the command that gets their values.
    """

    def decorate(command: Command) -> Command:
        @functools.wraps(command)
        def with_options(**given: Any) -> Any:
            own = {field.name: given.pop(field.name) for field in fields(values)}
            return command(**{name: values(**own)}, **given)

        for option in reversed(options):
            with_options = option(with_options)
        return with_options

    return decorate

"""Options of a group on the command line: the command that takes them, and the text that gives them again."""

from __future__ import annotations

import shlex
from collections.abc import Callable
from dataclasses import Field, fields
from typing import Any, TypeVar

import click

from benchmarks.options.fields import HELP, KIND

T = TypeVar("T")


def command(name: str, options: type[T], run: Callable[[T], None], help_text: str, question: str = "") -> click.Command:
    """Return a command with an option for each field of a dataclass.

    Args:
        name: name of the command.
        options: the dataclass.
        run: gets the options that were given.
        help_text: help of the command.
        question: its line in a list of commands.
    """

    def callback(**values: Any) -> None:
        run(options(**values))

    parameters: list[click.Parameter] = [_click_option(one) for one in fields(options)]  # type: ignore[arg-type]
    return click.Command(name, callback=callback, params=parameters, help=help_text, short_help=question)


def _click_option(one: Field[Any]) -> click.Option:
    name, help_text = _name(one), one.metadata[HELP]
    if one.default is False:
        return click.Option([name], is_flag=True, help=help_text)
    default = None if one.default is None else value_text(one.default)
    return click.Option([name], type=one.metadata[KIND], default=default, show_default=bool(default), help=help_text)


def options_text(options: object) -> str:
    """Return the options that differ from their defaults as text of a command line; empty if none does."""
    words: list[str] = []
    for one in fields(options):  # type: ignore[arg-type]
        value = getattr(options, one.name)
        if value != one.default:
            words += [_name(one)] if value is True else [_name(one), value_text(value)]
    return shlex.join(words)


def _name(one: Field[Any]) -> str:
    return "--" + one.name.replace("_", "-")


def value_text(value: Any) -> str:
    """Return a value as text of a command line."""
    if isinstance(value, tuple):
        return ",".join(map(value_text, value))
    return str(value).removesuffix(".0") if isinstance(value, float) else str(value)

"""Outcomes of commands: printed as text or JSON in one place, before the error or the exit code that they end with."""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import click

from headroom.cli.common.options import OUTPUT_FORMAT, Command, format_option
from headroom.cli.common.output import print_json, print_json_line


@dataclass(frozen=True)
class CommandOutcome:
    """Outcome of a command.

    Attributes:
        as_json: returns its result as a JSON value.
        print_text: prints its result as text; None if the command has printed it.
        print_notes: prints on standard error what follows it in both formats; None if nothing does.
        error: with what the command ends after it, which shows what was done before; None if it succeeded.
        exit_code: exit code without an error.
        json_in_one_line: whether the JSON value is printed in one line.
    """

    as_json: Callable[[], Any]
    print_text: Callable[[], None] | None
    print_notes: Callable[[], object] | None = None
    error: Exception | None = None
    exit_code: int = 0
    json_in_one_line: bool = False


def in_text() -> bool:
    """Return whether the current command prints text, and not one JSON value at its end."""
    return bool(click.get_current_context().meta[OUTPUT_FORMAT] == "text")


def with_format(command: Callable[..., CommandOutcome | None]) -> Command:
    """Add ``--format`` to a command, and print the outcome that it returns; None if a subcommand has one."""

    @format_option
    @functools.wraps(command)
    def run(*args: Any, output_format: str, **options: Any) -> None:
        result = command(*args, **options)
        if result is None:
            return
        if output_format == "json":
            (print_json_line if result.json_in_one_line else print_json)(result.as_json())
        elif result.print_text is not None:
            result.print_text()
        if result.print_notes is not None:
            result.print_notes()
        # After the result, which shows what was done before the error.
        if result.error is not None:
            raise result.error
        if result.exit_code:
            click.get_current_context().exit(result.exit_code)

    return run

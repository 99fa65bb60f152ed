"""Shared by commands that change a cluster: ``--execute``, notes, steps, and the command that makes the change."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from typing import Any

import click

from headroom.alerts.recommendations.commands import changing_command
from headroom.cli.common.options import Command
from headroom.cli.common.output import echo
from headroom.cli.common.streams import lasting_output
from headroom.schemas.errors import HeadroomError


def _outlive_reader(context: click.Context, _parameter: click.Parameter, execute: bool) -> bool:
    if execute:
        context.with_resource(lasting_output())
    return execute


def execute_option_of(help_text: str) -> Callable[[Command], Command]:
    """Return the option ``--execute``, with which a command runs to its end although nobody reads its output."""
    return click.option("--execute", is_flag=True, callback=_outlive_reader, help=help_text)


execute_option = execute_option_of("Change the cluster; without it, only show the change.")


def require_execute(execute: bool, yes: bool, wait: bool) -> None:
    """Raise a usage error for options that have no effect without ``--execute``."""
    # A cron job without --execute would change nothing and report success.
    if (yes or wait) and not execute:
        raise click.UsageError(f"{'--yes' if yes else '--wait'} has no effect without --execute.")


def require_answer(execute: bool, yes: bool, before: str = "before the first batch") -> None:
    """Raise a usage error if the command would ask and nobody can answer.

    Args:
        execute: whether the command changes the cluster.
        yes: whether it does not ask.
        before: when it asks.
    """
    # From a pipe, the question would take a line that was meant for something else as its answer.
    if execute and not yes and not at_terminal():
        raise click.UsageError(f"--execute asks {before}; without a terminal, give --yes too.")


def at_terminal() -> bool:
    """Return whether standard input is a terminal, so that the command can ask."""
    return sys.stdin.isatty()


def print_step(text: str) -> None:
    """Print the step that is being executed, on standard error."""
    # Standard output is for the result, which another program may read as JSON.
    echo(text, err=True)


def print_note(text: str) -> None:
    """Print a note in one line on standard error."""
    echo(f"Note: {text}", err=True)


def print_notes(notes: Sequence[str]) -> None:
    """Print notes, one per line, on standard error."""
    for note in notes:
        print_note(note)


def print_nothing_changed(words: Sequence[str], config: str | None) -> None:
    """Print the command that makes the change.

    Args:
        words: words of the command after ``headroom``, without settings file and ``--execute``.
        config: settings file; the default one if None.
    """
    echo(f"Nothing was changed. To do it: {changing_command(words, config)}")


def error_json(error: HeadroomError | None) -> dict[str, Any] | None:
    """Return an error as a JSON object; None if there was none."""
    return None if error is None else {"subject": error.subject, "rule": error.rule, "remedy": error.remedy}


def passed_over_json(passed_over: dict[int, str]) -> list[dict[str, Any]]:
    """Return the brokers that a command skips, with the reason, as a JSON array."""
    return [{"broker": broker, "reason": reason} for broker, reason in sorted(passed_over.items())]

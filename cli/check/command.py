"""``headroom check``: connections, permissions and metrics, with a remedy for each problem."""

from __future__ import annotations

import click
from rich.text import Text

from headroom.cli.common.options import config_option
from headroom.cli.common.outcome import CommandOutcome, with_format
from headroom.cli.common.output import echo, print_table
from headroom.cli.config.load import load_settings
from headroom.operations.check.result import Check, CheckStatus
from headroom.operations.check.run_checks import run_checks

_STYLES = {CheckStatus.OK: "green", CheckStatus.FAILED: "bold red", CheckStatus.UNKNOWN: "yellow"}


@click.command(short_help="Check connections, permissions and metrics; suggest a fix for each problem.")
@config_option
@with_format
def check(config: str | None) -> CommandOutcome:
    """Check everything that Headroom needs, and suggest a fix for each problem. Changes nothing.

    Checks Java, jars, memory, cores, the store, the receivers of alerts, the ticks topic and every broker's metrics.
    Connections to Kafka and permissions are checked with both clients that Headroom uses. No receiver is notified. Exit
    code 1 if a check answers no.

    \b
    Example:  headroom check --config headroom.toml
    """  # noqa: D301
    checks = list(run_checks(load_settings(config)))
    return CommandOutcome(
        lambda: [{**vars(row), "answer": row.answer.value} for row in checks],
        lambda: _print_text(checks),
        exit_code=any(row.answer is CheckStatus.FAILED for row in checks),
    )


def _print_text(checks: list[Check]) -> None:
    rows = [(row.name, Text(row.answer.value, style=_STYLES[row.answer]), row.found, row.remedy) for row in checks]
    print_table("", ("what", "answer", "found", "remedy"), rows)
    count = {answer: sum(row.answer is answer for row in checks) for answer in CheckStatus}
    echo()
    echo(f"{count[CheckStatus.OK]} ok, {count[CheckStatus.FAILED]} no, {count[CheckStatus.UNKNOWN]} unknown.")

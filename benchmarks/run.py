"""``python -m benchmarks.run``: measures groups, prints their figures, and stores them in results.json."""

from __future__ import annotations

import logging
import os
import signal
import sys
import time
from collections.abc import Iterable, Sequence
from datetime import datetime, timezone
from typing import Any

import click

from benchmarks import report
from benchmarks.catalogue import GROUPS, BenchGroup
from benchmarks.options.command import command, options_text
from benchmarks.options.replaced_variables import refuse_variables
from benchmarks.results import RESULTS, Figure, Origin, commit, machine, write
from headroom.cli.common.output import print_table
from headroom.schemas.environment import OF_MACHINE, without_settings
from headroom.schemas.errors import HeadroomError

# A group with the options of its run.
Planned = tuple[BenchGroup[Any], Any]


@click.group(invoke_without_command=True, context_settings={"max_content_width": 120})
@click.option("--only", metavar="GROUP", type=click.Choice(list(GROUPS)), help="Run this group with its defaults.")
@click.pass_context
def run(context: click.Context, only: str | None) -> None:
    """Measure all groups, or one; print the figures, write them to benchmarks/results.json and docs/performance.md.

    \b
    Examples:
      python -m benchmarks.run                                all groups, with their defaults
      python -m benchmarks.run scale --partitions 200000      one group
      python -m benchmarks.run scale --help                   its question and its options
    """  # noqa: D301
    refuse_variables(os.environ)
    if context.invoked_subcommand is None:
        groups = GROUPS.values() if only is None else [GROUPS[only]]
        measure_groups([(group, group.options()) for group in groups])
    elif only is not None:
        raise click.UsageError(f"--only {only} and {context.invoked_subcommand} both name a group; leave out one")


def _add_command(group: BenchGroup[Any]) -> None:
    def measure_one(options: Any) -> None:
        measure_groups([(group, options)])

    run.add_command(command(group.name, group.options, measure_one, _help(group), group.question))


def _help(group: BenchGroup[Any]) -> str:
    return f"{group.question}\n\nTime: {group.time_text}. How it measures: docs/performance.md#{group.name}"


for _group in GROUPS.values():
    _add_command(_group)


def measure_groups(planned: Iterable[Planned]) -> None:
    """Measure groups one after another, and exit with code 1 if one failed."""
    # kafka-python logs every lost connection to a broker, and benchmarks kill brokers.
    logging.getLogger("kafka").setLevel(logging.CRITICAL)
    # `with` blocks stop brokers and child processes, so a SIGTERM must unwind them too.
    signal.signal(signal.SIGTERM, _interrupt)
    machine_text = machine()
    click.echo(f"Machine: {machine_text}")
    # Those of the environment win over the files of clusters that are measured.
    with without_settings(but=OF_MACHINE):
        failed = [group.name for group, options in planned if not _run_group(group, options, machine_text)]
    if failed:
        click.echo(f"Failed: {', '.join(failed)}", err=True)
        sys.exit(1)


def _run_group(group: BenchGroup[Any], options: Any, machine_text: str) -> bool:
    """Measure a group, store its figures, and return whether that succeeded."""
    click.echo(f"\n== {group.name}")
    began = time.monotonic()

    def on_progress(text: str) -> None:
        click.echo(f"{time.monotonic() - began:7.1f} s  {text}")

    try:
        figures = group.measure(on_progress, options)
    except HeadroomError as error:
        on_progress(f"failed: {error}")
        return False
    date = datetime.now(timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ")
    write(figures, Origin(make_command(group.name, options), machine_text, date, commit()))
    report.write(GROUPS)
    _print(figures)
    return True


def _print(figures: Sequence[Figure]) -> None:
    rows = [(f.name, f"{f.value:.3f}", f.unit, str(f.n)) for f in figures]
    click.echo()
    print_table("", ("name", "value", "unit", "n"), rows)
    click.echo(f"Stored in {RESULTS}")


def make_command(name: str, options: object) -> str:
    """Return the command that measures a group with the same options again."""
    given = options_text(options)
    return f'make bench ONLY={name} OPTIONS="{given}"' if given else f"make bench ONLY={name}"


def _interrupt(_number: int, _frame: Any) -> None:
    raise KeyboardInterrupt


if __name__ == "__main__":
    run()

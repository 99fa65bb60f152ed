"""``python -m benchmarks.run``: measures group by group, prints what came out, and keeps it in results.json."""

from __future__ import annotations

import logging
import os
import signal
import sys
import time
from collections.abc import Sequence
from datetime import datetime, timezone
from typing import Any

import click

from benchmarks import report
from benchmarks.catalogue import GROUPS
from benchmarks.results import RESULTS, Figure, Origin, commit, machine, write
from cli.common.output import print_table
from schemas.errors import HeadroomError


@click.command()
@click.option("--only", type=click.Choice(list(GROUPS)), help="Run this group alone.")
def run(only: str | None) -> None:
    """Measure on real brokers, print the figures, write them to benchmarks/results.json and docs/performance.md.

    Shorter runs by environment: BENCH_SWITCHES, BENCH_STARTS, BENCH_MOVES, BENCH_SITUATIONS, BENCH_MEMORY_S;
    BENCH_FIRST_MOVE and BENCH_FIRST_SITUATION begin the groups finish and smallest later, to measure them in parts;
    BENCH_MEMORY_TICK_S sets the pace of the group memory; BENCH_PARTITIONS the sizes of the groups scale and standalone
    (its first) and BENCH_REPLICAS those of the group sources, by commas; BENCH_DAYS, BENCH_DAY_TICKS and
    BENCH_HOUR_TICKS the simulated time of the group tables; BENCH_FAULTS, BENCH_FAULT_S and BENCH_HEALTHY_S the
    faults, their greatest length and the time of healthy moves of the group precision, and BENCH_STOCK_FOR_RATIO how
    far the times of its stock rules are shortened; BENCH_SCENES and BENCH_SCENES_EACH the scenes of the group nasty and
    how many of each class; BENCH_OUTAGES and BENCH_OUTAGES_EACH the faults of the group outages and how often each is
    played; BENCH_KILLS and BENCH_RECEIVER_DOWN_S the kills of the group kills
    and how long its receivers are away; BENCH_ELECTION_PLANS the plans of the group elections
    and BENCH_ELECTION_ROUNDS its rounds on real brokers; BENCH_FUZZ the messages and texts of the group fuzz.
    """
    logging.getLogger("kafka").setLevel(logging.CRITICAL)
    # Brokers and children end with the `with` blocks that hold them: a SIGTERM has to unwind these too.
    signal.signal(signal.SIGTERM, _interrupt)
    on = machine()
    click.echo(f"Machine: {on}")
    failed = [name for name in ([only] if only else GROUPS) if not _run_group(name, on)]
    if failed:
        click.echo(f"Failed: {', '.join(failed)}", err=True)
        sys.exit(1)


def _run_group(name: str, on: str) -> bool:
    """Return whether the group was measured; its figures are kept then."""
    click.echo(f"\n== {name}")
    began = time.monotonic()

    def on_progress(text: str) -> None:
        click.echo(f"{time.monotonic() - began:7.1f} s  {text}")

    try:
        figures = GROUPS[name](on_progress)
    except HeadroomError as error:
        on_progress(f"failed: {error}")
        return False
    date = datetime.now(timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ")
    write(figures, Origin(_command(name), on, date, commit()))
    report.write(GROUPS)
    _print(figures)
    return True


def _print(figures: Sequence[Figure]) -> None:
    rows = [(f.name, f"{f.value:.3f}", f.unit, str(f.n)) for f in figures]
    click.echo()
    print_table("", ("name", "value", "unit", "n"), rows)
    click.echo(f"Kept in {RESULTS}")


def _command(name: str) -> str:
    given = [f"{key}={value}" for key, value in sorted(os.environ.items()) if key.startswith("BENCH_")]
    return " ".join([*given, f"make bench ONLY={name}"])


def _interrupt(_number: int, _frame: Any) -> None:
    raise KeyboardInterrupt


if __name__ == "__main__":
    run()

"""``python -m benchmarks.run``: measures the groups, prints their figures, and stores them in results.json."""

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
from schemas.environment import OF_MACHINE, without_settings
from schemas.errors import HeadroomError


@click.command()
@click.option("--only", type=click.Choice(list(GROUPS)), help="Run this group alone.")
def run(only: str | None) -> None:
    """Measure on real brokers, print the figures, write them to benchmarks/results.json and docs/performance.md.

    Environment variables for shorter runs, by group:

    \b
    switch      BENCH_SWITCHES: number of leader switches
    takeover    BENCH_TAKEOVER_ELECTIONS, BENCH_TAKEOVER_DEATHS: number of elections, and of deaths
    no_disk     BENCH_DISK_KILLS, BENCH_DISK_STARTS: number of kills of the JVM, and of starts
    start       BENCH_STARTS: number of starts
    busy        BENCH_BUSY_SWITCHES, BENCH_BUSY_STARTS, BENCH_BUSY_DEMOS: number of switches, of starts, and of demos
                beside each of none, one and two busy processes
    gold        BENCH_GOLD_STARTS, BENCH_GOLD_TICKS: number of starts, and of measured ticks
    finish      BENCH_MOVES, BENCH_FIRST_MOVE: number of moves and the first one, to measure in parts
    smallest    BENCH_SITUATIONS, BENCH_FIRST_SITUATION: the same for situations
    memory      BENCH_MEMORY_S, BENCH_MEMORY_TICK_S: length and interval of ticks, in seconds
    idle        BENCH_IDLE_S: length, in seconds
    scale       BENCH_PARTITIONS: sizes, comma-separated
    standalone  BENCH_PARTITIONS: the first size counts
    sources     BENCH_REPLICAS: sizes, comma-separated
    tables      BENCH_DAYS, BENCH_DAY_TICKS, BENCH_HOUR_TICKS: simulated time
    precision   BENCH_FAULTS, BENCH_FAULT_S, BENCH_HEALTHY_S: number of faults, maximum length, time of healthy moves
                BENCH_STOCK_FOR_RATIO: factor for the times of stock rules
    large_moves BENCH_SCENES, BENCH_SCENES_EACH: scenes, and number per class
    kills       BENCH_KILLS, BENCH_RECEIVER_DOWN_S: number of kills, time without receivers
    cuts        BENCH_CUTS: number of power cuts
    damages     BENCH_DAMAGES: number of rounds of six damages
    upgrades    BENCH_UPGRADES: parts (library, spark)
    outages     BENCH_OUTAGES, BENCH_OUTAGES_EACH: scenarios, and runs of each
    elections   BENCH_ELECTION_PLANS, BENCH_ELECTION_ROUNDS: number of plans, and of rounds on real brokers
    plan        BENCH_PLAN, BENCH_PLANS: parts (time, generate, lists), and number of timed plans
    reassign    BENCH_REASSIGN, BENCH_REASSIGN_ITEMS: parts (moves, batched, smallest, switches, kills), and number of
                items to record
    fuzz        BENCH_FUZZ, BENCH_FUZZ_AMOUNTS, BENCH_FUZZ_PARTS: number of messages and texts, and of amounts, and
                parts (crashes, amounts)
    tests       reads the records of `make test` and `make flaky`
    balance     BENCH_BALANCE_PARTITIONS, BENCH_BALANCE_CLUSTERS: size of the large cluster, number of small ones
    seeded      BENCH_SEEDED: names and tiers of faults, comma-separated
                BENCH_SEEDED_COMMIT, BENCH_SEEDED_CLEAN: tests of a commit; tests without the fault first
    """  # noqa: D301
    # kafka-python logs every lost connection to a broker, and benchmarks kill brokers.
    logging.getLogger("kafka").setLevel(logging.CRITICAL)
    # `with` blocks stop brokers and child processes, so a SIGTERM must unwind them too.
    signal.signal(signal.SIGTERM, _interrupt)
    machine_text = machine()
    click.echo(f"Machine: {machine_text}")
    # Those of the environment win over the files of clusters that are measured.
    with without_settings(but=OF_MACHINE):
        failed = [name for name in ([only] if only else GROUPS) if not _run_group(name, machine_text)]
    if failed:
        click.echo(f"Failed: {', '.join(failed)}", err=True)
        sys.exit(1)


def _run_group(name: str, machine_text: str) -> bool:
    """Measure a group, store its figures, and return whether that succeeded."""
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
    write(figures, Origin(_command(name), machine_text, date, commit()))
    report.write(GROUPS)
    _print(figures)
    return True


def _print(figures: Sequence[Figure]) -> None:
    rows = [(f.name, f"{f.value:.3f}", f.unit, str(f.n)) for f in figures]
    click.echo()
    print_table("", ("name", "value", "unit", "n"), rows)
    click.echo(f"Stored in {RESULTS}")


def _command(name: str) -> str:
    variables = [f"{key}={value}" for key, value in sorted(os.environ.items()) if key.startswith("BENCH_")]
    return " ".join([*variables, f"make bench ONLY={name}"])


def _interrupt(_number: int, _frame: Any) -> None:
    raise KeyboardInterrupt


if __name__ == "__main__":
    run()

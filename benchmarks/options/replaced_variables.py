"""Environment variables that chose what is measured, and the options in their place."""

from __future__ import annotations

from collections.abc import Mapping

import click

# Options as ``group --option``. One that is set would otherwise be ignored, and something else measured than expected.
REPLACED: dict[str, tuple[str, ...]] = {
    "BENCH_SWITCHES": ("switch --switches",),
    "BENCH_COLD_SWITCHES": ("switch --cold-switches",),
    "BENCH_TAKEOVER_ELECTIONS": ("takeover --elections",),
    "BENCH_TAKEOVER_DEATHS": ("takeover --deaths",),
    "BENCH_DISK_KILLS": ("no_disk --kills",),
    "BENCH_DISK_STARTS": ("no_disk --starts",),
    "BENCH_STARTS": ("start --starts",),
    "BENCH_BUSY_SWITCHES": ("busy --switches",),
    "BENCH_BUSY_STARTS": ("busy --starts",),
    "BENCH_BUSY_DEMOS": ("busy --demos",),
    "BENCH_GOLD_STARTS": ("gold --starts",),
    "BENCH_GOLD_TICKS": ("gold --ticks",),
    "BENCH_MOVES": ("finish --moves",),
    "BENCH_FIRST_MOVE": ("finish --first-move",),
    "BENCH_SITUATIONS": ("smallest --situations",),
    "BENCH_FIRST_SITUATION": ("smallest --first-situation",),
    "BENCH_MEMORY_S": ("memory --length-s",),
    "BENCH_MEMORY_TICK_S": ("memory --interval-s",),
    "BENCH_IDLE_S": ("idle --length-s",),
    "BENCH_PARTITIONS": ("scale --partitions", "standalone --partitions"),
    "BENCH_DRIVER_MEMORY": tuple(f"{group} --driver-memory" for group in ("scale", "guard", "million", "standalone")),
    "BENCH_REPLICAS": ("sources --replicas",),
    "BENCH_DAYS": ("tables --days",),
    "BENCH_DAY_TICKS": ("tables --day-ticks",),
    "BENCH_HOUR_TICKS": ("tables --hour-ticks",),
    "BENCH_FAULTS": ("precision --faults",),
    "BENCH_FAULT_S": ("precision --fault-s",),
    "BENCH_HEALTHY_S": ("precision --healthy-s",),
    "BENCH_STOCK_FOR_RATIO": ("precision --stock-for-ratio",),
    "BENCH_SCENES": ("large_moves --scenes",),
    "BENCH_SCENES_EACH": ("large_moves --each",),
    "BENCH_KILLS": ("kills --kills",),
    "BENCH_RECEIVER_DOWN_S": ("kills --receiver-down-s",),
    "BENCH_CUTS": ("cuts --cuts",),
    "BENCH_DAMAGES": ("damages --rounds",),
    "BENCH_UPGRADES": ("upgrades --parts",),
    "BENCH_OUTAGES": ("outages --scenarios",),
    "BENCH_OUTAGES_EACH": ("outages --each",),
    "BENCH_ELECTION_PLANS": ("elections --plans",),
    "BENCH_ELECTION_ROUNDS": ("elections --rounds",),
    "BENCH_PLAN": ("plan --parts",),
    "BENCH_PLANS": ("plan --plans",),
    "BENCH_REASSIGN": ("reassign --parts",),
    "BENCH_REASSIGN_ITEMS": ("reassign --items",),
    "BENCH_FUZZ": ("fuzz --messages",),
    "BENCH_FUZZ_AMOUNTS": ("fuzz --amounts",),
    "BENCH_FUZZ_PARTS": ("fuzz --parts",),
    "BENCH_BALANCE": ("balance --parts",),
    "BENCH_BALANCE_PARTITIONS": ("balance --partitions",),
    "BENCH_BALANCE_CLUSTERS": ("balance --clusters",),
    "BENCH_ASSIGNER_ENV": ("balance --assigner-folder",),
    "BENCH_PROPOSALS": ("proposals --proposals",),
    "BENCH_SEEDED": ("seeded --faults",),
    "BENCH_SEEDED_COMMIT": ("seeded --commit",),
    "BENCH_SEEDED_CLEAN": ("seeded --clean",),
}


def refuse_variables(environment: Mapping[str, str]) -> None:
    """Check that no variable is set that an option has replaced.

    Raises:
        click.UsageError: some are, each on a line with its option.
    """
    lines = [
        f"{name} is set, but no longer read. Unset it, and use {' or '.join(options)}"
        for name, options in REPLACED.items()
        if name in environment
    ]
    if lines:
        raise click.UsageError("\n".join(lines))

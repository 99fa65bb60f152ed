"""All groups of benchmarks by the name for ``make bench ONLY=``."""

from __future__ import annotations

from collections.abc import Callable

from benchmarks.fixtures.bench_cluster import OnProgress
from benchmarks.groups import (
    alert_latency,
    busy,
    collector_cost,
    crash_recovery,
    finish_time,
    memory,
    smallest_throttle,
    sources,
    standalone,
    startup,
    table_growth,
)
from benchmarks.groups.balance import group as balance
from benchmarks.groups.durability import damages, power_cuts, upgrades
from benchmarks.groups.elections import group as elections
from benchmarks.groups.fuzz import group as fuzz
from benchmarks.groups.gold import group as gold
from benchmarks.groups.idle import group as idle
from benchmarks.groups.large_moves import group as large_moves
from benchmarks.groups.outages import group as outages
from benchmarks.groups.plan import group as plan
from benchmarks.groups.precision import group as precision
from benchmarks.groups.proposals import group as proposals
from benchmarks.groups.reassign import group as reassign
from benchmarks.groups.scale import group as scale
from benchmarks.groups.scale import guard, million
from benchmarks.groups.seeded_faults import group as seeded
from benchmarks.groups.takeover import group as takeover
from benchmarks.groups.takeover import no_disk
from benchmarks.groups.tests import group as tests
from benchmarks.results import Figure

# In the order in which they run.
GROUPS: dict[str, Callable[[OnProgress], list[Figure]]] = {
    "switch": alert_latency.measure,
    "takeover": takeover.measure,
    "no_disk": no_disk.measure,
    "start": startup.measure,
    "busy": busy.measure,
    "gold": gold.measure,
    "finish": finish_time.measure,
    "smallest": smallest_throttle.measure,
    "memory": memory.measure,
    "idle": idle.measure,
    "scale": scale.measure,
    "guard": guard.measure,
    "million": million.measure,
    "metadata": collector_cost.measure,
    "tables": table_growth.measure,
    "sources": sources.measure,
    "standalone": standalone.measure,
    "precision": precision.measure,
    "large_moves": large_moves.measure,
    "kills": crash_recovery.measure,
    "cuts": power_cuts.measure,
    "damages": damages.measure,
    "upgrades": upgrades.measure,
    "outages": outages.measure,
    "elections": elections.measure,
    "plan": plan.measure,
    "reassign": reassign.measure,
    "fuzz": fuzz.measure,
    "balance": balance.measure,
    "proposals": proposals.measure,
    "seeded": seeded.measure,
    "tests": tests.measure,
}

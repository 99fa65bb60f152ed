"""All groups of benchmarks, in the order in which they run."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import dataclass
from types import ModuleType
from typing import Any, Generic, TypeVar

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
from benchmarks.groups.acting import group as acting
from benchmarks.groups.balance import group as balance
from benchmarks.groups.dashboard import group as dashboard
from benchmarks.groups.durability import damages, power_cuts, upgrades
from benchmarks.groups.elections import group as elections
from benchmarks.groups.fuzz import group as fuzz
from benchmarks.groups.gold import group as gold
from benchmarks.groups.idle import group as idle
from benchmarks.groups.large_moves import group as large_moves
from benchmarks.groups.migration_watch import group as migration_watch
from benchmarks.groups.migrations import group as migrations
from benchmarks.groups.mirror import group as mirror
from benchmarks.groups.outages import group as outages
from benchmarks.groups.plan import group as plan
from benchmarks.groups.plan import tiered
from benchmarks.groups.plan.truth import group as plan_truth
from benchmarks.groups.precision import group as precision
from benchmarks.groups.proposals import group as proposals
from benchmarks.groups.reassign import crash_points
from benchmarks.groups.reassign import group as reassign
from benchmarks.groups.routed import group as routed
from benchmarks.groups.scale import group as scale
from benchmarks.groups.scale import guard, million
from benchmarks.groups.seeded_faults import group as seeded
from benchmarks.groups.takeover import group as takeover
from benchmarks.groups.takeover import no_disk
from benchmarks.groups.tests import group as tests
from benchmarks.options.fields import NoOptions
from benchmarks.results import Figure

T = TypeVar("T")


@dataclass(frozen=True)
class BenchGroup(Generic[T]):
    """A group of figures that are measured together.

    Attributes:
        name: name on the command line and in recorded commands.
        question: what its figures answer.
        minutes: about how long it takes with its default options on two cores, by recorded runs; None if not known.
        measure: measures its figures. The docstring of its module describes them.
        options: dataclass of its options.
    """

    name: str
    question: str
    minutes: int | None
    measure: Callable[[OnProgress, T], list[Figure]]
    options: type[T]

    @property
    def module(self) -> ModuleType:
        """Return the module with its measuring function."""
        module = inspect.getmodule(self.measure)
        assert module is not None
        return module

    @property
    def time_text(self) -> str:
        """Return how long it takes, as text."""
        return "not known" if self.minutes is None else f"about {self.minutes} min"


_GROUPS: tuple[BenchGroup[Any], ...] = (
    BenchGroup(
        "switch",
        "How soon after a leader switch is its alert stored and printed?",
        40,
        alert_latency.measure,
        alert_latency.SwitchOptions,
    ),
    BenchGroup(
        "takeover",
        "Is the required rate right after a leader switch, and how soon after a death does the alert come?",
        None,
        takeover.measure,
        takeover.TakeoverOptions,
    ),
    BenchGroup(
        "no_disk",
        "How soon does an alert come while the disk of the tables cannot be written?",
        13,
        no_disk.measure,
        no_disk.NoDiskOptions,
    ),
    BenchGroup(
        "start",
        "How soon after its start does a watch print its first verdict?",
        6,
        startup.measure,
        startup.StartOptions,
    ),
    BenchGroup(
        "busy",
        "What do alerts, history and demo do while other programs keep the machine busy?",
        None,
        busy.measure,
        busy.BusyOptions,
    ),
    BenchGroup("gold", "How old are the rows of gold when a reader sees them?", None, gold.measure, gold.GoldOptions),
    BenchGroup(
        "finish",
        "Does a move finish when the alert says, if its throttle is applied at once?",
        130,
        finish_time.measure,
        finish_time.FinishOptions,
    ),
    BenchGroup(
        "smallest",
        "How far above the smallest sufficient throttle is the recommended one?",
        None,
        smallest_throttle.measure,
        smallest_throttle.SmallestOptions,
    ),
    BenchGroup("memory", "Does the memory of a watch grow within an hour?", 61, memory.measure, memory.MemoryOptions),
    BenchGroup("idle", "What does a watch cost on a cluster where nothing happens?", 6, idle.measure, idle.IdleOptions),
    BenchGroup(
        "scale",
        "What does a tick cost with 2,000 to 200,000 partitions, compared with Spark and Delta alone?",
        None,
        scale.measure,
        scale.ScaleOptions,
    ),
    BenchGroup(
        "guard", "Did a change make the pipeline slower at 200,000 partitions?", 5, guard.measure, guard.GuardOptions
    ),
    BenchGroup(
        "million", "What does a tick cost with a million partitions?", 25, million.measure, million.MillionOptions
    ),
    BenchGroup("metadata", "What does a tick cost the collector itself?", None, collector_cost.measure, NoOptions),
    BenchGroup(
        "tables",
        "How large do the tables get in a week, and how fast are queries then?",
        12,
        table_growth.measure,
        table_growth.TablesOptions,
    ),
    BenchGroup(
        "dashboard",
        "How fast is the page at a large move, what does it cost, and does it show what the tables have?",
        None,
        dashboard.measure,
        dashboard.DashboardOptions,
    ),
    BenchGroup(
        "acting",
        "Does the page change exactly what the commands change, in few clicks, and for nobody else?",
        8,
        acting.measure,
        acting.ActingOptions,
    ),
    BenchGroup(
        "sources",
        "How long does it take to read a broker's metrics from each source, and what does it cost the broker?",
        None,
        sources.measure,
        sources.SourcesOptions,
    ),
    BenchGroup(
        "standalone",
        "What does a standalone Spark cluster cost compared with local Spark?",
        None,
        standalone.measure,
        standalone.StandaloneOptions,
    ),
    BenchGroup(
        "precision",
        "Which faults do the alerts detect, and which alerts are false, compared with stock rules?",
        90,
        precision.measure,
        precision.PrecisionOptions,
    ),
    BenchGroup(
        "large_moves",
        "Is every alert on large and difficult moves true and announced once, and does its advice work?",
        135,
        large_moves.measure,
        large_moves.LargeMovesOptions,
    ),
    BenchGroup(
        "kills",
        "Is every alert delivered exactly once when processes are killed?",
        17,
        crash_recovery.measure,
        crash_recovery.KillsOptions,
    ),
    BenchGroup(
        "cuts", "Does a power cut lose anything that was announced?", None, power_cuts.measure, power_cuts.CutsOptions
    ),
    BenchGroup(
        "damages",
        "Is every damaged file reported and repaired, while alerts still come?",
        None,
        damages.measure,
        damages.DamagesOptions,
    ),
    BenchGroup(
        "upgrades",
        "Can the tables of every recorded version be upgraded to this one, and back?",
        None,
        upgrades.measure,
        upgrades.UpgradesOptions,
    ),
    BenchGroup(
        "outages",
        "Is every alert delivered exactly once during faults of processes, networks, disks and clocks?",
        None,
        outages.measure,
        outages.OutagesOptions,
    ),
    BenchGroup(
        "elections",
        "How long does a plan of elections take, and what do producers notice of it?",
        None,
        elections.measure,
        elections.ElectionsOptions,
    ),
    BenchGroup(
        "plan",
        "How long does a plan of 200,000 partitions take, and do made plans, lists and needs keep what they should?",
        None,
        plan.measure,
        plan.PlanTimeOptions,
    ),
    BenchGroup(
        "plan_truth",
        "Does what a plan says come, with brokers that are down, unreadable, cordoned or full, on Kafka 4.3 and 3.9?",
        None,
        plan_truth.measure,
        plan_truth.PlanTruthOptions,
    ),
    BenchGroup(
        "tiered",
        "Do plans count what new replicas copy of topics with remote storage?",
        None,
        tiered.measure,
        NoOptions,
    ),
    BenchGroup(
        "reassign",
        "Do planned moves take as long as estimated, and do runs survive switches and kills?",
        80,
        reassign.measure,
        reassign.ReassignOptions,
    ),
    BenchGroup(
        "crash_points",
        "Does a run leave nothing behind, wherever it and its repair are killed?",
        None,
        crash_points.measure,
        crash_points.CrashPointOptions,
    ),
    BenchGroup("fuzz", "Does any input from outside crash its reader?", None, fuzz.measure, fuzz.FuzzOptions),
    BenchGroup(
        "balance",
        "How long do proposals take, and how many bytes do they copy, compared with other planners?",
        27,
        balance.measure,
        balance.BalanceOptions,
    ),
    BenchGroup(
        "proposals",
        "Do proposals of a balance bring the loads, leads and replicas that they promise, in the promised time?",
        None,
        proposals.measure,
        proposals.ProposalsOptions,
    ),
    BenchGroup(
        "mirror",
        "Do groups that move to a mirror of MirrorMaker 2 skip no record, and read few again?",
        4,
        mirror.measure,
        mirror.MirrorOptions,
    ),
    BenchGroup(
        "routed",
        "What do clients of the routing library cost, and what do producers notice of a switch?",
        15,
        routed.measure,
        routed.RoutedOptions,
    ),
    BenchGroup(
        "migrations",
        "Do routed clients lose or double nothing in migrations under faults, and is a loss with acks=1 reported?",
        None,
        migrations.measure,
        migrations.MigrationsOptions,
    ),
    BenchGroup(
        "migration_watch",
        "What does the watch of a target see of migrations, how soon, and at what cost?",
        None,
        migration_watch.measure,
        migration_watch.MigrationWatchOptions,
    ),
    BenchGroup("seeded", "Does a test catch each of 40 defects?", 21, seeded.measure, seeded.SeededOptions),
    BenchGroup(
        "tests",
        "How long do all tests take in a fresh clone, and how many fail by chance?",
        1,
        tests.measure,
        NoOptions,
    ),
)
GROUPS: dict[str, BenchGroup[Any]] = {group.name: group for group in _GROUPS}

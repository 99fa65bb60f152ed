"""Group ``proposals``: proposals of ``headroom balance`` on real brokers under load, beside what came of them.

Each of 14 clusters of four brokers is out of balance: all leads on one broker, full brokers beside empty ones, a new
broker, unequal sizes or writes; replication factor 1 to 3. ``headroom balance propose`` makes a proposal while records
are written, and ``headroom reassign run`` carries out its batches. ``headroom balance`` then reads the loads again.

``balance_load_error_ratio`` is the distance of a measured load from the promised one, divided by the promised one, for
bytes in, bytes out and disk of every broker; loads below a tenth of the mean are left out. To the promised disk is
added what was written since the proposal. ``balance_duration_error_ratio`` is the same of the time for which
something moves in a batch. ``balance_elections_copied_replicas`` is the number of replicas on new brokers after
proposals that may only elect. During two proposals two processes keep both cores busy.

``balance_promise_differs`` comes from 20 more runs, on small topics of five brokers: with and without racks, with
``auto.leader.rebalance.enable`` on and off, with a broker that was restarted and leads nothing yet, and with one that
is down. ``headroom balance run`` carries out ten of them, ``headroom reassign run`` the batches of the others. The
figure is the number of counts of leaders or replicas of a broker, and of replica lists of partitions, that are not
those that were promised, and of runs that failed. Each is printed with its cause. With
``auto.leader.rebalance.enable`` they are read after a further check of Kafka's own.

A run can be made in parts. Proposals recorded in ``benchmarks/parts/proposals`` with the same code count and are not
repeated. ``--proposals`` and ``--promises`` limit the number of proposals that are recorded in this run.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path
from typing import Any

from benchmarks.fixtures.bench_cluster import BenchCluster, OnProgress
from benchmarks.fixtures.part_records import read_record, write_record
from benchmarks.groups.proposals.arithmetic import figures, promise_figures
from benchmarks.groups.proposals.carried_out import record_proposal
from benchmarks.groups.proposals.cases import CASES
from benchmarks.groups.proposals.promise_cases import PROMISE_CASES
from benchmarks.groups.proposals.promise_runs import promise_cluster, record_promise
from benchmarks.options.fields import COUNT, option
from benchmarks.results import Figure, parts

_BROKERS = 4


@dataclass(frozen=True)
class ProposalsOptions:
    """Options of the group ``proposals``."""

    proposals: int = option(len(CASES), COUNT, "Most proposals under load that this run records; 0 records none.")
    promises: int = option(
        len(PROMISE_CASES), COUNT, "Most runs for leads and replicas that this run records; 0 records none."
    )


def measure(on_progress: OnProgress, options: ProposalsOptions) -> list[Figure]:
    """Record the proposals that are left, and return the figures over all records.

    Raises:
        HeadroomError: a command failed, nothing was proposed, or a batch did not end.
    """
    folder = parts("proposals", __name__)
    loaded = _record_loaded(folder, on_progress, options.proposals)
    promised = _record_promises(folder, on_progress, options.promises)
    return [*figures(loaded), *promise_figures(promised)]


def _record_loaded(folder: Path, on_progress: OnProgress, most: int) -> list[dict[str, Any]]:
    names = [f"proposal-{number:02d}" for number in range(len(CASES))]
    if left := _left(folder, names, most):
        with BenchCluster(_BROKERS) as bench:
            _configure(bench)
            for number in left:
                write_record(folder, names[number], record_proposal(bench, names[number], CASES[number], on_progress))
    return _records(folder, names)


def _record_promises(folder: Path, on_progress: OnProgress, most: int) -> list[dict[str, Any]]:
    names = [f"promise-{number:02d}" for number in range(len(PROMISE_CASES))]
    # Those that share a cluster follow on each other.
    for shared, numbers in groupby(_left(folder, names, most), key=lambda number: PROMISE_CASES[number].cluster):
        with promise_cluster(shared) as bench:
            _configure(bench)
            # Twice for each batch; rates do not decide on what is promised here.
            bench.add_section("collect", {"measure_s": 2.0})
            for number in numbers:
                case = PROMISE_CASES[number]
                write_record(folder, names[number], record_promise(bench, names[number], case, on_progress))
    return _records(folder, names)


def _configure(bench: BenchCluster) -> None:
    # By default the overhead of a move is 256 MB, beside which copies of some MB would look dear; and loads below
    # 1 MiB/s count as balanced.
    bench.add_section("balance", {"move_overhead": "1MB", "detect_below": "100KB"})
    for section in ("reassign", "elections"):
        bench.add_section(section, {"pause_s": 0.0})


def _left(folder: Path, names: Sequence[str], most: int) -> list[int]:
    """Return the first runs without a record, by number."""
    return [number for number, name in enumerate(names) if read_record(folder, name) is None][:most]


def _records(folder: Path, names: Sequence[str]) -> list[dict[str, Any]]:
    return [record for name in names if (record := read_record(folder, name)) is not None]

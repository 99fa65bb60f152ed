"""Group ``proposals``: proposals of ``headroom balance`` on real brokers under load, beside what came of them.

Each of 14 clusters of four brokers is out of balance: all leads on one broker, full brokers beside empty ones, a new
broker, unequal sizes or writes; replication factor 1 to 3. ``headroom balance propose`` makes a proposal while records
are written, and ``headroom reassign run`` carries out its batches. ``headroom balance`` then reads the loads again.

``balance_load_error_ratio`` is the distance of a measured load from the promised one, divided by the promised one, for
bytes in, bytes out and disk of every broker; loads below a tenth of the mean are left out. To the promised disk is
added what was written since the proposal. ``balance_duration_error_ratio`` is the same of the time for which
something moves in a batch. ``balance_elections_copied_replicas`` is the number of replicas on new brokers after
proposals that may only elect. ``balance_promise_differs`` is the number of counts of leaders and of replicas of brokers
that are not the promised ones. During two proposals two processes keep both cores busy.

A run can be made in parts. Proposals recorded in ``benchmarks/parts/proposals`` with the same code count and are not
repeated. ``--proposals`` limits the number of proposals that are recorded in this run.
"""

from __future__ import annotations

from dataclasses import dataclass

from benchmarks.fixtures.bench_cluster import BenchCluster, OnProgress
from benchmarks.fixtures.part_records import read_record, write_record
from benchmarks.groups.proposals.arithmetic import figures
from benchmarks.groups.proposals.carried_out import record_proposal
from benchmarks.groups.proposals.cases import CASES
from benchmarks.options.fields import COUNT, option
from benchmarks.results import Figure, parts

_BROKERS = 4


@dataclass(frozen=True)
class ProposalsOptions:
    """Options of the group ``proposals``."""

    proposals: int = option(len(CASES), COUNT, "Most proposals that this run records; 0 records nothing.")


def measure(on_progress: OnProgress, options: ProposalsOptions) -> list[Figure]:
    """Record the proposals that are left, and return the figures over all records.

    Raises:
        HeadroomError: a command failed, nothing was proposed, or a batch did not end.
    """
    folder = parts("proposals", __name__)
    names = [f"proposal-{number:02d}" for number in range(len(CASES))]
    left = [n for n, name in enumerate(names) if read_record(folder, name) is None]
    left = left[: options.proposals]
    if left:
        with BenchCluster(_BROKERS) as bench:
            # By default the overhead of a move is 256 MB, beside which copies of some MB would look dear; and loads
            # below 1 MiB/s count as balanced.
            bench.add_section("balance", {"move_overhead": "1MB", "detect_below": "100KB"})
            for section in ("reassign", "elections"):
                bench.add_section(section, {"pause_s": 0.0})
            for number in left:
                write_record(folder, names[number], record_proposal(bench, names[number], CASES[number], on_progress))
    records = (read_record(folder, name) for name in names)
    return figures([record for record in records if record is not None])

"""Group ``reassign``: planned moves on real brokers, and runs of plans that are switched, killed and cleaned.

**Moves.** ``headroom plan`` estimates each of 20 moves of 15 to 60 s, replication factor 1 to 3, 1 to 40 partitions, in
some of which the largest has up to eight times the bytes and writes of the smallest. During some moves two processes
keep both cores busy. Then the move runs under the throttle and lists of the estimate.
``plan_error_ratio`` is the distance of the real time from the estimate, divided by the estimate. The greatest one is
that of the second move: its bytes are about what an idle quota lets through at once, so it ends with the first burst,
the second 11 s later, or a third. The estimate is a time, its printed range has all of them.
``plan_range_hit_ratio`` is the share of the moves that ended within the printed range.
``run_average_error_ratio_median_25`` is the same error of the usual estimate during a move,
``(total - done) / (done / elapsed)``, for the rest of the time when 25 % of the bytes are copied.

**Batches.** ``batched_error_ratio_max`` compares the time of three batches in ``headroom plan --batches 3`` with the
time during which something moves while ``headroom reassign run`` carries them out, for three plans. Pauses between
batches do not count.

**Throttle.** ``plan_recommended_over_smallest_ratio_max`` is the recommended throttle divided by the smallest that
trials during the move find enough.

**Switches.** During runs with ``--auto-throttle-up-to`` a broker takes over one partition after the other, and each
switch makes its throttle too low. ``switch_to_throttle_s_median`` is the time from the request of the election to a
throttle in force that exceeds what the broker requires.

**Kills.** A run of two batches gets a ``kill -9`` at a random step, the same command is started again and killed again,
and then the same command ends it, or `headroom reassign cancel` and `clean` do, or `clean` alone, which are killed and
repeated too, 24 times over. ``reassign_kill_left_behind`` counts rates and list entries that are left,
``reassign_kill_unfinished`` partitions that are neither where they were nor at their target, those that are not at the
target of a run that was continued, and runs without an end.
``reassign_foreign_changed`` counts rates and entries of others, set before the run or while it was dead, that a run has
changed. ``reassign_clean_s_max`` is the longest time from the last replica in sync to the last throttle gone, in all
runs that came to their end.

**Journals.** Once runs have ended, switched, in batches or killed, their journal is checked against the specification
in ``tests/support/journal_specification.py``. ``reassign_traces_checked`` is the number of these runs,
``reassign_trace_violations`` that of rows that may not be where they are.

A run can be made in parts. Items recorded in ``benchmarks/parts/reassign`` with the same code count and are not
repeated. ``--parts`` chooses some of the parts ``moves``, ``batched``, ``smallest``, ``switches`` and ``kills``;
``--items`` limits the number of items that are recorded in this run.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from benchmarks.fixtures.bench_cluster import BenchCluster, OnProgress
from benchmarks.fixtures.part_records import read_record, write_record
from benchmarks.groups.reassign import cases
from benchmarks.groups.reassign.arithmetic import (
    batched_figures,
    clean_figures,
    foreign_figures,
    kill_figures,
    move_figures,
    smallest_figures,
    switch_figures,
    trace_figures,
)
from benchmarks.groups.reassign.checked_journal import CheckedJournal
from benchmarks.groups.reassign.kills import CHAINS, KilledRuns
from benchmarks.groups.reassign.planned_moves import record_batched, record_move, record_smallest
from benchmarks.groups.reassign.switches import RUNS, record_switches
from benchmarks.options.fields import COUNT, option, parts_option
from benchmarks.results import Figure, parts

_BROKERS = 4
Record = dict[str, Any]
# Records one item of a part, by its number.
Recorder = Callable[[int, OnProgress], Record]
_CASES = {"moves": cases.MOVES, "batched": cases.BATCHED, "smallest": cases.SITUATIONS}
_ITEMS = {**{name: len(own) for name, own in _CASES.items()}, "switches": RUNS, "kills": CHAINS}


@dataclass(frozen=True)
class ReassignOptions:
    """Options of the group ``reassign``."""

    parts: tuple[str, ...] = parts_option(*_ITEMS)
    items: int = option(sum(_ITEMS.values()), COUNT, "Most items that this run records; 0 records nothing.")


def measure(on_progress: OnProgress, options: ReassignOptions) -> list[Figure]:
    """Record the items that are left of the chosen parts, and return the figures over all records.

    Raises:
        HeadroomError: a command failed, or a move did not end.
    """
    most = options.items
    folder = parts("reassign", __name__)
    for part in options.parts:
        left = [n for n in range(_ITEMS[part]) if read_record(folder, _name(part, n)) is None][:most]
        most -= len(left)
        if left:
            _record(part, left, folder, on_progress)
    return figures({part: _records(part, folder) for part in _ITEMS})


def figures(records: dict[str, list[Record]]) -> list[Figure]:
    """Return the figures of the parts that have records."""
    runs = [*records["switches"], *records["kills"]]
    ended = [*records["batched"], *records["kills"]]
    made = (
        (records["moves"], move_figures),
        (records["batched"], batched_figures),
        (records["smallest"], smallest_figures),
        (records["switches"], switch_figures),
        (records["kills"], kill_figures),
        (runs, foreign_figures),
        (ended, clean_figures),
        ([*records["batched"], *runs], trace_figures),
    )
    return [figure for own, of in made if own for figure in of(own)]


def _record(part: str, numbers: Sequence[int], folder: Path, on_progress: OnProgress) -> None:
    with BenchCluster(_BROKERS) as bench, _recorder(part, bench) as recorder:
        journal = CheckedJournal(bench)
        for number in numbers:
            record = recorder(number, on_progress)
            write_record(folder, _name(part, number), {**record, **journal.check(on_progress)})


@contextmanager
def _recorder(part: str, bench: BenchCluster) -> Iterator[Recorder]:
    """Yield the function that records an item of a part."""
    if part == "kills":
        # Pauses between batches and elections would only make it longer.
        bench.add_section("reassign", {"pause_s": 0.0})
        bench.add_section("elections", {"pause_s": 0.0})
        yield KilledRuns(bench).record
    elif part == "switches":
        yield lambda number, on_progress: record_switches(bench, f"switches-{number}", on_progress)
    else:
        record = {"moves": record_move, "batched": record_batched, "smallest": record_smallest}[part]
        yield partial(_record_case, record, part, bench)


def _record_case(
    record: Callable[[BenchCluster, str, cases.PlannedCase, OnProgress], Record],
    part: str,
    bench: BenchCluster,
    number: int,
    on_progress: OnProgress,
) -> Record:
    return record(bench, f"{part}-{number}", _CASES[part][number], on_progress)


def _name(part: str, number: int) -> str:
    return f"{part}-{number:02d}"


def _records(part: str, folder: Path) -> list[Record]:
    records = (read_record(folder, _name(part, number)) for number in range(_ITEMS[part]))
    return [record for record in records if record is not None]

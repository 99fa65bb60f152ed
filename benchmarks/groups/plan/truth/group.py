"""Group ``plan_truth``: what ``headroom plan`` said of moves in trouble, beside what came.

Real brokers are brought into a state, and plans are estimated in it: broker 4 is down, its metrics cannot be read, its
log directory is cordoned or too small, a partition has no leader, a throttle is too low, or topics have remote storage.
Then Kafka carries the plan out, with the throttle and the lists that it names. A plan that Headroom refuses is
requested without a throttle. 60 plans are carried out by Kafka 4.3, and 33 by Kafka 3.9 in ZooKeeper mode, where a move
waits for every replica that it keeps: all of those with a broker that is down, and some of the others.

``plan_never_wrong`` counts plans that were wrong, of 93:

- "fits": the move did not end within twice the longest printed time and a minute, or Kafka refused it.
- "never ends", "ends only when broker 4 is back", "ends only after the leader's next record": it ended within 40 s, or
  did not end once the broker was back.
- A plan that is refused was carried out by Kafka.

``plan_truth_unknown`` counts plans of which Headroom says that it does not know; these are not wrong.
``plan_truth_cases`` is the number of cases that were recorded: only with 93 is the goal judged as written.

A run can be made in parts. Cases recorded in ``benchmarks/parts/plan_truth`` with the same code count and are not
repeated, unless the cluster could not be read then. ``--parts`` chooses troubles, and ``--kafka`` versions of Kafka.
``--items`` limits the number of cases that are recorded in this run. ``small`` needs root, and ``tiered`` and Kafka 3.9
the jars of ``make setup``.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import product
from pathlib import Path
from typing import Any

from benchmarks.fixtures.bench_cluster import OnProgress
from benchmarks.fixtures.part_records import read_record, write_record
from benchmarks.groups.plan.truth.cases import CASES, KAFKA, TruthTrouble
from benchmarks.groups.plan.truth.stage import TruthStage
from benchmarks.groups.plan.truth.verdict import SaidEnd
from benchmarks.options.fields import COUNT, CommaSeparated, OneOf, option, parts_option
from benchmarks.results import Figure, parts


@dataclass(frozen=True)
class PlanTruthOptions:
    """Options of the group ``plan_truth``."""

    parts: tuple[str, ...] = parts_option(*(trouble.value for trouble in TruthTrouble))
    kafka: tuple[str, ...] = option(KAFKA, CommaSeparated(OneOf(KAFKA)), f"Versions of Kafka, of {', '.join(KAFKA)}.")
    items: int = option(len(CASES), COUNT, "Most cases that this run records; 0 records nothing.")


def measure(on_progress: OnProgress, options: PlanTruthOptions) -> list[Figure]:
    """Record the cases that are left of the chosen troubles and versions, and return the figures over all records.

    Raises:
        HeadroomError: a state could not be made, or a request failed.
    """
    folder, most = parts("plan_truth", __name__), options.items
    for kafka, trouble in product(options.kafka, options.parts):
        numbers = [n for n, case in enumerate(CASES) if (case.kafka, case.trouble) == (kafka, trouble)]
        left = [n for n in numbers if _counted(folder, n) is None][:most]
        most -= len(left)
        if left:
            stage = TruthStage(TruthTrouble(trouble), kafka, {n: CASES[n] for n in left}, on_progress)
            for number, record in stage.records():
                write_record(folder, _name(number), record)
    return figures(_records(folder), on_progress)


def figures(records: list[dict[str, Any]], on_progress: OnProgress) -> list[Figure]:
    """Return the figures of some records; each wrong plan is reported."""
    wrong = [record for record in records if record["wrong"] is not None]
    for record in wrong:
        on_progress(f"{record['case']}: said {record['said']}, but {record['wrong']}")
    unknown = sum(record["said"] == SaidEnd.UNKNOWN for record in records)
    if not records:
        return []
    return [
        Figure("plan_never_wrong", len(wrong), "plans", len(records)),
        Figure("plan_truth_unknown", unknown, "plans", len(records)),
        Figure("plan_truth_cases", len(records), "plans", len(records)),
    ]


def _records(folder: Path) -> list[dict[str, Any]]:
    records = (_counted(folder, number) for number in range(len(CASES)))
    return [record for record in records if record is not None]


def _counted(folder: Path, number: int) -> dict[str, Any] | None:
    """Return the record of a case; None if there is none, or if the cluster could not be read."""
    record = read_record(folder, _name(number))
    return None if record is None or "void" in record else record


def _name(number: int) -> str:
    return f"case-{number:02d}"

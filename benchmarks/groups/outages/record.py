"""Records of runs, for benchmarks/parts and for the terminal, and the figures over them."""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from benchmarks.fixtures.part_records import read_record, write_record
from benchmarks.groups.outages.schedule import Play
from benchmarks.results import Figure
from cli.common.output import print_table


@dataclass(frozen=True)
class Critical:
    """A critical alert of a run.

    Attributes:
        kind: kind of alert.
        subject: subject of the alert.
        summary: summary of the alert.
        true: whether the run justifies it.
    """

    kind: str
    subject: str
    summary: str
    true: bool


@dataclass(frozen=True)
class RunRecord:
    """Record of one run.

    Attributes:
        scenario: name of the scenario.
        title: description of the fault.
        number: number of the run, from 0.
        restarts_judging: whether the watch or its JVM had to restart.
        void: reason why it did not run; None if it did.
        failed: reason why it did not complete; None if it did.
        blind_s: longest time without a fresh verdict, minus one interval and Kafka's outage; None without a fault.
        gap_s: whole length of that time, seconds.
        gap_from_s: its beginning, seconds from the fault.
        kafka_s: Kafka's outage within it, seconds.
        kafka_all_s: Kafka's outages in the whole run, seconds.
        notified_s: seconds from the fault to the expected event; None if it did not come.
        played_s: length of the run, seconds.
        events: number of events for receivers.
        lost: number of events that a receiver did not show in the end.
        doubled: number of events that a person saw twice.
        critical: critical alerts.
        missing: receiver and key of each lost event.
        notes: actions of the run.
    """

    scenario: str
    title: str
    number: int
    restarts_judging: bool
    void: str | None = None
    failed: str | None = None
    blind_s: float | None = None
    gap_s: float | None = None
    gap_from_s: float | None = None
    kafka_s: float | None = None
    kafka_all_s: float | None = None
    notified_s: float | None = None
    played_s: float = 0.0
    events: int = 0
    lost: int = 0
    doubled: int = 0
    critical: Sequence[Critical] = ()
    missing: Sequence[str] = ()
    notes: Sequence[str] = ()

    @property
    def false_critical(self) -> int:
        """Return the number of critical alerts that nothing justifies."""
        return sum(not one.true for one in self.critical)


def store_record(record: RunRecord, play: Play, folder: Path) -> None:
    """Write the record of a run."""
    write_record(folder, play.name, asdict(record))


def stored_record(play: Play, folder: Path) -> RunRecord | None:
    """Return the record of a run; None if it has not run."""
    fields = read_record(folder, play.name)
    if fields is None:
        return None
    lists = {name: tuple(fields[name]) for name in ("missing", "notes")}
    return RunRecord(**{**fields, **lists, "critical": tuple(Critical(**one) for one in fields["critical"])})


def is_recorded(play: Play, folder: Path) -> bool:
    """Return whether a run has a record and is not void, failed or not.

    Failed runs are not repeated until they succeed. To repeat one, remove its file.
    """
    record = stored_record(play, folder)
    return record is not None and record.void is None


def figures(records: Sequence[RunRecord]) -> list[Figure]:
    """Return the figures of runs. Void runs count only as such, and without any run there are no times.

    Args:
        records: records of all runs.
    """
    played = [one for one in records if one.void is None]
    blind = [one.blind_s for one in played if one.blind_s is not None and not one.restarts_judging]
    restarts = [one.blind_s for one in played if one.blind_s is not None and one.restarts_judging]
    events = sum(one.events for one in played)
    times = (
        ("fault_blind_s_max", blind, max),
        ("fault_blind_s_median", blind, statistics.median),
        ("fault_blind_restart_s_max", restarts, max),
    )
    return [
        Figure("fault_scenarios", len({one.scenario for one in played}), "scenarios", len(played)),
        Figure("fault_lost", sum(one.lost for one in played), "events", events),
        Figure("fault_doubled", sum(one.doubled for one in played), "events", events),
        Figure(
            "fault_false_critical",
            sum(one.false_critical for one in played),
            "alerts",
            sum(len(one.critical) for one in played),
        ),
        *(Figure(name, float(of(values)), "s", len(values)) for name, values, of in times if values),
        Figure("fault_failed", sum(one.failed is not None for one in played), "plays", len(played)),
        Figure("fault_void", len(records) - len(played), "plays", len(records)),
    ]


def print_records(records: Sequence[RunRecord]) -> None:
    """Print a line per run, then all problems."""
    header = ("scenario", "what happens", "blind s", "Kafka s", "events", "lost", "doubled", "false critical", "")
    print_table("Plays", header, [_row(one) for one in records])
    for one in records:
        for problem in problems(one):
            print(f"{one.scenario}-{one.number}: {problem}")


def problems(one: RunRecord) -> list[str]:
    """Return a sentence for each problem of a run."""
    found = [f"void: {one.void}"] if one.void else []
    found += [f"failed: {one.failed}"] if one.failed else []
    found += [f"lost: {event}" for event in one.missing]
    found += [f"{one.doubled} event(s) shown twice"] if one.doubled else []
    found += [f"false: critical {c.kind} [{c.subject}] {c.summary}" for c in one.critical if not c.true]
    return found


def _row(one: RunRecord) -> tuple[str, ...]:
    state = "void" if one.void else "failed" if one.failed else "restarts" if one.restarts_judging else ""
    times = ("-" if value is None else f"{value:.1f}" for value in (one.blind_s, one.kafka_s))
    counts = (str(count) for count in (one.events, one.lost, one.doubled, one.false_critical))
    return (f"{one.scenario}-{one.number}", one.title, *times, *counts, state)

"""What happened in each play, for benchmarks/parts and for a reader of the terminal, and what all of it comes to."""

from __future__ import annotations

import json
import statistics
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from benchmarks.groups.outages.schedule import Play
from benchmarks.results import Figure
from cli.common.output import print_table


@dataclass(frozen=True)
class Critical:
    """A critical alert of a play.

    Attributes:
        kind: its kind.
        subject: what it is about.
        summary: its sentence.
        true: whether something that was true explains it.
    """

    kind: str
    subject: str
    summary: str
    true: bool


@dataclass(frozen=True)
class Record:
    """One play as it went.

    Attributes:
        scenario: name of the scenario.
        title: what happens in it.
        number: how many times it was played before.
        restarts_judging: whether the watch or its JVM had to start again.
        void: why it was not played; None: it was.
        failed: why it did not come to its end; None: it did.
        blind_s: longest time without a fresh verdict, beyond an interval and what Kafka needed; None: no fault began.
        gap_s: all of that time, seconds.
        gap_from_s: when it began, seconds from the fault.
        kafka_s: what Kafka needed in it, seconds.
        kafka_all_s: for how long Kafka could take no tick in all, seconds.
        notified_s: from the fault to the alert's event that it was to bring, seconds; None: it did not come.
        played_s: how long all of it took, seconds.
        events: how many events receivers were to be notified of.
        lost: how many of these a receiver did not show in the end.
        doubled: how many a person saw twice.
        critical: critical alerts.
        missing: receiver and key of each event that is lost.
        notes: what was done.
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
        """Return how many critical alerts nothing explains."""
        return sum(not one.true for one in self.critical)


def keep(record: Record, play: Play, folder: Path) -> None:
    """Write what happened in a play."""
    folder.mkdir(parents=True, exist_ok=True)
    text = json.dumps(asdict(record), separators=(",", ":")) + "\n"
    (folder / _file(play)).write_text(text, encoding="utf-8")


def kept(play: Play, folder: Path) -> Record | None:
    """Return what happened in a play; None: it was not played."""
    path = folder / _file(play)
    if not path.exists():
        return None
    fields: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    lists = {name: tuple(fields[name]) for name in ("missing", "notes")}
    return Record(**{**fields, **lists, "critical": tuple(Critical(**one) for one in fields["critical"])})


def is_kept(play: Play, folder: Path) -> bool:
    """Return whether a play need not be played: it was, however it went, and was not void.

    One that failed is not tried until it succeeds: whoever wants it again removes its file.
    """
    record = kept(play, folder)
    return record is not None and record.void is None


def _file(play: Play) -> str:
    return f"{play.name}.json"


def figures(records: Sequence[Record]) -> list[Figure]:
    """Return the figures of plays; those that are void count as such alone, and of nothing there is no time.

    Args:
        records: of all plays that are kept.
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


def print_records(records: Sequence[Record]) -> None:
    """Print a line for each play, then what was not as it should be."""
    header = ("scenario", "what happens", "blind s", "Kafka s", "events", "lost", "doubled", "false critical", "")
    print_table("Plays", header, [_row(one) for one in records])
    for one in records:
        for problem in problems(one):
            print(f"{one.scenario}-{one.number}: {problem}")


def problems(one: Record) -> list[str]:
    """Return in a sentence each what was not as it should be."""
    found = [f"void: {one.void}"] if one.void else []
    found += [f"failed: {one.failed}"] if one.failed else []
    found += [f"lost: {event}" for event in one.missing]
    found += [f"{one.doubled} event(s) seen twice"] if one.doubled else []
    found += [f"false: critical {c.kind} [{c.subject}] {c.summary}" for c in one.critical if not c.true]
    return found


def _row(one: Record) -> tuple[str, ...]:
    state = "void" if one.void else "failed" if one.failed else "restarts" if one.restarts_judging else ""
    times = ("-" if value is None else f"{value:.1f}" for value in (one.blind_s, one.kafka_s))
    counts = (str(count) for count in (one.events, one.lost, one.doubled, one.false_critical))
    return (f"{one.scenario}-{one.number}", one.title, *times, *counts, state)

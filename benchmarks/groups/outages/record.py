"""Record of a run, for benchmarks/parts and for the terminal, and the figures over all runs."""

from __future__ import annotations

import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from benchmarks.results import Figure

HEADER = ("scenario", "what happens", "blind s", "Kafka s", "events", "lost", "doubled", "false critical", "")


@dataclass
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
        critical: kind, subject and summary of each critical alert, and under ``true`` whether the run justifies it.
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
    critical: list[Mapping[str, Any]] = field(default_factory=list)
    missing: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)

    @property
    def false_critical(self) -> list[Mapping[str, Any]]:
        """Return the critical alerts that nothing justifies."""
        return [one for one in self.critical if not one["true"]]

    def problems(self) -> list[str]:
        """Return a sentence for each problem."""
        sentences = [f"void: {self.void}"] if self.void else []
        sentences += [f"failed: {self.failed}"] if self.failed else []
        sentences += [f"lost: {event}" for event in self.missing]
        sentences += [f"{self.doubled} event(s) shown twice"] if self.doubled else []
        return sentences + [
            f"false: critical {one['kind']} [{one['subject']}] {one['summary']}" for one in self.false_critical
        ]

    def row(self) -> tuple[str, ...]:
        """Return the row under ``HEADER``."""
        state = "void" if self.void else "failed" if self.failed else "restarts" if self.restarts_judging else ""
        times = ("-" if value is None else f"{value:.1f}" for value in (self.blind_s, self.kafka_s))
        counts = map(str, (self.events, self.lost, self.doubled, len(self.false_critical)))
        return (f"{self.scenario}-{self.number}", self.title, *times, *counts, state)


def figures(records: Sequence[RunRecord]) -> list[Figure]:
    """Return the figures of runs. Void runs count only as such, and without any run there are no times.

    Args:
        records: records of all runs.
    """
    played = [one for one in records if one.void is None]
    blind = [one.blind_s for one in played if one.blind_s is not None and not one.restarts_judging]
    restarts = [one.blind_s for one in played if one.blind_s is not None and one.restarts_judging]
    events = sum(one.events for one in played)
    critical = sum(len(one.critical) for one in played)
    false_critical = sum(len(one.false_critical) for one in played)
    times = (
        ("fault_blind_s_max", blind, max),
        ("fault_blind_s_median", blind, statistics.median),
        ("fault_blind_restart_s_max", restarts, max),
    )
    return [
        Figure("fault_scenarios", len({one.scenario for one in played}), "scenarios", len(played)),
        Figure("fault_lost", sum(one.lost for one in played), "events", events),
        Figure("fault_doubled", sum(one.doubled for one in played), "events", events),
        Figure("fault_false_critical", false_critical, "alerts", critical),
        *(Figure(name, float(of(values)), "s", len(values)) for name, values, of in times if values),
        Figure("fault_failed", sum(one.failed is not None for one in played), "plays", len(played)),
        Figure("fault_void", len(records) - len(played), "plays", len(records)),
    ]

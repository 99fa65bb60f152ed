"""What the journal of a run may look like: its states, which step may follow which, and what its end means.

It is written from ``docs/reassigning.md`` and ``schemas/tables/actions.py``, and shares only the names of steps and
states with the code that writes or reads the journal. Every journal of the tests is checked against it, and every state
that a search over crashes reaches.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, field, replace

from headroom.planning.reassignments.run.journal import JournalRow, StepKind, StepState

_ENTRY = re.compile(r"(\d+):(\d+)")
# No run of a plan commits offsets of a group, or is a migration.
_OF_MIGRATIONS = (StepKind.OFFSET, StepKind.AGREE, StepKind.TOPIC)
_OF_RUNS = (kind.value for kind in StepKind if kind not in _OF_MIGRATIONS)
_RUN, _LIST, _RATE, _SUBMIT, _FINISH, _CANCEL, _PLACE, _ELECT = _OF_RUNS
_INTENDED, _DONE, _UNDONE, _FAILED = (state.value for state in StepState)
_NEW, _LEAVING = "new", "leaving"
_LOG_DIRS = "log_dirs"
# Last rows by kind and subject, list entries, and rates.
TraceState = tuple[frozenset[tuple[tuple[str, str], str]], frozenset[tuple[str, str, str]], frozenset[str]]
# Step and state that may follow what was last written of a subject. ``new`` before its first row.
_AFTER: dict[str, dict[str, set[str]]] = {
    _RUN: {_NEW: {_INTENDED}, _INTENDED: {_DONE, _UNDONE}, _UNDONE: {_INTENDED}, _DONE: set()},
    # Intended twice: after a crash it may or may not have been taken.
    _LIST: {
        _NEW: {_INTENDED},
        _INTENDED: {_INTENDED, _DONE, _UNDONE},
        _DONE: {_INTENDED, _UNDONE},
        _UNDONE: {_INTENDED, _UNDONE},
    },
    _RATE: {
        _NEW: {_INTENDED},
        _INTENDED: {_INTENDED, _DONE, _FAILED, _UNDONE},
        _DONE: {_INTENDED, _UNDONE},
        _FAILED: {_INTENDED, _UNDONE},
        _UNDONE: {_INTENDED},
    },
    _PLACE: {
        _NEW: {_INTENDED},
        _INTENDED: {_INTENDED, _DONE, _FAILED, _UNDONE},
        _DONE: {_INTENDED},
        _FAILED: {_INTENDED},
        _UNDONE: {_INTENDED},
        _LEAVING: {_INTENDED},
    },
    _ELECT: {_NEW: {_INTENDED}, _INTENDED: {_INTENDED, _DONE, _FAILED}, _DONE: {_INTENDED}, _FAILED: {_INTENDED}},
}
# The same for a partition, whose steps are of three kinds.
_PARTITION: dict[str, set[str]] = {
    _NEW: {"submit intended"},
    "submit intended": {
        "submit intended",
        "submit done",
        "submit failed",
        "finish done",
        "finish failed",
        "cancel intended",
    },
    "submit done": {"submit intended", "finish done", "finish failed", "cancel intended"},
    "submit failed": {"submit intended"},
    # A later batch moves it again, or the same command goes on after others changed it.
    "finish done": {"submit intended"},
    "finish failed": {"submit intended"},
    # Its reassignment may end before the controller hears of the cancellation.
    "cancel intended": {
        "cancel intended",
        "cancel done",
        "cancel failed",
        "finish done",
        "finish failed",
        "submit intended",
    },
    "cancel done": {"submit intended"},
    "cancel failed": {"submit intended", "cancel intended", "finish done", "finish failed"},
}
_UNENDED = {"submit intended", "submit done", "cancel intended", "cancel failed"}
# These change the cluster, so the run must have begun.
_BEGUN = {(_LIST, _INTENDED), (_RATE, _INTENDED), (_SUBMIT, _INTENDED), (_PLACE, _INTENDED), (_ELECT, _INTENDED)}


@dataclass
class RunTrace:
    """The state of one run after some of its rows, by the specification.

    Attributes:
        last: step and state that was last written, by kind and subject; those of a partition together.
        entries: list entries that were set and not removed: list, partition and broker.
        rates: subjects of rates that were set and not given back.
        rows: number of rows.
        given_back: rates that were given back while something may be moving, by subject.
        violations: rows that may not be where they are, with the reason.
    """

    last: dict[tuple[str, str], str] = field(default_factory=dict)
    entries: set[tuple[str, str, str]] = field(default_factory=set)
    rates: set[str] = field(default_factory=set)
    rows: int = 0
    given_back: dict[str, JournalRow] = field(default_factory=dict)
    violations: list[str] = field(default_factory=list)

    def add(self, row: JournalRow) -> None:
        """Add a row."""
        self.rows += 1
        if row.seq != self.rows:
            self._violate(row, f"is number {row.seq}, not {self.rows}")
        if (row.step, row.state) in _BEGUN and self.last.get((_RUN, ""), _NEW) != _INTENDED:
            self._violate(row, "changes the cluster, and the run has not begun or is over")
        if not (row.step == _RATE or (row.step, row.state) == (_LIST, _INTENDED)):
            self.close()
        self._follow(row)
        if row.step == _LIST:
            self._add_list(row)
        elif row.step == _RATE:
            self._add_rate(row)
        elif row.step == _RUN and row.state != _INTENDED:
            self._end(row)

    @property
    def is_of_plan(self) -> bool:
        """Whether these are rows of a run of a plan."""
        return (_RUN, "") in self.last

    def state(self) -> TraceState:
        """Return the state; equal states are equal."""
        return frozenset(self.last.items()), frozenset(self.entries), frozenset(self.rates)

    def key(self) -> object:
        """Return all that its future depends on."""
        return self.state(), tuple(self.violations)

    def fork(self) -> RunTrace:
        """Return a trace that goes on from here by itself."""
        return RunTrace(
            dict(self.last),
            set(self.entries),
            set(self.rates),
            self.rows,
            dict(self.given_back),
            list(self.violations),
        )

    def close(self) -> None:
        """Count rates that were given back too early. What is set again at once was cleared by others.

        Then what was there before the run is not to come back.
        """
        for row in self.given_back.values():
            self._violate(row, "gives a rate back while partitions of the run may be moving")
        self.given_back = {}

    def unended(self) -> set[str]:
        """Return the partitions whose reassignment by the run may be running."""
        return {subject for (kind, subject), value in self.last.items() if kind == _SUBMIT and value in _UNENDED}

    def _follow(self, row: JournalRow) -> None:
        """Check that the row may follow the last one of its subject."""
        # The directory that a replica leaves for good is written for a rollback, and nothing follows.
        is_leaving = (row.step, row.state, row.after) == (_PLACE, _INTENDED, None)
        if row.step in (_SUBMIT, _FINISH, _CANCEL):
            key, value = (_SUBMIT, row.subject), f"{row.step} {row.state}"
            allowed = _PARTITION[self.last.get(key, _NEW)]
        else:
            # A run has one plan, and a list has entries that come and go.
            key, value = (row.step, "" if row.step == _RUN else row.subject), row.state
            allowed = _AFTER[row.step][self.last.get(key, _NEW)]
        if value not in allowed:
            self._violate(row, f"follows {self.last.get(key, _NEW)!r}")
        self.last[key] = _LEAVING if is_leaving else value

    def _add_list(self, row: JournalRow) -> None:
        entries = {(row.subject, *entry) for entry in _ENTRY.findall(row.after or "")}
        if row.state == _INTENDED:
            self.entries |= entries
        elif row.state == _UNDONE:
            if not entries <= self.entries:
                self._violate(row, "removes entries that are not of the run")
            topic = row.subject.removeprefix("topic ").rpartition(" as ")[0]
            moving = self.unended() & {f"{topic}-{partition}" for _, partition, _ in entries}
            if moving:
                self._violate(row, f"lifts the throttle of {sorted(moving)}, which may be moving")
            self.entries -= entries

    def _add_rate(self, row: JournalRow) -> None:
        if row.state == _INTENDED:
            self.rates.add(row.subject)
            self.given_back.pop(row.subject, None)
        elif row.state == _UNDONE:
            if self.unended() or self._is_placing(row.subject):
                self.given_back[row.subject] = row
            self.rates.discard(row.subject)

    def _is_placing(self, rate: str) -> bool:
        """Return whether a rate is of copies between directories, and a replica of its broker may be on its way."""
        broker, _, role = rate.rpartition(" as ")
        return role == _LOG_DIRS and any(
            kind == _PLACE and value == _INTENDED and subject.endswith(f" on {broker}")
            for (kind, subject), value in self.last.items()
        )

    def _end(self, row: JournalRow) -> None:
        if self.unended():
            self._violate(row, f"ends the run, and {sorted(self.unended())} may be moving")
        placing = sorted(s for (kind, s), value in self.last.items() if kind == _PLACE and value == _INTENDED)
        if placing and row.state == _DONE:
            self._violate(row, f"ends the run, and {placing} may be on their way to a directory")

    def _violate(self, row: JournalRow, reason: str) -> None:
        self.violations.append(f"row {row.seq} of run {row.run_id}, {row.step} {row.subject} {row.state}: {reason}")


@dataclass
class JournalTrace:
    """The traces of the runs of plans in a journal; other commands make their changes in one go.

    Attributes:
        rows: number of rows.
        by_run: trace of each command.
        states: gets all states after a row; None: they are not needed.
    """

    rows: int = 0
    by_run: dict[str, RunTrace] = field(default_factory=dict)
    states: set[TraceState] | None = None

    def add(self, rows: Iterable[JournalRow]) -> None:
        """Add the rows of whole commits."""
        for row in sorted(rows, key=lambda row: row.seq):
            self.rows += 1
            trace = self.by_run.setdefault(row.run_id, RunTrace())
            trace.add(row)
            if self.states is not None and trace.is_of_plan:
                self.states.add(trace.state())
        for trace in self.by_run.values():
            trace.close()

    def traces(self) -> list[RunTrace]:
        """Return the traces of runs of plans."""
        return [trace for trace in self.by_run.values() if trace.is_of_plan]

    def violations(self) -> list[str]:
        """Return what is wrong in them."""
        return [violation for trace in self.traces() for violation in trace.violations]

    def fork(self) -> JournalTrace:
        """Return the traces of a journal that goes on from here by itself; the states are collected together."""
        return replace(self, by_run={run_id: trace.fork() for run_id, trace in self.by_run.items()})


def journal_violations(rows: Iterable[JournalRow]) -> list[str]:
    """Return what is wrong in the runs of plans of a journal, whose rows are of whole commits."""
    trace = JournalTrace()
    trace.add(rows)
    return trace.violations()

"""Runs that are killed at pairs of steps, and the specification of their journal: it finds what is seeded here."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from benchmarks.groups.reassign.crash_points import CrashPointOptions, measure
from headroom.cluster.reassignment.execution import cleaning
from headroom.cluster.reassignment.execution.executor import ReassignmentExecutor
from headroom.cluster.reassignment.execution.moves import RunMoves
from headroom.cluster.reassignment.execution.throttling import RunThrottle, _removals
from headroom.planning.reassignments.run.journal import StepState
from headroom.planning.reassignments.run.record import Submission
from headroom.planning.reassignments.run.snapshot import RunSnapshot
from headroom.schemas.errors import HeadroomError
from headroom.schemas.keys import TopicPartition
from tests.support.journal_specification import journal_violations
from tests.unit.builders.run_stage import killed_at_each_step
from tests.unit.cluster.reassignment import test_placement
from tests.unit.cluster.reassignment.test_executor import Stage
from tests.unit.fakes.reassigned_cluster import FakeJournal


def test_runs_that_are_killed_at_some_pairs_of_steps_leave_nothing_behind() -> None:
    problems: list[str] = []
    figures = {
        one.name: one.value
        for one in measure(problems.append, CrashPointOptions(every=37, scenes_every=7, processes=1))
    }
    assert figures["reassign_crash_points"] > 300
    assert figures["specification_states"] > 30
    assert figures["traces_checked"] > 200
    left = ("reassign_crash_points_left_behind", "reassign_crash_points_foreign_changed", "trace_violations")
    assert [figures[name] for name in left] == [0, 0, 0], [text for text in problems if "left behind" in text]


def violations_of(monkeypatch: pytest.MonkeyPatch, owner: type, name: str, seeded: object) -> list[str]:
    """Return what the specification finds in the journal of a run whose code has a fault."""
    monkeypatch.setattr(owner, name, seeded)
    # The journal of the tests refuses such rows at once.
    monkeypatch.setattr(FakeJournal, "append", lambda self, rows: self.kept.extend(rows))
    stage = Stage()
    stage.run()
    return journal_violations(stage.journal.kept)


def test_a_journal_in_which_the_throttle_goes_before_its_move_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    def release(self: RunThrottle, snapshot: RunSnapshot) -> None:
        self._journal.write(_removals(self._journal.record.entries))

    found = violations_of(monkeypatch, RunThrottle, "release", release)
    assert any("lifts the throttle of" in violation for violation in found)


def test_a_reassignment_that_is_written_after_it_was_submitted_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    def submit(self: RunMoves, moves: Mapping[TopicPartition, Submission]) -> Mapping[TopicPartition, str]:
        before = self._journal
        rows: list[object] = []
        self._journal = type("Later", (), {"write": rows.extend, "record": before.record})()  # type: ignore[assignment]
        try:
            return whole(self, moves)
        finally:
            self._journal = before
            before.write([row for row in rows if row.state is not StepState.INTENDED])  # type: ignore[attr-defined]

    whole = RunMoves.submit
    found = violations_of(monkeypatch, RunMoves, "submit", submit)
    assert any("submit" in violation and "follows 'new'" in violation for violation in found)


def test_a_run_that_ends_while_its_partitions_move_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    def watch(self: ReassignmentExecutor, what: str = "the run") -> RunSnapshot:
        return self._control.read()

    found = violations_of(monkeypatch, ReassignmentExecutor, "_watch", watch)
    assert any("ends the run, and" in violation for violation in found)
    assert any("gives a rate back while" in violation for violation in found)


def test_a_rate_that_goes_back_while_a_replica_is_copied_between_directories_is_found(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(cleaning, "copying_of", lambda *args: [])
    found: set[str] = set()
    for stage in killed_at_each_step(test_placement.Stage):
        if stage.cluster.futures and not stage.cluster.left and stage.journal.records():
            stage.journal.is_strict = False
            stage.clean()
            found.update(stage.journal.trace.violations())
    assert any("as log_dirs undone: gives a rate back while" in violation for violation in found)


def test_the_journal_of_the_tests_refuses_rows_that_break_the_specification() -> None:
    stage = Stage()
    stage.run()
    rows = stage.journal.kept
    with pytest.raises((AssertionError, HeadroomError)):
        FakeJournal().append(
            [row for row in rows if row.step != "run"][:1] + [row for row in rows if row.step == "run"]
        )

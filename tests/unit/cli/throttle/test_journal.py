"""Changes of throttles in the journal; without one they are made all the same."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from headroom.cluster.model import TopicConfig
from headroom.operations.throttles.clear_plan import clear_plan, clear_steps, owner_notes
from headroom.planning.reassignments.run.owners import ThrottleOwner
from headroom.streaming.tables.journal import ActionJournal
from tests.unit.builders.throttle_views import OWN, STILL, UNLISTED, FakeCluster, run, view_of


@pytest.fixture
def cluster(monkeypatch: pytest.MonkeyPatch) -> FakeCluster:
    fake = FakeCluster(view_of({1: replace(OWN, leader_bytes_per_s=5_600_000), 2: OWN}))
    fake.install(monkeypatch)
    return fake


def test_apply_writes_each_rate_with_the_one_before(cluster: FakeCluster, store: Path) -> None:
    assert run("apply", "--rate", "9.6MB", "--brokers", "1", "--role", "leader", "--execute").exit_code == 0
    rows = ActionJournal(str(store)).rows("kafka")
    assert [(row.command, row.step, row.state, row.subject, row.before, row.after) for row in rows] == [
        ("throttle apply", "rate", state, "broker 1 as leader", "5600000", "9600000") for state in ("intended", "done")
    ]


def test_apply_writes_the_entries_that_it_adds_and_clear_and_show_name_it(
    monkeypatch: pytest.MonkeyPatch, store: Path
) -> None:
    FakeCluster(view_of(configs={"t": UNLISTED, "still": UNLISTED})).install(monkeypatch)
    assert run("apply", "--rate", "9MB", "--brokers", "1", "--lists", "--execute").exit_code == 0
    rows = [row for row in ActionJournal(str(store)).rows("kafka") if row.step == "list"]
    assert [(row.command, row.state, row.subject, row.before, row.after) for row in rows] == [
        ("throttle apply", state, subject, None, entries)
        for state in ("intended", "done")
        for subject, entries in (("topic t as leader", "0:1,0:2"), ("topic t as follower", "0:3"))
    ]
    # The move has ended.
    listed = {"t": UNLISTED, "still": TopicConfig("0:1,0:2", "0:3", compacted=False)}
    FakeCluster(view_of({1: OWN}, partitions=(STILL,), configs=listed)).install(monkeypatch)
    assert "(throttle apply)" in run("show").stdout
    cleared = run("clear")
    assert "Throttle apply by " in cleared.stderr
    assert "has set broker 1 as leader, broker 1 as follower" in cleared.stderr


def test_entries_that_were_refused_are_not_its_own(monkeypatch: pytest.MonkeyPatch, store: Path) -> None:
    fake = FakeCluster(view_of(configs={"t": UNLISTED, "still": UNLISTED}))
    fake.install(monkeypatch)
    fake.refusing = {"t"}
    run("apply", "--rate", "9MB", "--brokers", "1", "--lists", "--execute")
    states = [row.state for row in ActionJournal(str(store)).rows("kafka") if row.step == "list"]
    assert states == ["intended", "intended", "failed", "failed"]


def test_clear_names_the_run_that_set_it_and_the_command_that_removes_only_that() -> None:
    view = view_of({1: OWN})
    steps = clear_steps(view, clear_plan(view, None, cluster_default=False))
    run_of_plan = ThrottleOwner("r-1", "reassign run", "anna@host", runs_plan=True, unfinished=True)
    (note,) = owner_notes(steps, {"broker 1 as leader": run_of_plan, "broker 9 as leader": run_of_plan})
    assert note == (
        "Run r-1 (reassign run, anna@host) has set broker 1 as leader and has not ended; only that is removed by: "
        "headroom reassign clean r-1 --execute"
    )
    (note,) = owner_notes(steps, {"broker 1 as leader": run_of_plan}, "b.toml")
    assert note.endswith("headroom reassign clean r-1 --config b.toml --execute")
    running = replace(run_of_plan, process="pid 7 on host host1")
    (note,) = owner_notes(steps, {"broker 1 as leader": running})
    assert note == (
        "Run r-1 (reassign run, anna@host) has set broker 1 as leader and is running (pid 7 on host host1), with no "
        "reassignment at the moment: it pauses between two batches, or ends. It removes that itself when it ends."
    )
    (note,) = owner_notes(steps, {"broker 1 as leader": running}, moves=True)
    assert "is running (pid 7 on host host1). It removes" in note


def test_a_store_that_cannot_be_written_stops_no_throttle(cluster: FakeCluster, store: Path) -> None:
    store.write_text("a file")
    result = run("apply", "--rate", "9.6MB", "--brokers", "1", "--execute")
    assert (result.exit_code, "Note: The change is not in the journal" in result.stderr) == (0, True)


def test_clear_has_every_rate_and_list_that_it_removes() -> None:
    view = view_of({1: OWN})
    steps = clear_steps(view, clear_plan(view, None, cluster_default=False))
    assert [(step.subject, step.before) for step in steps] == [
        ("broker 1 as leader", "5000000"),
        ("broker 1 as follower", "5000000"),
        ("topic t as leader", "0:1,0:2"),
        ("topic t as follower", "0:3"),
    ]

"""Runs of several stores on one cluster see each other by its run lock."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result
from kafka.errors import GroupAuthorizationFailedError

from headroom.cli.config.load import load_settings
from headroom.cli.main import headroom
from headroom.operations.journal import session as sessions
from headroom.operations.journal.session import RunSession
from headroom.planning.reassignments.cluster_state import PartitionPlacement
from headroom.planning.reassignments.run.journal import JournalStep, StepKind, StepState
from headroom.schemas.errors import HeadroomError
from headroom.schemas.keys import TopicPartition
from tests.unit.builders.live_commands import let_commands_open
from tests.unit.fakes.group_coordinator import FakeCoordinator
from tests.unit.fakes.reassigned_cluster import FakeReassignedCluster

PARTITION = TopicPartition("orders", 0)


@pytest.fixture
def cluster(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> FakeReassignedCluster:
    placement = PartitionPlacement("orders", 0, 1, (1, 2), (1, 2))
    fake = FakeReassignedCluster({PARTITION: placement}, {1, 2, 3, 4}, looks=1)
    let_commands_open(fake, monkeypatch, tmp_path)
    monkeypatch.setenv("HEADROOM_REASSIGN__LOCK_GROUP", "runs")
    return fake


@pytest.fixture
def coordinator(monkeypatch: pytest.MonkeyPatch) -> FakeCoordinator:
    fake = FakeCoordinator()
    monkeypatch.setattr(sessions, "CoordinatedGroup", lambda *_: fake.client())
    return fake


@pytest.fixture
def plan(tmp_path: Path) -> str:
    file = tmp_path / "move.json"
    rows = [{"topic": "orders", "partition": 0, "replicas": [3, 2]}]
    file.write_text(json.dumps({"version": 1, "partitions": rows}))
    return str(file)


def run(*arguments: str) -> Result:
    return CliRunner().invoke(headroom, ["reassign", *arguments])


@pytest.mark.parametrize("words", [["run", "move.json", "--execute", "--yes"], ["clean", "--execute"]])
def test_a_run_of_another_store_is_refused(
    words: list[str],
    cluster: FakeReassignedCluster,
    coordinator: FakeCoordinator,
    plan: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    Path("other").mkdir()
    with RunSession(load_settings(None), "reassign run").alone():
        monkeypatch.setenv("HEADROOM_STORE__PATH", str(Path("other").absolute()))
        refused = run(*words)
        # A living holder is not overridden.
        forced = run(*words, "--force")
        assert len(coordinator.members) == 1
    for result in (refused, forced):
        assert "is worked on by another process, " in str(result.exception)
        assert "two runs would take back each other's throttles" in str(result.exception)
    assert cluster.requests == []
    assert coordinator.members == {}
    assert run(*words).exit_code == 0


def test_the_lock_is_left_after_a_run_and_after_an_error(
    cluster: FakeReassignedCluster, coordinator: FakeCoordinator, plan: str
) -> None:
    done = run("run", plan, "--execute", "--yes")
    assert done.exit_code == 0, done.output
    assert (coordinator.members, len(coordinator.left)) == ({}, 1)
    assert run("run", plan, "--fingerprint", "other", "--execute", "--yes").exit_code == 1
    assert (coordinator.members, len(coordinator.left)) == ({}, 2)
    # What only looks takes no lock.
    run("run", plan)
    run("clean")
    assert len(coordinator.left) == 2


def test_a_run_without_the_lock_has_a_note(
    cluster: FakeReassignedCluster, plan: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    group = FakeCoordinator().client()
    group.errors = {"new_member": [GroupAuthorizationFailedError()]}
    monkeypatch.setattr(sessions, "CoordinatedGroup", lambda *_: group)
    done = run("run", plan, "--execute", "--yes")
    assert done.exit_code == 0, done.output
    assert "Note: Runs of other stores on this cluster are not seen: this user may not join" in done.stderr
    assert "the group runs. Grant READ on group runs to this user." in done.stderr


class LostLock:
    """A lock that another process has taken while the operator was asked."""

    def __init__(self, *_: object) -> None:
        """Take nothing."""

    def take(self, left_member: str | None) -> None:
        """Take it."""

    def note_run(self, run_id: str) -> None:
        """Note nothing."""

    def when_lost(self, on_lost: Callable[[str], None]) -> None:
        on_lost("the run lock of the cluster is lost: bert@host2 has it now")

    def require_not_lost(self) -> None:
        raise HeadroomError("cluster orders", "the run lock of the cluster is lost: bert@host2 has it now", "Wait.")

    def release(self) -> None:
        """Leave nothing."""


def test_a_run_that_has_lost_the_lock_stops_and_names_who_has_it(
    cluster: FakeReassignedCluster, plan: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sessions, "RunLock", LostLock)
    stopped: Any = run("run", plan, "--execute", "--yes")
    assert stopped.exit_code == 1
    assert "Stopping: the run lock of the cluster is lost: bert@host2 has it now" in stopped.stderr
    reason = "ended early: batch 1 did not begin: the run lock of the cluster is lost: bert@host2 has it now"
    assert reason in str(stopped.exception)
    assert cluster.partitions[PARTITION].replicas == (1, 2)


def test_a_clean_that_has_lost_the_lock_cleans_no_further_run(
    cluster: FakeReassignedCluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    begun = JournalStep(StepKind.RUN, StepState.INTENDED, "plan")
    RunSession(load_settings(None), "reassign run").journal().write([begun])
    monkeypatch.setattr(sessions, "RunLock", LostLock)
    assert "bert@host2 has it now" in str(run("clean", "--execute").exception)
    (record,) = RunSession(load_settings(None), "x").records
    assert record.rows == 1


def test_a_run_that_has_lost_the_lock_stops_although_its_output_is_closed(
    cluster: FakeReassignedCluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    session, stop = RunSession(load_settings(None), "reassign run"), threading.Event()
    monkeypatch.setattr(session, "_lock", LostLock())

    def print_line(text: str) -> None:
        raise BrokenPipeError

    with pytest.raises(BrokenPipeError):
        session.stop_if_lost(stop, print_line)
    assert stop.is_set()

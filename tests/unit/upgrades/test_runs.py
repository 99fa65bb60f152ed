"""Runs that an earlier version has begun, in its journal: listed, gone on with, cancelled, cleaned and rolled back."""

from __future__ import annotations

import shlex
import shutil
from pathlib import Path

import pytest

from headroom.schemas.keys import BrokerRole, ReplicaKey, Role, TopicPartition
from headroom.streaming.tables.throttle_owners import read_owners
from tests.unit.builders.commands import json_of, run_headroom, succeed
from tests.unit.fakes.reassigned_cluster import FakeReassignedCluster
from tests.unit.upgrades.saved import save_journal, scene

# The rate from before all runs.
OF_OTHERS = {BrokerRole(2, Role.LEADER): 90_000_000}
BEFORE = {0: (1, 2), 1: (2, 3), 2: (3, 2, 1), 3: (1, 3), 4: (2, 1), 5: (3, 1)}
EARLIER, KILLED = "5d91068f", "2beb1f85"
RUN_BATCHES = ("reassign", "run", "--batches-dir", "batches", "--execute", "--yes", "--throttle")


@pytest.fixture
def killed_run(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> FakeReassignedCluster:
    return scene("killed_run", monkeypatch, tmp_path)


@pytest.fixture
def killed_cancel(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> FakeReassignedCluster:
    return scene("killed_cancel", monkeypatch, tmp_path)


@pytest.fixture
def killed_directories(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> FakeReassignedCluster:
    """Killed while it copied; nobody has cancelled it."""
    return scene("killed_directories", monkeypatch, tmp_path, "killed_cancel", without="reassign cancel")


def replicas(cluster: FakeReassignedCluster) -> dict[int, tuple[int, ...]]:
    return {name.partition: partition.replicas for name, partition in cluster.partitions.items()}


def states() -> list[tuple[str, str, int]]:
    """Id, status and number of damaged rows of every run."""
    return [(run["run_id"], run["status"], len(run["damaged_rows"])) for run in json_of("reassign", "runs")["runs"]]


def test_a_killed_run_is_listed_with_what_it_has_left(killed_run: FakeReassignedCluster) -> None:
    assert states() == [(EARLIER, "done", 0), (KILLED, "unfinished", 0)]
    killed = json_of("reassign", "runs")["runs"][1]
    assert (killed["submitted"], killed["finished"], killed["by"]) == (5, 3, "anna@host1")
    left = killed["left_behind"]
    assert {(rate["broker"], rate["role"]) for rate in left["rates"]} == {
        (1, "leader"),
        (3, "leader"),
        (3, "follower"),
        (4, "follower"),
    }
    assert "To remove what is left behind: headroom reassign clean --execute" in succeed("reassign", "runs").output
    killed_run.left = dict.fromkeys(killed_run.left, 100)
    assert "2 partitions: 2 moving." in run_headroom("reassign", "verify", "batches/batch-02.json").output


@pytest.mark.parametrize("throttle", ["20MB", "30MB", "10MB"])
def test_the_same_command_goes_on_with_a_killed_run(killed_run: FakeReassignedCluster, throttle: str) -> None:
    done = json_of(*RUN_BATCHES, throttle)
    assert (done["resumes"], done["run_id"], done["state"], done["refused"]) == (True, KILLED, "done", [])
    assert replicas(killed_run) == {0: (3, 2), 1: (3, 2), 2: (3, 2, 4), 3: (4, 3), 4: (2, 3), 5: (3, 4)}
    assert (killed_run.rates, killed_run.lists) == (OF_OTHERS, {})
    assert states() == [(EARLIER, "done", 0), (KILLED, "done", 0)]


def test_another_run_is_refused_while_a_killed_one_is_unfinished(killed_run: FakeReassignedCluster) -> None:
    refused = run_headroom("reassign", "run", "earlier.json", "--execute", "--yes")
    assert f"run {KILLED}: is unfinished" in str(refused.exception)


def test_clean_ends_a_killed_run_when_nothing_of_it_moves(killed_run: FakeReassignedCluster) -> None:
    killed_run.left = dict.fromkeys(killed_run.left, 100)
    throttled = dict(killed_run.rates), dict(killed_run.lists)
    refused = run_headroom("reassign", "clean", "--execute")
    assert "orders-2, orders-3: still moves, so its throttle stays" in str(refused.exception)
    assert (killed_run.rates, killed_run.lists) == throttled
    killed_run.left = dict.fromkeys(killed_run.left, 1)
    succeed("reassign", "clean", "--execute")
    assert (killed_run.rates, killed_run.lists) == (OF_OTHERS, {})
    assert states()[1][:2] == (KILLED, "ended")


def test_cancel_restores_the_orders_that_the_journal_has(killed_run: FakeReassignedCluster) -> None:
    killed_run.left = dict.fromkeys(killed_run.left, 100)
    succeed("reassign", "cancel", "--all", "--execute", "--yes")
    assert replicas(killed_run) == {0: (3, 2), 1: (3, 2), 2: (3, 2, 1), 3: (1, 3), 4: (2, 3), 5: (3, 4)}
    succeed("reassign", "clean", "--execute")
    assert (killed_run.rates, killed_run.lists) == (OF_OTHERS, {})


def test_runs_of_an_earlier_version_are_rolled_back(killed_run: FakeReassignedCluster) -> None:
    succeed(*RUN_BATCHES, "20MB")
    for run_id in (KILLED, EARLIER):
        succeed("reassign", "rollback", run_id, "--throttle", "20MB", "--execute", "--yes")
    assert replicas(killed_run) == BEFORE
    assert (killed_run.rates, killed_run.lists) == (OF_OTHERS, {})


def test_a_cancel_that_was_killed_is_finished(killed_cancel: FakeReassignedCluster) -> None:
    assert replicas(killed_cancel)[2] == (2, 1, 3)
    killed_cancel.futures = {replica: (path, 100) for replica, (path, _) in killed_cancel.futures.items()}
    succeed("reassign", "cancel", "--all", "--execute", "--yes")
    assert (replicas(killed_cancel), killed_cancel.futures) == (BEFORE, {})
    succeed("reassign", "clean", "--execute")
    assert (killed_cancel.rates, killed_cancel.lists) == (OF_OTHERS, {})


def test_the_command_in_the_journal_goes_on_with_the_directories_of_a_plan(
    killed_directories: FakeReassignedCluster, tmp_path: Path
) -> None:
    owner = read_owners(str(tmp_path / "store"), "kafka")["broker 2 as log_dirs"]
    # The earlier version took 600 kB/s without the flag.
    rates = "--throttle 600000 --log-dirs-throttle 5000000 --low-rate"
    command = f"headroom reassign run directories.json {rates} --execute"
    assert (owner.run_id, owner.continue_command) == ("8ec0a9f6", command)
    succeed(*shlex.split(command)[1:], "--yes")
    assert replicas(killed_directories) == {**BEFORE, 2: (4, 2, 1)}
    paths = killed_directories.paths
    assert (paths[ReplicaKey(TopicPartition("orders", 1), 2)], paths[ReplicaKey(TopicPartition("orders", 2), 4)]) == (
        "/b",
        "/b",
    )
    assert (killed_directories.rates, killed_directories.lists) == (OF_OTHERS, {})
    succeed("reassign", "rollback", owner.run_id, "--execute", "--yes")
    assert replicas(killed_directories) == BEFORE
    assert killed_directories.path_of(ReplicaKey(TopicPartition("orders", 1), 2)) == "/a"


def test_throttles_of_another_command_are_of_that_command(killed_run: FakeReassignedCluster, tmp_path: Path) -> None:
    shutil.rmtree(tmp_path / "store")
    save_journal(tmp_path / "store", "throttle_apply")
    owners = read_owners(str(tmp_path / "store"), "kafka")
    assert {str(owner) for owner in owners.values()} == {"throttle apply by anna@host1"}
    assert set(owners) == {"topic t as leader", "topic t as follower"} | {
        f"broker {broker} as {role.value}" for broker in (1, 2, 3) for role in Role
    }
    assert states() == []
    assert "set with throttle apply by anna@host1" in succeed("reassign", "clean").output

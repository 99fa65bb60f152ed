"""Plans, states and proposals in files of an earlier version: read, carried out, and rolled back."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace
from pathlib import Path

import pytest

from headroom.cli.elections import command as elections_command
from headroom.cluster.elections.leadership import LeadershipSnapshot
from headroom.cluster.elections.traffic import Traffic
from headroom.cluster.log_dirs.describe import LogDirsReading
from headroom.operations.balance import cluster as cluster_module
from headroom.operations.balance import written_proposal
from headroom.operations.plans.state_file import read_state
from headroom.planning.elections.planner import PartitionState
from headroom.planning.reassignments.cluster_state import ClusterState, PartitionPlacement
from headroom.schemas.keys import TopicPartition
from tests.unit.builders.balance_states import GB, MB, broker, state_of
from tests.unit.builders.commands import json_of, succeed
from tests.unit.builders.leadership import FakeCluster, away
from tests.unit.builders.live_commands import let_commands_open
from tests.unit.fakes.reassigned_cluster import FakeReassignedCluster
from tests.unit.upgrades.saved import PLANS, scene

# By the journal and the output of the earlier version.
FINGERPRINT = "f925280f0919e9f3"
REPLICAS = {0: (1, 2), 1: (2, 3), 2: (3, 2, 1), 3: (1, 3), 4: (2, 1), 5: (3, 1)}


@pytest.fixture
def cluster(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> FakeReassignedCluster:
    """The cluster of the saved state."""
    placements = [PartitionPlacement("orders", n, r[0], r, r) for n, r in REPLICAS.items()]
    fake = FakeReassignedCluster({p.name: p for p in placements}, {1, 2, 3, 4}, looks=1)
    let_commands_open(fake, monkeypatch, tmp_path)
    return fake


def replicas(cluster: FakeReassignedCluster) -> dict[int, tuple[int, ...]]:
    return {name.partition: partition.replicas for name, partition in cluster.partitions.items()}


@pytest.mark.parametrize("folder", ["batches", "drain"])
def test_batches_are_carried_out_as_they_were_estimated_and_rolled_back(
    cluster: FakeReassignedCluster, folder: str
) -> None:
    files = str(PLANS / folder)
    run = ("reassign", "run", "--batches-dir", files, "--throttle", "20MB", "--fingerprint", FINGERPRINT)
    assert json_of(*run, "--execute", "--yes")["state"] == "done"
    assert not [b for placed in replicas(cluster).values() for b in placed if b == 1]
    succeed("reassign", "run", f"{files}/rollback.json", "--throttle", "20MB", "--execute", "--yes")
    assert replicas(cluster) == REPLICAS
    assert (cluster.rates, cluster.lists) == ({}, {})


def test_a_saved_state_gives_the_same_plan_with_the_same_fingerprint(cluster: FakeReassignedCluster) -> None:
    state = ("plan", "--state", str(PLANS / "plan_state.json"))
    # Since then a second part covers the replicas from before the run.
    fingerprint = json_of(*state, "--drain", "1", "--max-throttle", "20MB")["fingerprint"]
    assert fingerprint.partition("-")[0] == FINGERPRINT
    (moves,) = json_of(*state, str(PLANS / "directories.json"))["directory_moves"]
    # The path of orders-1 on broker 2 is not in the state.
    assert moves["broker"] == 2


def test_every_value_of_a_saved_state_is_read() -> None:
    state = read_state(PLANS / "plan_state.json")
    assert (state.cluster, state.read_ms, state.rates_from) == ("kafka", 1_800_000_000_000, "two readings")
    assert state.auto_leader_rebalance is True
    second = state.brokers[2]
    assert (second.rack, second.leader_bytes_per_s, second.follower_bytes_per_s) == ("a", 90_000_000, None)
    assert [(d.path, d.total_bytes, d.usable_bytes) for d in second.log_dirs] == [
        ("/a", 1000 * GB, 900 * GB),
        ("/b", 500 * GB, 400 * GB),
    ]
    last = state.partitions[TopicPartition("orders", 5)]
    assert (last.replicas, last.leader, last.size_bytes, last.write_bytes_per_s) == ((3, 1), 3, 6 * GB, 1.5 * MB)
    assert state.lists["orders"].leader == "5:3"


def test_loads_of_a_saved_state_are_scored_and_balanced(cluster: FakeReassignedCluster) -> None:
    scored = json_of("balance", "--state", str(PLANS / "balance_state.json"))
    assert scored["hours"] == {"wanted": 24, "seen": 2}
    assert scored["loads_from"] == "gold/partition_load"
    assert json_of("balance", "propose", "--state", str(PLANS / "balance_state.json"))["asked_goals"] is None


class Live:
    """The running cluster as commands on balance read it."""

    def __init__(self, fake: FakeReassignedCluster) -> None:
        self._fake = fake

    def __enter__(self) -> Live:
        return self

    def __exit__(self, *error: object) -> None:
        """Close."""

    def partitions(self) -> Collection[TopicPartition]:
        return self._fake.partitions.keys()

    def measured_state(self, names: Collection[TopicPartition]) -> tuple[ClusterState, Traffic]:
        rated = [replace(p, size_bytes=GB, write_bytes_per_s=7.0 * MB) for p in self._fake.partitions.values()]
        state = replace(state_of([broker(n) for n in (1, 2, 3)], rated), cluster="kafka")
        return state, Traffic(read=dict.fromkeys(names, 2.0 * MB))

    def log_dirs(self, brokers: Collection[int]) -> LogDirsReading:
        return LogDirsReading({}, {})

    def leadership(self) -> LeadershipSnapshot:
        states = {
            name: PartitionState(name, p.leader, p.replicas, p.isr, p.moving)
            for name, p in self._fake.partitions.items()
        }
        return LeadershipSnapshot(states, frozenset(self._fake.alive), frozenset())


def test_a_proposal_goes_on_with_the_batch_that_was_killed(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    fake = scene("killed_balance", monkeypatch, tmp_path)
    monkeypatch.setattr(cluster_module, "LiveCluster", lambda settings, scope: Live(fake))
    monkeypatch.setattr(written_proposal, "LiveCluster", lambda settings: Live(fake))
    shown = json_of("balance", "status", "proposal")
    assert (shown["batches"], [one["partition"] for one in shown["moving"]]) == (2, [0, 2])
    assert "Batch 2 of 2 was interrupted, and goes on." in succeed("balance", "run", "proposal").output
    assert json_of("balance", "run", "proposal", "--execute", "--yes")["ran"] == [2]
    assert replicas(fake) == {0: (3, 1), 1: (2, 1), 2: (3, 2), 3: (1, 2)}
    assert (fake.rates, fake.lists) == ({}, {})
    assert "All 2 batches are done." in succeed("balance", "run", "proposal").output
    succeed("reassign", "run", "proposal/rollback-02.json", "--throttle", "20MB", "--execute", "--yes")
    assert replicas(fake)[0] == (2, 1)


def test_a_proposal_is_carried_out_from_its_first_batch(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    fake = scene("killed_balance", monkeypatch, tmp_path, without="balance run")
    placements = [PartitionPlacement("orders", n, 1, (1, 2), (1, 2)) for n in range(4)]
    fake.partitions, fake.left = {p.name: p for p in placements}, {}
    fake.rates, fake.lists = {}, {}
    monkeypatch.setattr(cluster_module, "LiveCluster", lambda settings, scope: Live(fake))
    monkeypatch.setattr(written_proposal, "LiveCluster", lambda settings: Live(fake))
    ran = json_of("balance", "run", "proposal", "--execute", "--yes")
    assert ran["ran"] == [1, 2]
    assert ran["outside_after"] < ran["outside_before"]
    assert replicas(fake) == {0: (3, 1), 1: (2, 1), 2: (3, 2), 3: (1, 2)}


def test_the_elections_of_files_are_made(cluster: FakeReassignedCluster, monkeypatch: pytest.MonkeyPatch) -> None:
    leaders = FakeCluster(*(away("t", n) for n in range(4)), away("orders", 0), away("orders", 1))
    monkeypatch.setattr(elections_command, "LiveCluster", lambda settings: leaders)
    monkeypatch.setenv("HEADROOM_ELECTIONS__PAUSE_S", "0")
    for file in ("elections/batch-001.json", "elections/batch-002.json", "proposal/elections-01.json"):
        succeed("elections", "--file", str(PLANS / file), "--execute", "--yes")
    assert leaders.asked == [
        (("t", 0), ("t", 1)),
        (("t", 2),),
        (("orders", 0), ("orders", 1)),
    ]

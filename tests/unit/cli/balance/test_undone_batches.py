"""Batches of a proposal that a leader switch makes undone after later batches have moved their partitions further."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from headroom.cli.main import headroom
from headroom.operations.balance import written_proposal
from headroom.planning.elections.planner import PartitionState
from headroom.planning.reassignments.plan import ReassignmentPlan, TargetAssignment, plan_json
from headroom.schemas.errors import HeadroomError
from headroom.schemas.keys import TopicPartition
from tests.unit.builders.balance_states import GB
from tests.unit.builders.leadership import FakeCluster
from tests.unit.builders.live_commands import let_commands_open
from tests.unit.cli.balance.test_live import FakeReader, store
from tests.unit.fakes.reassigned_cluster import FakeReassignedCluster

__all__ = ["store"]

P, Q = TopicPartition("orders", 0), TopicPartition("orders", 1)
Replicas = dict[TopicPartition, tuple[int, ...]]
# Broker 1 leads all; broker 2 follows, and broker 3 has nothing.
BEFORE: Replicas = {P: (1, 2), Q: (1, 2)}
ELECTED: Replicas = {P: (2, 1), Q: (2, 1)}
MOVED: Replicas = {Q: (2, 3)}


@pytest.fixture
def cluster(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> FakeReassignedCluster:
    """The cluster of ``test_live`` in memory: runs change it, and the command reads it again before each batch."""
    state = FakeReader.state
    fake = FakeReassignedCluster(dict(state.partitions), {1, 2, 3}, looks=1)
    let_commands_open(fake, monkeypatch, tmp_path)

    def leadership(settings: object) -> FakeCluster:
        now = fake.partitions.values()
        return FakeCluster(*(PartitionState(p.name, p.leader, p.replicas, p.isr, p.moving) for p in now))

    def state_now(reader: object) -> object:
        sized = {name: replace(p, size_bytes=GB) for name, p in fake.partitions.items()}
        return replace(state, partitions=sized)

    monkeypatch.setattr(written_proposal, "LiveCluster", leadership)
    monkeypatch.setattr(FakeReader, "state", property(state_now))
    return fake


def plan(targets: Replicas) -> ReassignmentPlan:
    return ReassignmentPlan(tuple(TargetAssignment(name, replicas) for name, replicas in targets.items()))


def write_proposal(*batches: Replicas) -> None:
    """Write a proposal with these target replicas; a batch copies if it changes more than the order."""
    now, written = dict(BEFORE), []
    for targets in batches:
        before = {name: now[name] for name in targets}
        written.append(
            {
                "plan": plan_json(plan(targets)),
                "rollback": plan_json(plan(before)),
                "fingerprint": plan(targets).fingerprint({"orders": "id-orders"}),
                "copied_replicas": sum(len(set(r).difference(now[name])) for name, r in targets.items()),
            }
        )
        now |= targets
    Path("out").mkdir()
    document = {"proposal_id": "a1", "cluster": "c", "throttle_bytes_per_s": 50_000_000, "batches": written}
    (Path("out") / "proposal.json").write_text(json.dumps(document))


def balance(*words: str) -> Result:
    return CliRunner().invoke(headroom, ["balance", *words])


def carried_out() -> Result:
    done = balance("run", "out", "--execute", "--yes")
    assert done.exit_code == 0, (done.output, done.exception)
    return done


def give_lead(cluster: FakeReassignedCluster, name: TopicPartition, leader: int) -> None:
    cluster.partitions[name] = replace(cluster.partitions[name], leader=leader)
    cluster.requests.clear()
    cluster.elected.clear()


def places(cluster: FakeReassignedCluster) -> dict[TopicPartition, tuple[int | None, tuple[int, ...]]]:
    """Leader and replicas of the partitions of the proposal."""
    return {name: (cluster.partitions[name].leader, cluster.partitions[name].replicas) for name in BEFORE}


def test_a_batch_that_a_leader_switch_makes_undone_elects_and_moves_nothing_back(
    cluster: FakeReassignedCluster,
) -> None:
    write_proposal(ELECTED, MOVED)
    carried_out()
    assert places(cluster) == {P: (2, (2, 1)), Q: (2, (2, 3))}
    give_lead(cluster, P, 1)
    shown = balance("status", "out").stdout
    assert "1 of 2 batches are done" in shown
    # Its file would move orders-1 back, and without a throttle.
    assert "Next: $ headroom balance run out --execute\n" in shown
    done = carried_out()
    assert "Batch 1 of 2: later batches have moved orders-1 further already, so it leaves them out." in done.stdout
    assert "All 2 batches are done." in done.stdout
    assert (cluster.requests, cluster.elected) == ([], [P])
    assert places(cluster) == {P: (2, (2, 1)), Q: (2, (2, 3))}


def test_the_batch_goes_on_with_the_same_partitions_after_elections_that_failed(
    cluster: FakeReassignedCluster,
) -> None:
    write_proposal(ELECTED, MOVED)
    carried_out()
    give_lead(cluster, P, 1)
    cluster.left_out = {P: "replica out of sync"}
    assert isinstance(balance("run", "out", "--execute", "--yes").exception, HeadroomError)
    cluster.left_out = {}
    assert "Batch 1 of 2 was interrupted, and goes on." in carried_out().stdout
    assert (cluster.requests, cluster.elected) == ([], [P])
    assert places(cluster) == {P: (2, (2, 1)), Q: (2, (2, 3))}


def test_a_single_batch_is_not_called_all_batches(cluster: FakeReassignedCluster) -> None:
    write_proposal(ELECTED)
    assert "The only batch is done." in carried_out().stdout


def test_a_late_election_stays_when_the_batch_of_its_copy_is_undone(cluster: FakeReassignedCluster) -> None:
    """Batch 1 copies both, and broker 1 leads orders-1 until batch 2."""
    write_proposal({P: (2, 3), Q: (1, 3)}, {Q: (3, 1)})
    carried_out()
    assert places(cluster) == {P: (2, (2, 3)), Q: (3, (3, 1))}
    give_lead(cluster, P, 3)
    carried_out()
    assert (cluster.requests, cluster.elected) == ([], [P])
    assert places(cluster) == {P: (2, (2, 3)), Q: (3, (3, 1))}


def test_a_batch_before_a_later_one_is_carried_out_as_a_whole(cluster: FakeReassignedCluster) -> None:
    write_proposal(ELECTED, MOVED)
    assert "Next: $ headroom reassign run out/batch-01.json" in balance("status", "out").stdout
    carried_out()
    assert sorted(cluster.elected) == [P, Q]

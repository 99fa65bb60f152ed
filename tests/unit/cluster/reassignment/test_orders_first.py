"""A run whose first batch gives up the leads of a drained broker: elections come before the copies, once."""

from __future__ import annotations

from dataclasses import dataclass, field

import pytest

from headroom.cluster.reassignment.execution.control import RunPolicy
from headroom.planning.reassignments.cluster_state import PartitionPlacement
from headroom.planning.reassignments.plan import ReassignmentPlan, TargetAssignment
from headroom.planning.reassignments.run.journal import StepKind
from headroom.planning.reassignments.run.record import RunState
from headroom.schemas.errors import HeadroomError
from headroom.schemas.keys import TopicPartition
from tests.unit.builders.run_stage import RunStage
from tests.unit.fakes.reassigned_cluster import FakeReassignedCluster, Killed

RATE = 10_000_000
BEFORE = {("a", 0): (1, 2), ("a", 1): (1, 3), ("b", 0): (2, 1)}
# Broker 1 leads all of them, b-0 although broker 2 is preferred.
LED_BY = 1
ORDERS = {("a", 0): (2, 1), ("a", 1): (3, 1), ("b", 0): (2, 1)}
AFTER = {("a", 0): (2, 4), ("a", 1): (3, 4), ("b", 0): (2, 4)}


def plan(targets: dict[tuple[str, int], tuple[int, ...]], *names: tuple[str, int]) -> ReassignmentPlan:
    return ReassignmentPlan(tuple(TargetAssignment(TopicPartition(*name), targets[name]) for name in names))


def fresh() -> FakeReassignedCluster:
    placements = {
        TopicPartition(*name): PartitionPlacement(*name, LED_BY, replicas, replicas)
        for name, replicas in BEFORE.items()
    }
    return FakeReassignedCluster(placements, {1, 2, 3, 4})


@dataclass
class Stage(RunStage):
    """A drain of broker 1: orders first, then the copies in two batches."""

    cluster: FakeReassignedCluster = field(default_factory=fresh)
    batches: list[ReassignmentPlan] = field(
        default_factory=lambda: [plan(ORDERS, *ORDERS), plan(AFTER, ("a", 0)), plan(AFTER, ("a", 1), ("b", 0))]
    )
    policy: RunPolicy = field(default_factory=lambda: RunPolicy(RATE, pause_s=0))


STEPS = Stage().steps()


def copies_leave_from_others(cluster: FakeReassignedCluster) -> None:
    """Nothing is copied while the drained broker leads it."""
    for name in cluster.left:
        if cluster.partitions[name].adding:
            assert cluster.partitions[name].leader == ORDERS[name.topic, name.partition][0]


def assert_drained(stage: Stage) -> None:
    assert stage.replicas() == AFTER
    assert [p.leader for p in stage.cluster.partitions.values()] == [2, 3, 2]
    assert (stage.throttles(), stage.left_behind()) == (({}, {}), [])
    (record,) = stage.journal.records()
    assert record.state is RunState.DONE
    # A rollback restores the order from before the first batch.
    assert {tuple(name): move.before for name, move in record.submitted.items()} == BEFORE


def test_leads_are_given_up_before_the_first_copy() -> None:
    stage = Stage()
    stage.cluster.on_look = copies_leave_from_others
    outcome = stage.run()
    assert (outcome.stopped, outcome.refused, outcome.batches) == (None, {}, 3)
    assert_drained(stage)
    assert "Batch 1: 3 of 3 leads are given up before the copies" in stage.lines
    # Each order is submitted once, and each partition elected once.
    assert sorted(stage.cluster.elected) == sorted(TopicPartition(*name) for name in ORDERS)


@pytest.mark.parametrize("step", range(1, STEPS + 1))
def test_killed_at_any_step_the_same_command_ends_as_if_it_had_not_been(step: int) -> None:
    stage = Stage()
    stage.cluster.on_look = copies_leave_from_others
    with pytest.raises(Killed):
        stage.run(step)
    if [record.state for record in stage.journal.records()] != [RunState.DONE]:
        outcome = stage.run()
        assert (outcome.stopped, outcome.refused) == (None, {})
    assert_drained(stage)
    # A partition that has begun to move is never sent back to its order.
    moved = [dict(targets) for kind, targets in stage.cluster.requests if kind == "reassign"]  # type: ignore[call-overload]
    of_a0 = [targets[name] for targets in moved if (name := TopicPartition("a", 0)) in targets]
    assert of_a0 == sorted(of_a0, key=[(2, 1), (2, 4)].index)


def test_the_command_repeated_has_nothing_to_do() -> None:
    stage = Stage()
    stage.run()
    requests = list(stage.cluster.requests)
    assert stage.run().stopped is None
    assert stage.cluster.requests == requests


def test_after_a_stop_no_election_follows_until_the_run_resumes() -> None:
    stage = Stage()

    def stop(cluster: FakeReassignedCluster) -> None:
        if any(p.replicas == (2, 1) for p in cluster.partitions.values() if p.topic == "a"):
            stage.stop.set()

    stage.cluster.on_look = stop
    assert stage.run().stopped == "batch 2 did not begin: stopped by the operator"
    assert stage.cluster.elected == []
    stage.stop.clear()
    stage.cluster.on_look = copies_leave_from_others
    assert stage.run().stopped is None
    assert_drained(stage)


def test_elections_that_fail_are_named_and_the_run_continues(monkeypatch: pytest.MonkeyPatch) -> None:
    stage, elect = Stage(), FakeReassignedCluster.elect
    failing = [1]

    def fail_once(cluster: FakeReassignedCluster, names: object, on_step: object) -> int:
        if failing:
            failing.pop()
            raise HeadroomError("elections", "do not settle", "Look.")
        return elect(cluster, names, on_step)  # type: ignore[arg-type]

    monkeypatch.setattr(FakeReassignedCluster, "elect", fail_once)
    assert stage.run().stopped is None
    assert_drained(stage)
    assert [line for line in stage.lines if "were not all elected" in line] != []
    assert [row.state for row in stage.journal.kept if row.step == StepKind.ELECT.value][:2] == ["intended", "failed"]


def test_an_order_that_is_refused_does_not_count_once_the_partition_is_at_its_target() -> None:
    stage = Stage()

    def refuse_at_first(cluster: FakeReassignedCluster) -> None:
        moved = cluster.partitions[TopicPartition("a", 1)].replicas == (3, 1)
        cluster.refusing = set() if moved else {TopicPartition("a", 0)}

    stage.cluster.on_look = refuse_at_first
    outcome = stage.run()
    assert (outcome.stopped, outcome.refused) == (None, {})
    assert stage.replicas() == AFTER

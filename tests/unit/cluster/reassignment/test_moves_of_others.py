"""A run beside reassignments of others: which moves are its own, and from when until when."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, field, replace

import pytest

from headroom.cluster.log_dirs.describe import LogDirsReading
from headroom.cluster.reassignment.execution.control import RunPolicy
from headroom.planning.reassignments.cluster_state import PartitionPlacement
from headroom.planning.reassignments.plan import ReassignmentPlan, TargetAssignment
from headroom.planning.reassignments.run.journal import ThrottledList
from headroom.planning.reassignments.run.record import RunState
from headroom.schemas.errors import HeadroomError
from headroom.schemas.keys import BrokerRole, Role, TopicPartition
from tests.unit.builders.run_stage import RunStage, killed_at_each_step
from tests.unit.fakes.reassigned_cluster import FakeReassignedCluster, Killed

RATE = 10_000_000
A, B, C = (TopicPartition("t", number) for number in range(3))
BEFORE = {A: (1, 2), B: (3, 2, 1), C: (2, 3)}
AFTER = {A: (4, 2), B: (4, 2, 1), C: (2, 4)}
# Where others send a partition.
ELSEWHERE = (2, 3)
LONG = 1000


def fresh() -> FakeReassignedCluster:
    placed = {name: PartitionPlacement(*name, r[0], r, r) for name, r in BEFORE.items()}
    return FakeReassignedCluster(placed, {1, 2, 3, 4}, looks=5)


def plan(*names: TopicPartition) -> ReassignmentPlan:
    return ReassignmentPlan(tuple(TargetAssignment(name, AFTER[name]) for name in names))


@dataclass
class Stage(RunStage):
    """The cluster of this file; each partition is a batch unless others are given."""

    cluster: FakeReassignedCluster = field(default_factory=fresh)
    batches: list[ReassignmentPlan] = field(default_factory=lambda: [plan(A), plan(B)])
    policy: RunPolicy = field(default_factory=lambda: RunPolicy(RATE, pause_s=0, adopt=True))

    def start(self, name: TopicPartition, target: tuple[int, ...], looks: int = LONG) -> None:
        """Submit a reassignment as others do."""
        self.cluster._start(name, target)
        self.cluster.left[name] = looks

    def moves_to(self, name: TopicPartition) -> tuple[int, ...] | None:
        return self.cluster.partitions[name].target if name in self.cluster.left else None


def adopting() -> Stage:
    """A stage on which others have begun to move two partitions of the plan to its replicas, without a throttle."""
    stage = Stage(batches=[plan(A, B, C)])
    stage.start(A, AFTER[A], looks=8)
    stage.start(B, AFTER[B], looks=4)
    return stage


ADOPTING_STEPS = adopting().steps()


def assert_adopted_and_ended(stage: Stage) -> None:
    assert (stage.cluster.left, stage.cluster.rates, stage.cluster.lists) == ({}, {}, {})
    assert {name: p.replicas for name, p in stage.cluster.partitions.items()} == AFTER
    (record,) = stage.journal.records()
    # Others may have ended their moves before the run took them over.
    assert (record.state, record.unended_moves, record.leaves_behind) == (RunState.DONE, set(), False)


def test_a_move_that_is_adopted_is_followed_to_its_end_and_keeps_its_throttle() -> None:
    stage, wrong = adopting(), []

    def check(cluster: FakeReassignedCluster) -> None:
        if C not in cluster.left:
            return
        for name in cluster.left.keys() & {A, B}:
            listed = cluster.lists.get(ThrottledList("t", Role.FOLLOWER), "").split(",")
            if f"{name.partition}:4" not in listed or cluster.rates.get(BrokerRole(4, Role.FOLLOWER)) != RATE:
                wrong.append(name)

    stage.cluster.on_look = check
    outcome = stage.run()
    assert (outcome.stopped, outcome.refused, wrong) == (None, {}, [])
    assert_adopted_and_ended(stage)


@pytest.mark.parametrize("step", range(1, ADOPTING_STEPS + 1))
def test_an_adopting_run_that_is_killed_at_any_step_ends_the_same(step: int) -> None:
    stage = adopting()
    with pytest.raises(Killed):
        stage.run(step)
    stage.go_on()
    assert_adopted_and_ended(stage)


@pytest.mark.parametrize("step", range(1, ADOPTING_STEPS + 1))
def test_clean_of_an_adopting_run_lifts_no_throttle_of_what_it_has_submitted(step: int) -> None:
    stage = adopting()
    with pytest.raises(Killed):
        stage.run(step)
    while stage.journal.records() and stage.clean().moving:
        (record,) = stage.journal.records()
        assert {BrokerRole(4, Role.FOLLOWER)} <= record.rates.keys()
        stage.cluster.advance()
    if stage.journal.records() and not stage.cluster.left:
        stage.clean()
        assert (stage.cluster.rates, stage.cluster.lists, stage.left_behind()) == ({}, {}, [])


@pytest.mark.parametrize("target", [ELSEWHERE, BEFORE[A]])
def test_a_later_move_of_others_is_neither_cancelled_nor_waited_for(target: tuple[int, ...]) -> None:
    stage = Stage(policy=RunPolicy(RATE, pause_s=0, adopt=True, cancel_on_stop=True))

    def interfere(cluster: FakeReassignedCluster) -> None:
        if B in cluster.left:
            if A not in cluster.left:
                stage.start(A, target)
            stage.stop.set()

    stage.cluster.on_look = interfere
    assert stage.run().stopped == "batch 2 was taken back: stopped by the operator"
    assert stage.moves_to(A) == target
    assert stage.cluster.partitions[B].replicas == BEFORE[B]
    assert (stage.cluster.rates, stage.cluster.lists, stage.left_behind()) == ({}, {}, [])


def test_a_move_that_others_send_elsewhere_is_not_cancelled() -> None:
    stage = Stage(batches=[plan(A, B)], policy=RunPolicy(RATE, pause_s=0, cancel_on_stop=True))

    def interfere(cluster: FakeReassignedCluster) -> None:
        if A in cluster.left and not stage.stop.is_set():
            stage.start(A, ELSEWHERE, looks=5)
            stage.stop.set()

    stage.cluster.on_look = interfere
    outcome = stage.run()
    assert outcome.refused == {A: "cancelled or changed by others, its replicas are [2,3]"}
    assert stage.cluster.partitions[A].replicas == ELSEWHERE
    assert stage.cluster.partitions[B].replicas == BEFORE[B]
    assert (stage.cluster.rates, stage.cluster.lists, stage.left_behind()) == ({}, {}, [])


def test_a_move_of_others_lets_no_batch_begin_outside_its_window_or_after_a_loss() -> None:
    for offline in (False, True):
        stage = Stage()

        def interfere(cluster: FakeReassignedCluster, stage: Stage = stage, offline: bool = offline) -> None:
            if ("reassign", {A: AFTER[A]}) in cluster.requests and not cluster.left:
                stage.start(A, ELSEWHERE)
                cluster.offline = {A} if offline else set()

        stage.cluster.on_look = interfere
        closed = lambda snapshot, stage=stage: "not now" if stage.journal.records() else None  # noqa: E731
        outcome = stage.run(policy=RunPolicy(RATE, pause_s=0, adopt=True, blocked_reason=closed))
        reason = "replicas of t-0 are offline: a broker is down, or a disk has failed or is full"
        assert outcome.stopped == f"batch 2 did not begin: {reason if offline else 'not now'}"
        assert (stage.moves_to(A), stage.moves_to(B)) == (ELSEWHERE, None)
        assert (stage.cluster.rates, stage.cluster.lists, stage.left_behind()) == ({}, {}, [])


def test_a_batch_resumes_after_a_crash_without_touching_moves_of_others() -> None:
    stage = Stage(batches=[plan(A, B)], policy=RunPolicy(RATE, pause_s=0))
    seen: list[int] = []

    def interfere(cluster: FakeReassignedCluster) -> None:
        # Others cancel A, which the run notes after 5 s, and move it elsewhere.
        if A in cluster.left and B in cluster.left and not seen:
            seen.append(1)
            cluster._cancel(A)
            cluster.left[B] = LONG
        (record,) = stage.journal.records() or (None,)
        if record is not None and A in record.finished:
            stage.start(A, ELSEWHERE)
            raise Killed

    stage.cluster.on_look = interfere
    with pytest.raises(Killed):
        stage.run()
    stage.cluster.left[B] = 3
    stage.cluster.on_look = lambda cluster: None
    outcome = stage.run()
    assert outcome.stopped == "batch 1 did not begin: t-0 is being reassigned, but not by this run"
    assert (stage.moves_to(A), stage.cluster.partitions[B].replicas) == (ELSEWHERE, AFTER[B])
    assert (stage.cluster.rates, stage.left_behind()) == ({}, [])


def test_a_cancellation_that_has_taken_place_is_not_finished_on_a_later_move_of_others() -> None:
    def taking_back() -> Stage:
        stage = Stage(batches=[plan(B)], policy=RunPolicy(RATE, pause_s=0, cancel_on_stop=True))
        stage.cluster.on_look = lambda cluster: stage.stop.set() if B in cluster.left else None
        return stage

    cancelled = 0
    for stage in killed_at_each_step(taking_back):
        if any(record.cancelling for record in stage.journal.records()) and not stage.cluster.left:
            cancelled += 1
            stage.cluster.on_look = lambda cluster: None
            stage.start(B, (5, 2, 1))
            assert stage.clean().moving == (B,)
            assert stage.moves_to(B) == (5, 2, 1)
    assert cancelled > 2


def test_entries_of_a_partition_that_others_move_now_stay_until_it_has_ended_and_are_named() -> None:
    # Killed between the end of the move in the journal and the removal of its entries.
    for stage in killed_at_each_step(lambda: Stage(batches=[plan(A)])):
        records = stage.journal.records()
        if records and A in records[0].finished and records[0].entries:
            break
    stage.start(A, ELSEWHERE, looks=3)
    assert stage.clean().moving == ()
    assert stage.cluster.lists[ThrottledList("t", Role.FOLLOWER)] == "0:4"
    assert (stage.cluster.rates, len(stage.left_behind())) == ({}, 1)
    assert [line for line in stage.lines if "The list entries of t-0 stay while others move" in line] != []
    while stage.cluster.left:
        stage.cluster.advance()
    stage.clean()
    assert (stage.cluster.lists, stage.left_behind()) == ({}, [])


@pytest.mark.parametrize("up_to", [None, 50_000_000])
def test_the_throttles_of_moves_of_others_are_not_those_of_a_run_beside_them(up_to: int | None) -> None:
    # Others move C, written with 90 MB/s, from broker 2 to 5 under 1 MB/s. A batch from broker 3 to 4 needs neither.
    stage = Stage(batches=[plan(B)], policy=RunPolicy(RATE, pause_s=0, adopt=True, auto_up_to_bytes_per_s=up_to))
    others = {BrokerRole(2, Role.LEADER): 1_000_000, BrokerRole(5, Role.FOLLOWER): 1_000_000}
    stage.cluster.partitions[B] = replace(
        stage.cluster.partitions[B], replicas=(3,), isr=(3,), leader=3, write_bytes_per_s=1_000.0
    )
    stage.cluster.partitions[A] = replace(stage.cluster.partitions[A], write_bytes_per_s=0.0)
    stage.batches = [ReassignmentPlan((TargetAssignment(B, (4,)),))]
    stage.cluster.alive.add(5)
    stage.start(C, (5, 3))
    stage.cluster.partitions[C] = replace(stage.cluster.partitions[C], write_bytes_per_s=90_000_000.0)
    stage.cluster.rates = dict(others)
    stage.cluster.lists = {ThrottledList("t", Role.LEADER): "2:2,2:3", ThrottledList("t", Role.FOLLOWER): "2:5"}
    assert stage.run().stopped is None
    rates = {change[1] for kind, change in stage.cluster.requests if kind == "rate"}  # type: ignore[index]
    assert rates == {RATE, None}
    assert (stage.cluster.rates, stage.lines[-1]) == (others, "Batch 1 of 1: ended, 1 partitions")


D = TopicPartition("o", 0)


def beside_a_copy_to_4(batches: list[ReassignmentPlan], free_bytes: int) -> Stage:
    """A stage on which others copy 1 MB from broker 5, which the plan does not name, to broker 4."""
    stage = Stage(batches=batches)
    stage.cluster.partitions[D] = PartitionPlacement(*D, 5, (5,), (5,))
    stage.cluster.alive.add(5)
    stage.cluster.free_of = {4: free_bytes}
    stage.start(D, (4,))
    return stage


def test_a_copy_of_others_from_a_broker_outside_the_batch_needs_its_room() -> None:
    # 1.4 MB are free in each of two directories. One has 0.4 MB left for the batch, which copies 2 x 1 MB.
    outcome = beside_a_copy_to_4([plan(A, B)], 1_400_000).run()
    assert outcome.stopped == (
        "batch 1 did not begin: broker 4 has 2,800,000 bytes free, and the plan copies 2,000,000 there (t-0, t-1); "
        "reassignments that run already copy 1,000,000 more there"
    )
    assert beside_a_copy_to_4([plan(A, B)], 2_000_000).run().stopped is None


def test_a_copy_of_others_whose_size_is_not_reported_is_named_once(monkeypatch: pytest.MonkeyPatch) -> None:
    stage = beside_a_copy_to_4([plan(A), plan(B)], 1_400_000)
    read_logs = stage.cluster.read_logs

    def without_5(brokers: Collection[int], names: Collection[TopicPartition] | None) -> LogDirsReading:
        found = read_logs([broker for broker in brokers if broker != 5], names)
        error = HeadroomError("broker 5", "did not report its log directories", "See that it is up.")
        return LogDirsReading(found.brokers, {5: error} if 5 in brokers else {})

    monkeypatch.setattr(stage.cluster, "read_logs", without_5)
    assert stage.run().stopped is None
    assert [line for line in stage.lines if "room" in line.lower()] == [
        "Batch 1: The size of other partitions that are being copied there is unknown: o-0. Room for these copies was "
        "not checked."
    ]

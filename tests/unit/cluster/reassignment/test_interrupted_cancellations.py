"""Runs that were killed while they cancelled: what goes on with them, on a cluster whose answers fail or are old."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

import pytest

from headroom.cluster.reassignment.execution.control import RunPolicy
from headroom.cluster.reassignment.execution.moves import RunMoves
from headroom.planning.reassignments.cluster_state import PartitionPlacement
from headroom.planning.reassignments.plan import ReassignmentPlan, TargetAssignment
from headroom.planning.reassignments.run.journal import JournalStep, StepKind, StepState
from headroom.planning.reassignments.run.record import RunState, Submission
from headroom.schemas.errors import HeadroomError
from headroom.schemas.keys import TopicPartition
from tests.unit.builders.run_stage import RunStage, killed_at_each_step, killed_while_moving
from tests.unit.fakes.reassigned_cluster import Answer, Disturbance, FakeReassignedCluster

A = TopicPartition("t", 0)
BEFORE, AFTER, ELSEWHERE = (3, 2, 1), (4, 2, 1), (5, 2, 1)
LONG = 1000


def fresh() -> FakeReassignedCluster:
    return FakeReassignedCluster({A: PartitionPlacement(*A, 3, BEFORE, BEFORE)}, {1, 2, 3, 4, 5}, looks=5)


@dataclass
class Stage(RunStage):
    """A partition that a run moves, and which the operator stops."""

    cluster: FakeReassignedCluster = field(default_factory=fresh)
    batches: list[ReassignmentPlan] = field(
        default_factory=lambda: [ReassignmentPlan((TargetAssignment(A, AFTER),))],
    )
    policy: RunPolicy = field(default_factory=lambda: RunPolicy(10_000_000, pause_s=0, cancel_on_stop=True))

    def assert_nothing_is_left(self, replicas: tuple[int, ...]) -> None:
        assert self.cluster.partitions[A].replicas == replicas
        assert (self.cluster.left, self.throttles(), self.left_behind()) == ({}, ({}, {}), [])

    def start(self, target: tuple[int, ...]) -> None:
        """Submit a reassignment as others do."""
        self.cluster._start(A, target)
        self.cluster.left[A] = LONG


def stopped() -> Stage:
    stage = Stage()
    stage.cluster.on_look = lambda cluster: stage.stop.set() if A in cluster.left else None
    return stage


def cancelled(make: Callable[[], Stage] = stopped) -> Iterator[Stage]:
    """Yield stages whose run was killed after the controller had cancelled, and before the journal had it."""
    found = 0
    for stage in killed_at_each_step(make):
        if any(record.cancelling for record in stage.journal.records()) and not stage.cluster.left:
            found += 1
            stage.cluster.on_look = lambda cluster: None
            stage.stop.clear()
            yield stage
    assert found > 2


def hide_controller(stage: Stage, looks: int) -> None:
    """Let no controller answer for some looks."""
    stage.cluster.unread, stage.cluster._shown = True, (looks, dict(stage.cluster.partitions))


def test_a_run_that_goes_on_waits_for_a_cluster_that_fails() -> None:
    stage = killed_while_moving(Stage, A)
    stage.cluster.failing = 3
    assert stage.run().stopped is None
    stage.assert_nothing_is_left(AFTER)


def test_a_new_run_says_at_once_that_the_cluster_fails() -> None:
    stage = Stage()
    stage.cluster.failing = 1
    with pytest.raises(HeadroomError, match="did not answer"):
        stage.run()
    assert (stage.journal.kept, stage.time.now_s) == ([], 0)


@pytest.mark.parametrize("failing", [1, 2, 3])
def test_an_interrupted_cancellation_is_finished_once_the_cluster_answers(failing: int) -> None:
    for stage in cancelled():
        stage.cluster.failing = failing
        assert stage.run().stopped is None
        stage.assert_nothing_is_left(AFTER)


@pytest.mark.parametrize("looks", [1, 2, 3, 6])
def test_an_interrupted_cancellation_is_finished_once_a_controller_answers(looks: int) -> None:
    for stage in cancelled():
        hide_controller(stage, looks)
        assert stage.run().stopped is None
        stage.assert_nothing_is_left(AFTER)


def test_a_run_gives_up_an_interrupted_cancellation_if_no_controller_answers_for_long() -> None:
    for stage in cancelled():
        hide_controller(stage, LONG)
        with pytest.raises(HeadroomError, match="could not be read, so what to cancel is unknown"):
            stage.run()
        (record,) = stage.left_behind()
        assert (record.state, record.cancelling) == (RunState.UNFINISHED, frozenset({A}))
        assert stage.time.now_s >= 60


@pytest.mark.parametrize("failing", [1, 3])
def test_clean_waits_for_a_cluster_that_fails(failing: int) -> None:
    for stage in cancelled():
        stage.cluster.failing = failing
        assert stage.clean().moving == ()
        stage.assert_nothing_is_left(BEFORE)


@pytest.mark.parametrize("looks", [1, 2, 3, 6])
def test_clean_waits_for_a_controller(looks: int) -> None:
    for stage in cancelled():
        hide_controller(stage, looks)
        assert stage.clean().moving == ()
        stage.assert_nothing_is_left(BEFORE)


def test_clean_waits_for_a_journal_that_fails() -> None:
    for stage in cancelled():
        stage.journal.failing = 2
        assert stage.clean().moving == ()
        stage.assert_nothing_is_left(BEFORE)


@pytest.mark.parametrize("looks", [1, 2, 4])
def test_replicas_that_a_broker_still_shows_do_not_end_a_cancelled_move_at_its_target(looks: int) -> None:
    # The controller lists it no more, and a broker shows [4,2,1,3].
    def late() -> Stage:
        stage = stopped()
        stage.cluster.disturbance = Disturbance(Answer.LATE, at=2, looks=looks)
        return stage

    for stage in cancelled(late):
        assert stage.clean().moving == ()
        stage.assert_nothing_is_left(BEFORE)


def test_the_order_is_restored_although_a_broker_shows_it_from_before_the_move() -> None:
    stage = Stage()
    stage.stop.clear()

    def look(cluster: FakeReassignedCluster) -> None:
        if A in cluster.left:
            stage.stop.set()
        elif ("reassign", {A: None}) in cluster.requests and not seen:
            seen.append(1)
            before = {A: PartitionPlacement(*A, 3, BEFORE, BEFORE)}
            cluster._shown, cluster._out_of_date = (1, before), Answer.LATE

    seen: list[int] = []
    stage.cluster.on_look = look
    assert stage.run().stopped == "batch 1 was taken back: stopped by the operator"
    stage.assert_nothing_is_left(BEFORE)


@pytest.mark.parametrize("look", [1, 2])
def test_clean_does_not_cancel_what_others_move_meanwhile(look: int) -> None:
    for stage in cancelled():
        looks: list[int] = []

        def act(cluster: FakeReassignedCluster, stage: Stage = stage, looks: list[int] = looks) -> None:
            looks.append(1)
            if len(looks) == look:
                stage.start(ELSEWHERE)

        stage.cluster.on_look = act
        stage.clean()
        assert stage.cluster.partitions[A].target == ELSEWHERE
        assert A in stage.cluster.left


def test_a_stop_does_not_cancel_what_others_send_elsewhere_in_that_moment() -> None:
    stage = Stage()

    def look(cluster: FakeReassignedCluster) -> None:
        # The cancellation reads the cluster once more.
        if stage.stop.is_set() and not sent:
            sent.append(1)
            stage.start(ELSEWHERE)
            cluster.left[A] = 5
        elif A in cluster.left:
            stage.stop.set()

    sent: list[int] = []
    stage.cluster.on_look = look
    outcome = stage.run()
    assert outcome.refused == {A: "cancelled or changed by others, its replicas are [5,2,1]"}
    stage.assert_nothing_is_left(ELSEWHERE)


@pytest.mark.parametrize("refused", [1, 4, 10])
def test_a_stop_restores_the_order_once_the_controller_takes_it(refused: int) -> None:
    # The requests of the run: its list entries, its rates, the move, the cancellation, and the order.
    stage = stopped()
    stage.cluster.disturbance = Disturbance(Answer.REFUSED, at=5, requests=refused)
    assert stage.run().stopped == "batch 1 was taken back: stopped by the operator"
    assert stage.cluster.disturbance.seen > 4 + refused
    stage.assert_nothing_is_left(BEFORE)


def test_a_run_that_gives_up_an_interrupted_cancellation_restores_the_order_once_a_controller_answers() -> None:
    for stage in cancelled():
        hide_controller(stage, 45)
        with pytest.raises(HeadroomError, match="could not be read, so what to cancel is unknown"):
            stage.run()
        stage.assert_nothing_is_left(BEFORE)


def test_a_run_that_goes_on_names_a_partition_whose_interrupted_cancellation_takes_place_later() -> None:
    # Killed after the journal had the cancellation, and before the controller: the move goes on, until it is cancelled.
    found = 0
    for stage in killed_at_each_step(stopped):
        if not (any(record.cancelling for record in stage.journal.records()) and stage.cluster.left):
            continue
        found += 1
        stage.stop.clear()
        looks: list[int] = []

        def act(cluster: FakeReassignedCluster, looks: list[int] = looks) -> None:
            looks.append(1)
            if A in cluster.left and len(looks) == 7:
                cluster._cancel(A)

        stage.cluster.on_look = act
        stage.cluster.left[A] = 20
        outcome = stage.run()
        assert list(outcome.refused) == [A], outcome
        stage.assert_nothing_is_left(BEFORE)
    assert found


@pytest.mark.parametrize("after_request", [False, True])
def test_a_stop_leaves_the_order_of_a_topic_that_is_made_again_in_that_moment(after_request: bool) -> None:
    stage = Stage()
    theirs = (1, 2, 3)

    def look(cluster: FakeReassignedCluster) -> None:
        requested = ("reassign", {A: None}) in cluster.requests or not after_request
        if stage.stop.is_set() and requested and not made:
            made.append(1)
            if A not in cluster.left:
                cluster._start(A, AFTER)
            stage.end_topic_and_make_it_again(A.topic)
            cluster._start(A, theirs)
        elif A in cluster.left:
            stage.stop.set()

    made: list[int] = []
    stage.cluster.on_look = look
    stage.run()
    assert made
    stage.assert_nothing_is_left(theirs)


def test_an_order_that_others_chose_after_an_interrupted_cancellation_stays() -> None:
    theirs = (1, 2, 3)
    for stage in cancelled():
        stage.cluster._start(A, theirs)
        assert stage.clean().moving == ()
        stage.assert_nothing_is_left(theirs)


def test_a_cancellation_that_takes_place_between_two_looks_is_reported_too() -> None:
    stage, b = Stage(), TopicPartition("t", 1)
    stage.cluster.partitions[b] = PartitionPlacement(*b, 3, BEFORE, BEFORE)
    journal = stage.run_journal()
    moves = RunMoves(stage.cluster, journal, 60, stage.time.clock, stage.time.sleep)
    journal.write([JournalStep(StepKind.RUN, StepState.INTENDED, "fingerprint")])
    moves.submit({name: Submission(BEFORE, AFTER) for name in (A, b)})
    journal.write([JournalStep(StepKind.CANCEL, StepState.INTENDED, str(n), "[4,2,1,3]", "[3,2,1]") for n in (A, b)])
    stage.cluster._cancel(A)
    seen = stage.cluster.read()
    stage.cluster._cancel(b)
    assert moves.finish_ended_cancellations(seen) == {A, b}
    assert journal.record.unended_moves == frozenset()

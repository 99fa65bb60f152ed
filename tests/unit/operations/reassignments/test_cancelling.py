"""Cancelling on a cluster in memory: killed at every step, the next cancel restores the order of the replicas."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import pytest

from headroom.cluster.reassignment.execution.control import RunPolicy
from headroom.cluster.reassignment.execution.executor import RunOutcome
from headroom.cluster.reassignment.execution.run_journal import RunJournal
from headroom.operations.reassignments.cancelling import CancelPlan, execute_cancel, plan_cancel
from headroom.planning.reassignments.cluster_state import PartitionPlacement
from headroom.planning.reassignments.plan import ReassignmentPlan, TargetAssignment
from headroom.planning.reassignments.run.orders import known_orders
from headroom.planning.reassignments.run.record import RecordedRun
from headroom.schemas.errors import HeadroomError
from headroom.schemas.keys import ReplicaKey, TopicPartition
from tests.unit.builders.run_stage import RunStage, killed_at_each_step
from tests.unit.fakes.reassigned_cluster import PATHS, Answer, Crash, FakeReassignedCluster, Killed

NAME = TopicPartition("t", 0)
BEFORE, TARGET, LEFT = (3, 2, 1), (4, 2, 1), (2, 1, 3)
OF_OTHERS = (1, 2, 3)


def fresh() -> FakeReassignedCluster:
    return FakeReassignedCluster({NAME: PartitionPlacement(*NAME, 3, BEFORE, BEFORE)}, {1, 2, 3, 4, 5}, looks=1000)


@dataclass
class Stage(RunStage):
    """A partition, and a run that moves it until it is killed."""

    cluster: FakeReassignedCluster = field(default_factory=fresh)
    batches: list[ReassignmentPlan] = field(default_factory=lambda: [plan(TARGET)])
    policy: RunPolicy = field(default_factory=lambda: RunPolicy(None, pause_s=0))
    cancels: int = 0
    another_run: bool = False

    def journal_of(self, record: RecordedRun) -> RunJournal:
        self.time.sleep(1)
        now_ms = int(self.time.now_s * 1000)
        return RunJournal(self.journal, record, "orders", "reassign cancel", "anna@host", lambda: now_ms)

    def record(self) -> RecordedRun:
        # As PlanRunner does it; each run has its time.
        self.time.sleep(1)
        record = RecordedRun("another") if self.another_run else super().record()
        return replace(record, interrupted=known_orders(self.journal.kept).interrupted)

    def plan_cancel(self) -> CancelPlan:
        self.cluster.crash = self.journal.crash = Crash()
        orders, time = known_orders(self.journal.kept), self.time
        return plan_cancel(self.cluster, None, orders, time.clock, time.sleep)  # type: ignore[arg-type]

    def cancel(self, crash_at: int = 0) -> None:
        planned = self.plan_cancel()
        self.cluster.crash = self.journal.crash = Crash(crash_at)
        self.cancels += 1
        assert self.execute(planned) == {}

    def execute(self, planned: CancelPlan) -> dict[TopicPartition, str]:
        journal, time = self.journal_of(RecordedRun(f"cancel-{self.cancels}")), self.time
        return execute_cancel(self.cluster, journal, planned, 60, time.clock, time.sleep)  # type: ignore[arg-type]

    def kill_run(self, looks: int = 1000) -> None:
        """Let a run submit its plan, and kill it."""
        self.cluster.looks = looks

        def kill(cluster: FakeReassignedCluster) -> None:
            if cluster.left:
                raise Killed

        self.cluster.on_look = kill
        with pytest.raises(Killed):
            self.run()
        self.cluster.on_look = lambda cluster: None

    def finish(self) -> RunOutcome:
        """Let a run end its plan soon."""
        self.cluster.looks = 2
        return self.run()

    def replicas_now(self) -> tuple[int, ...]:
        return self.cluster.partitions[NAME].replicas

    def reorder(self, replicas: tuple[int, ...]) -> None:
        """Change the order of the replicas as others do."""
        self.cluster._start(NAME, replicas)
        assert self.replicas_now() == replicas


def plan(target: tuple[int, ...]) -> ReassignmentPlan:
    return ReassignmentPlan((TargetAssignment(NAME, target),))


def moving() -> Stage:
    stage = Stage()
    stage.kill_run()
    return stage


def cancel_steps() -> int:
    stage = moving()
    stage.cancel()
    assert stage.replicas_now() == BEFORE
    return stage.cluster.crash.steps


STEPS = range(1, cancel_steps() + 1)


def killed_cancel(step: int) -> Stage:
    stage = moving()
    with pytest.raises(Killed):
        stage.cancel(step)
    return stage


@pytest.mark.parametrize("step", STEPS)
def test_a_cancel_that_is_killed_at_any_step_is_finished_by_the_next_one(step: int) -> None:
    stage = killed_cancel(step)
    if stage.replicas_now() != BEFORE:
        assert stage.plan_cancel().text() in ("1 reassignments", "the rest of 1 interrupted cancellations")
        stage.cancel()
    assert (stage.replicas_now(), stage.plan_cancel().text()) == (BEFORE, "")


@pytest.mark.parametrize("step", STEPS)
@pytest.mark.parametrize("again", [1, 2, 3, 4, 5, 6])
def test_the_next_cancel_may_be_killed_too(step: int, again: int) -> None:
    stage = killed_cancel(step)
    for crash_at in (again, 0):
        if stage.plan_cancel().text():
            try:
                stage.cancel(crash_at)
            except Killed:
                continue
    assert (stage.replicas_now(), stage.plan_cancel().text()) == (BEFORE, "")


def cut_off() -> Stage:
    """A stage on which a cancel was killed between the cancellation and the reordering."""
    stage = next(stage for stage in map(killed_cancel, STEPS) if stage.replicas_now() == LEFT)
    assert stage.plan_cancel().unrestored == {NAME: BEFORE}
    return stage


def test_an_order_that_others_have_chosen_since_stays() -> None:
    stage = cut_off()
    stage.reorder(OF_OTHERS)
    assert stage.plan_cancel().text() == ""


@pytest.mark.parametrize("step", STEPS)
def test_a_rollback_of_the_rerun_restores_the_order_from_before_the_killed_cancel(step: int) -> None:
    for cleaned in (False, True):
        stage = killed_cancel(step)
        if cleaned and NAME in stage.cluster.left:
            continue
        if cleaned:
            stage.clean()
            stage.another_run, stage.batches = True, [plan((5, 2, 1))]
        else:
            stage.cluster.left = dict.fromkeys(stage.cluster.left, 3)
        stage.finish()
        record = stage.journal.records()[-1]
        assert record.submitted[NAME].before == BEFORE
        assert stage.plan_cancel().text() == ""


def test_a_later_move_of_others_does_not_get_the_order_of_an_old_run() -> None:
    stage = moving()
    stage.cluster.left[NAME] = 1
    stage.finish()
    # Others move it back in an order of their own, and then elsewhere.
    for target, looks in ((OF_OTHERS, 1), ((5, 2, 1), 1000)):
        stage.cluster._start(NAME, target)
        stage.cluster.left[NAME] = looks
        stage.cluster.advance()
    planned = stage.plan_cancel()
    assert planned.originals == {NAME: None}
    assert "is not known of t-0" in planned.notes()[0]


@pytest.mark.parametrize("order", [OF_OTHERS, LEFT])
def test_a_rerun_does_not_take_the_order_from_before_its_first_part(order: tuple[int, ...]) -> None:
    stage = Stage(batches=[plan(TARGET), ReassignmentPlan((TargetAssignment(TopicPartition("t", 1), (3, 4)),))])
    stage.cluster.partitions[TopicPartition("t", 1)] = PartitionPlacement("t", 1, 1, (1, 2), (1, 2))
    stage.cluster.looks = 2
    stage.cluster.on_look = lambda cluster: stage.stop.set() if cluster.left else None
    assert stage.run().stopped == "batch 2 did not begin: stopped by the operator"
    stage.cluster.on_look = lambda cluster: None
    stage.cluster._start(NAME, order)
    stage.cluster.left[NAME] = 1
    stage.cluster.advance()
    stage.stop.clear()
    stage.run()
    (record,) = stage.journal.records()
    assert record.submitted[NAME].before == order


def test_a_run_that_does_not_begin_again_finishes_the_cancellation_of_its_batch() -> None:
    def taking_back() -> Stage:
        stage = Stage(policy=RunPolicy(None, pause_s=0, cancel_on_stop=True))
        stage.cluster.on_look = lambda cluster: stage.stop.set() if cluster.left else None
        return stage

    interrupted = 0
    for stage in killed_at_each_step(taking_back):
        if stage.replicas_now() == LEFT:
            interrupted += 1
            stage.cluster.on_look = lambda cluster: None
            stage.stop.clear()
            outcome = stage.run(policy=RunPolicy(None, blocked_reason=lambda snapshot: "not now"))
            assert (outcome.stopped, stage.replicas_now()) == ("batch 1 did not begin: not now", BEFORE)
    assert interrupted > 1


def test_nothing_is_planned_by_a_reading_in_which_no_controller_answered() -> None:
    stage = Stage()
    before = dict(stage.cluster.partitions)
    stage.kill_run()
    stage.cluster.unread, stage.cluster._shown = True, (1, before)
    with pytest.raises(HeadroomError, match="the reassignments: could not be read, so what to cancel is unknown"):
        stage.plan_cancel()
    assert list(stage.plan_cancel().originals) == [NAME]


def test_what_others_move_while_the_operator_is_asked_is_not_cancelled() -> None:
    for stage in (cut_off(), moving()):
        planned = stage.plan_cancel()
        # The move was cancelled by others meanwhile, if it still ran.
        if NAME in stage.cluster.left:
            stage.cluster._cancel(NAME)
        stage.cluster._start(NAME, (5, 2, 1))
        assert stage.execute(planned) == {NAME: "others have changed it since"}
        assert stage.cluster.partitions[NAME].target == (5, 2, 1)


def test_a_topic_that_is_made_again_while_the_operator_is_asked_keeps_its_order() -> None:
    stage = cut_off()
    planned = stage.plan_cancel()
    stage.end_topic_and_make_it_again(NAME.topic)
    assert stage.execute(planned) == {NAME: "others have changed it since"}
    assert stage.replicas_now() == LEFT


@pytest.mark.parametrize("looks", [1, 3])
def test_the_order_is_restored_although_a_broker_still_shows_the_added_replicas(looks: int) -> None:
    stage = cut_off()
    late = {NAME: PartitionPlacement(*NAME, 3, (*TARGET, 3), BEFORE)}
    stage.cluster._shown, stage.cluster._out_of_date = (looks, late), Answer.LATE
    stage.cancel()
    assert stage.replicas_now() == BEFORE


@pytest.mark.parametrize("step", STEPS)
def test_a_move_of_which_a_broker_shows_nothing_yet_is_cancelled_with_its_order(step: int) -> None:
    stage = moving()
    late = {NAME: PartitionPlacement(*NAME, 3, BEFORE, BEFORE)}
    stage.cluster._shown, stage.cluster._out_of_date = (3, late), Answer.LATE
    with pytest.raises(Killed):
        stage.cancel(step)
    if stage.replicas_now() != BEFORE:
        stage.cancel()
    assert stage.replicas_now() == BEFORE


def test_an_order_that_others_choose_while_the_operator_is_asked_stays() -> None:
    stage = cut_off()
    planned = stage.plan_cancel()
    stage.reorder(OF_OTHERS)
    assert stage.execute(planned) == {NAME: "others have changed it since"}
    assert stage.replicas_now() == OF_OTHERS


def copying() -> tuple[Stage, ReplicaKey]:
    """A stage on which a replica is copied to another directory of its broker."""
    stage, replica = Stage(), ReplicaKey(NAME, 2)
    stage.cluster.place({replica: PATHS[1]})
    assert replica in stage.cluster.futures
    return stage, replica


def test_a_copy_that_ends_while_the_operator_is_asked_is_not_copied_back() -> None:
    stage, replica = copying()
    planned = stage.plan_cancel()
    stage.cluster.futures[replica] = (PATHS[1], 1)
    stage.cluster.advance()
    assert stage.execute(planned) == {NAME: "broker 2: its copy to another log directory has ended"}
    assert (stage.cluster.futures, stage.cluster.path_of(replica)) == ({}, PATHS[1])


def test_a_copy_that_still_runs_is_ended_and_one_of_a_silent_broker_is_named() -> None:
    stage, replica = copying()
    assert stage.execute(stage.plan_cancel()) == {}
    assert (stage.cluster.futures, stage.cluster.path_of(replica)) == ({}, PATHS[0])
    stage, replica = copying()
    planned = stage.plan_cancel()
    stage.cluster.alive.discard(2)
    assert stage.execute(planned) == {NAME: "broker 2: its log directories were not reported"}

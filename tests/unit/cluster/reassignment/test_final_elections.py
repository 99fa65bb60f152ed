"""Elections after the last batch that fail or are left out: they are tried again, and by the same command."""

from __future__ import annotations

from dataclasses import replace

from headroom.planning.reassignments.run.record import RunState
from headroom.schemas.keys import TopicPartition
from tests.unit.builders.run_stage import RunStage, stage_of

A, B = TopicPartition("t", 0), TopicPartition("t", 1)
FAILED = "elections: batch 1 has not settled within 60 s"


def staged(failing: int) -> RunStage:
    # Broker 1 leads, and the plan gives it to broker 3.
    stage = stage_of({A: (1, 2)}, {A: (3, 1)})
    stage.cluster.failing_elections = failing
    return stage


def test_elections_that_fail_once_are_tried_again() -> None:
    stage = staged(failing=2)
    outcome = stage.run()
    assert (outcome.unelected, stage.cluster.partitions[A].leader) == ({}, 3)
    (record,) = stage.journal.records()
    assert (record.state, record.elected) == (RunState.DONE, True)


def test_elections_that_fail_again_and_again_are_named_and_the_same_command_tries_them_again() -> None:
    stage = staged(failing=3)
    outcome = stage.run()
    assert (outcome.unelected, outcome.stopped, stage.cluster.partitions[A].leader) == ({A: FAILED}, None, 1)
    (record,) = stage.journal.records()
    assert (record.state, record.elected, record.elections_failed) == (RunState.ENDED, False, True)
    assert (stage.cluster.rates, stage.cluster.lists, stage.left_behind()) == ({}, {}, [])
    assert stage.run().unelected == {}
    (record,) = stage.journal.records()
    assert (record.state, record.elected, record.elections_failed) == (RunState.DONE, True, False)
    assert stage.cluster.partitions[A].leader == 3
    assert [kind for kind, _ in stage.cluster.requests].count("reassign") == 1


def test_a_stop_ends_the_tries() -> None:
    stage = staged(failing=3)
    stage.cluster.on_look = lambda cluster: stage.stop.set() if A in cluster.left else None
    assert stage.run().unelected == {A: FAILED}
    assert stage.cluster.failing_elections == 2


def test_elections_that_are_left_out_are_named_with_the_reason_and_do_not_count_as_made() -> None:
    stage = stage_of({A: (1, 2), B: (1, 2)}, {A: (3, 1), B: (2, 1)})
    stage.cluster.left_out = {B: "its preferred broker is not in sync"}
    outcome = stage.run()
    assert outcome.unelected == {B: "its preferred broker is not in sync"}
    assert "Preferred leaders were not all elected: t-1 (its preferred broker is not in sync)" in stage.lines
    (record,) = stage.journal.records()
    assert (record.state, record.elected, record.elections_failed) == (RunState.ENDED, False, True)
    stage.cluster.left_out = {}
    assert stage.run().unelected == {}
    assert [stage.cluster.partitions[name].leader for name in (A, B)] == [3, 2]


def test_leaders_that_have_come_by_themselves_settle_elections_that_failed() -> None:
    stage = staged(failing=3)
    stage.run()
    stage.cluster.partitions[A] = replace(stage.cluster.partitions[A], leader=3)
    stage.run()
    (record,) = stage.journal.records()
    assert (record.state, record.elected, record.elections_failed) == (RunState.DONE, True, False)


def test_a_plan_that_is_in_place_elects_the_leaders_that_others_have_replaced_since() -> None:
    stage = staged(failing=0)
    stage.run()
    stage.cluster.partitions[A] = replace(stage.cluster.partitions[A], leader=1)
    assert stage.run().unelected == {}
    assert stage.cluster.partitions[A].leader == 3
    assert [record.state for record in stage.journal.records()] == [RunState.DONE, RunState.DONE]
    # Nothing is left to do, and nothing is begun.
    stage.run()
    assert len(stage.journal.records()) == 2


def test_what_cannot_be_elected_begins_no_run() -> None:
    stage = staged(failing=0)
    stage.run()
    stage.cluster.partitions[A] = replace(stage.cluster.partitions[A], leader=1, isr=(1,))
    stage.run()
    assert len(stage.journal.records()) == 1

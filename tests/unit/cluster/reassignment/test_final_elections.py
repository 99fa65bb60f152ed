"""Elections after the last batch that fail: they are tried again, and by the same command."""

from __future__ import annotations

from headroom.planning.reassignments.run.record import RunState
from headroom.schemas.keys import TopicPartition
from tests.unit.builders.run_stage import RunStage, stage_of

A = TopicPartition("t", 0)


def staged(failing: int) -> RunStage:
    # Broker 1 leads, and the plan gives it to broker 3.
    stage = stage_of({A: (1, 2)}, {A: (3, 1)})
    stage.cluster.failing_elections = failing
    return stage


def test_elections_that_fail_once_are_tried_again() -> None:
    stage = staged(failing=2)
    outcome = stage.run()
    assert (outcome.unelected, stage.cluster.partitions[A].leader) == ((), 3)
    (record,) = stage.journal.records()
    assert (record.state, record.elected) == (RunState.DONE, True)


def test_elections_that_fail_again_and_again_are_named_and_the_same_command_tries_them_again() -> None:
    stage = staged(failing=3)
    outcome = stage.run()
    assert (outcome.unelected, outcome.stopped, stage.cluster.partitions[A].leader) == ((A,), None, 1)
    (record,) = stage.journal.records()
    assert (record.state, record.elected, record.elections_failed) == (RunState.ENDED, False, True)
    assert (stage.cluster.rates, stage.cluster.lists, stage.left_behind()) == ({}, {}, [])
    assert stage.run().unelected == ()
    (record,) = stage.journal.records()
    assert (record.state, record.elected, record.elections_failed) == (RunState.DONE, True, False)
    assert stage.cluster.partitions[A].leader == 3
    assert [kind for kind, _ in stage.cluster.requests].count("reassign") == 1


def test_a_stop_ends_the_tries() -> None:
    stage = staged(failing=3)
    stage.cluster.on_look = lambda cluster: stage.stop.set() if A in cluster.left else None
    assert stage.run().unelected == (A,)
    assert stage.cluster.failing_elections == 2

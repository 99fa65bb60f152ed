"""Replicas that are lost while a run is dead: no further batch begins after the same command has gone on."""

from __future__ import annotations

from dataclasses import replace

import pytest

from headroom.planning.reassignments.run.record import RunState
from headroom.schemas.keys import TopicPartition
from tests.unit.builders.run_stage import RunStage, killed_while_moving, stage_of

A, B, OTHER, SICK = (TopicPartition("t", number) for number in range(4))
BEFORE = {A: (1, 2), B: (1, 2), OTHER: (1, 2), SICK: (1, 2)}
AFTER = {A: (3, 2), B: (3, 2)}


def staged() -> RunStage:
    stage = stage_of(BEFORE, *({name: replicas} for name, replicas in AFTER.items()))
    # Lost before the run, which is no reason.
    stage.cluster.partitions[SICK] = replace(stage.cluster.partitions[SICK], isr=(1,))
    return stage


@pytest.mark.parametrize("how", ["offline", "out of sync"])
def test_a_replica_that_was_lost_while_the_run_was_dead_lets_no_further_batch_begin(how: str) -> None:
    stage = killed_while_moving(staged, A)
    if how == "offline":
        stage.cluster.offline = {OTHER}
        reason = "replicas of t-2 are offline: a broker is down, or a disk has failed or is full"
    else:
        stage.cluster.partitions[OTHER] = replace(stage.cluster.partitions[OTHER], isr=(1,))
        reason = "replicas of t-2 are no longer in sync"
    outcome = stage.run()
    # The batch at hand goes on to its end.
    assert outcome.stopped == f"batch 2 did not begin: {reason}"
    assert (stage.replicas()["t", 0], stage.replicas()["t", 1]) == (AFTER[A], BEFORE[B])
    assert (stage.cluster.rates, stage.cluster.lists, stage.left_behind()) == ({}, {}, [])
    # An operator who starts it again after its end accepts the loss.
    assert stage.run().stopped is None
    assert stage.replicas()["t", 1] == AFTER[B]


def test_what_was_lost_before_the_run_is_no_reason_after_a_crash() -> None:
    stage = killed_while_moving(staged, A)
    (record,) = stage.journal.records()
    assert record.lost_before is not None
    assert (record.lost_before.under_replicated, record.lost_before.offline) == ({SICK}, set())
    assert stage.run().stopped is None
    assert [record.state for record in stage.journal.records()] == [RunState.DONE]


def test_a_journal_of_an_earlier_version_has_no_losses_of_before() -> None:
    stage = killed_while_moving(staged, A)
    stage.journal.kept = [replace(r, after="{}") if r.step == "run" else r for r in stage.journal.kept]
    stage.cluster.offline = {OTHER}
    assert stage.run().stopped is None

"""A topic that is deleted and made again under its name is another one: a run neither moves nor cancels it."""

from __future__ import annotations

import json

import pytest

from headroom.cluster.reassignment.execution.control import RunPolicy
from headroom.planning.reassignments.run.journal import ThrottledList
from headroom.planning.reassignments.run.record import RunState
from headroom.schemas.keys import Role, TopicPartition
from tests.unit.builders.run_stage import RunStage, killed_at_each_step, killed_while_moving, stage_of
from tests.unit.fakes.reassigned_cluster import FakeReassignedCluster

A, B = TopicPartition("a", 0), TopicPartition("b", 0)
BEFORE = {A: (1, 2), B: (1, 2)}
AFTER = {A: (3, 2), B: (2, 1)}
OF_ANOTHER = "is of another topic: its own was deleted"


def staged(policy: RunPolicy | None = None) -> RunStage:
    stage = stage_of(BEFORE, {A: AFTER[A]}, {B: AFTER[B]}, policy=policy)
    stage.cluster.looks = 6
    return stage


def remade_while_a_moves(stage: RunStage, topic: str) -> None:
    def look(cluster: FakeReassignedCluster) -> None:
        if A in cluster.left and topic not in cluster.remade:
            stage.end_topic_and_make_it_again(topic)

    stage.cluster.on_look = look


def test_a_topic_that_is_made_again_before_its_batch_is_not_moved_and_named() -> None:
    stage = staged()
    remade_while_a_moves(stage, "b")
    outcome = stage.run()
    assert (outcome.stopped, outcome.refused) == (None, {B: OF_ANOTHER})
    assert stage.replicas() == {("a", 0): AFTER[A], ("b", 0): BEFORE[B]}
    assert [p.leader for p in stage.cluster.partitions.values()] == [3, 1]
    assert (stage.cluster.rates, stage.cluster.lists, stage.left_behind()) == ({}, {}, [])


def test_a_topic_that_is_made_again_while_it_moves_has_ended_and_its_lists_are_of_others() -> None:
    stage = staged()
    follower = ThrottledList("a", Role.FOLLOWER)

    def look(cluster: FakeReassignedCluster) -> None:
        if A in cluster.left and not cluster.remade:
            stage.end_topic_and_make_it_again("a")
            # Others throttle the new one, by chance the same replica.
            cluster.lists[follower] = "0:3"

    stage.cluster.on_look = look
    outcome = stage.run()
    assert A in outcome.refused
    assert "gone with the partition" in outcome.refused[A]
    assert (set(stage.replicas()["a", 0]), stage.cluster.lists) == (set(BEFORE[A]), {follower: "0:3"})
    assert (stage.cluster.rates, stage.left_behind()) == ({}, [])


def test_a_move_of_the_new_topic_is_neither_waited_for_nor_cancelled() -> None:
    stage = staged(RunPolicy(10_000_000, pause_s=0, adopt=True, cancel_on_stop=True))

    def look(cluster: FakeReassignedCluster) -> None:
        if A in cluster.left and not cluster.remade:
            stage.end_topic_and_make_it_again("a")
            cluster._start(A, AFTER[A])
            cluster.left[A] = 1000
            stage.stop.set()

    stage.cluster.on_look = look
    stage.run()
    assert stage.cluster.partitions[A].target == AFTER[A]
    assert A in stage.cluster.left
    assert (stage.cluster.rates, stage.cluster.lists) == ({}, {})


@pytest.mark.parametrize("then", ["run", "clean"])
def test_what_others_make_while_the_run_is_dead_is_not_touched(then: str) -> None:
    for stage in killed_at_each_step(staged):
        if not stage.journal.records() or stage.journal.records()[0].state is not RunState.UNFINISHED:
            continue
        before = dict(stage.cluster.partitions)
        for topic in ("a", "b"):
            stage.end_topic_and_make_it_again(topic)
        again = {name: (p.replicas[::-1] if not p.moving else BEFORE[name]) for name, p in before.items()}
        for name, replicas in again.items():
            stage.cluster._start(name, replicas)
        stage.cluster.requests.clear()
        if then == "run":
            stage.run()
        else:
            stage.clean()
        assert [change for kind, change in stage.cluster.requests if kind in ("reassign", "append")] == []
        assert stage.replicas() == {tuple(name): replicas for name, replicas in again.items()}
        assert (stage.cluster.rates, stage.cluster.lists, stage.left_behind()) == ({}, {}, [])


def test_the_ids_of_the_topics_are_in_the_journal() -> None:
    stage = staged()
    stage.run()
    (record,) = stage.journal.records()
    assert record.topic_ids == {"a": "id-a", "b": "id-b"}
    options = json.loads(next(row.after or "" for row in stage.journal.kept if row.step == "run"))
    assert options["topic_ids"] == {"a": "id-a", "b": "id-b"}
    # A journal of an earlier version has none: then no topic counts as another one.
    assert not record.is_remade("c", {"c": "id-c"})


def test_after_a_crash_a_move_of_the_new_topic_to_the_same_replicas_is_of_others() -> None:
    stage = killed_while_moving(staged, A)
    stage.end_topic_and_make_it_again("a")
    stage.cluster._start(A, AFTER[A])
    stage.cluster.left[A] = 1000
    outcome = stage.run()
    assert outcome.stopped == "batch 2 did not begin: a-0 is being reassigned, but not by this run"
    assert stage.replicas()["b", 0] == BEFORE[B]
    assert A in stage.cluster.left


@pytest.mark.parametrize("then", ["run", "clean"])
def test_an_interrupted_cancellation_is_not_finished_on_the_new_topic(then: str) -> None:
    def taking_back() -> RunStage:
        stage = staged(RunPolicy(10_000_000, pause_s=0, cancel_on_stop=True))
        stage.cluster.on_look = lambda cluster: stage.stop.set() if A in cluster.left else None
        return stage

    interrupted = 0
    for stage in killed_at_each_step(taking_back):
        records = stage.journal.records()
        if not records or not records[0].cancelling:
            continue
        interrupted += 1
        stage.end_topic_and_make_it_again("a")
        # The order that others have chosen for the new one.
        stage.cluster._start(A, BEFORE[A][::-1])
        if then == "clean":
            stage.clean()
        else:
            stage.run()
        assert stage.replicas()["a", 0] == BEFORE[A][::-1]
        assert (stage.cluster.rates, stage.cluster.lists, stage.left_behind()) == ({}, {}, [])
    assert interrupted > 2

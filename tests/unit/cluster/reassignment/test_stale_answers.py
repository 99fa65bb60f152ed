"""A run whose cluster answers with metadata that is older than what has happened, or incomplete."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from headroom.cluster.reassignment.execution.control import RunPolicy
from headroom.planning.reassignments.run.journal import ThrottledList
from headroom.planning.reassignments.run.record import RunState
from headroom.schemas.errors import HeadroomError
from headroom.schemas.keys import BrokerRole, Role, TopicPartition
from tests.unit.builders.run_stage import RunStage, stage_of
from tests.unit.fakes.reassigned_cluster import FakeReassignedCluster

A, B, C = TopicPartition("a", 0), TopicPartition("b", 0), TopicPartition("c", 0)
BEFORE = {A: (1, 2), B: (1, 2), C: (1, 2)}
AFTER = {A: (3, 2), B: (3, 2), C: (3, 2)}
# Seconds for which metadata may be stale, and the interval between two looks.
STALE_S, POLL_S = 5.0, 2.0


def staged() -> RunStage:
    stage = stage_of(BEFORE, *({name: AFTER[name]} for name in (A, B, C)))
    stage.cluster.looks = 8
    return stage


def hide(stage: RunStage, topic: str, looks: list[int]) -> list[bool]:
    """Leave a topic out of some looks, counted from 1; return whether anything else began while its partition moved."""
    name, count, wrong = TopicPartition(topic, 0), [0], []

    def look(cluster: FakeReassignedCluster) -> None:
        count[0] += 1
        cluster.hidden_topics = {topic} if count[0] in looks else set()
        wrong.append(name in cluster.left and len(cluster.left) > 1)

    stage.cluster.on_look = look
    return wrong


@pytest.mark.parametrize("look", range(1, 14))
def test_one_answer_without_a_topic_is_not_its_end(look: int) -> None:
    stage = staged()
    wrong = hide(stage, "a", [look])
    outcome = stage.run()
    assert (outcome.stopped, outcome.refused, any(wrong)) == (None, {}, False)
    assert stage.replicas() == {tuple(name): replicas for name, replicas in AFTER.items()}
    assert (stage.cluster.rates, stage.cluster.lists, stage.left_behind()) == ({}, {}, [])


def test_answers_without_a_topic_now_and_then_are_not_its_end() -> None:
    stage = staged()
    stage.cluster.looks = 40
    # More than 5 s apart, and each alone.
    wrong = hide(stage, "a", [5, 12, 20, 30])
    assert (stage.run().refused, any(wrong)) == ({}, False)


def test_a_batch_whose_topic_one_answer_leaves_out_is_not_left_out() -> None:
    stage = staged()
    order: list[TopicPartition] = []

    def look(cluster: FakeReassignedCluster) -> None:
        # At the look before batch 2.
        order.extend(name for name in cluster.left if name not in order)
        cluster.hidden_topics = {"b"} if order == [A] and not cluster.left and not hidden else set()
        hidden.extend(cluster.hidden_topics)

    hidden: list[str] = []
    stage.cluster.on_look = look
    outcome = stage.run()
    assert (outcome.refused, outcome.batches, order, hidden) == ({}, 3, [A, B, C], ["b"])


def test_a_topic_that_is_gone_for_good_is_named_and_the_next_batch_begins() -> None:
    stage = staged()

    def look(cluster: FakeReassignedCluster) -> None:
        if A in cluster.left:
            cluster.hidden_topics = {"a"}

    stage.cluster.on_look = look
    outcome = stage.run()
    assert outcome.refused == {A: "cancelled or changed by others, its replicas are gone with the partition"}
    assert stage.replicas()["b", 0] == AFTER[B]
    assert stage.left_behind() == []


def unthrottled(stage: RunStage, on_move: Callable[[], None] = lambda: None) -> list[TopicPartition]:
    """Act at every look while something moves, and return what moves without its throttle, once for each look."""
    found: list[TopicPartition] = []

    def look(cluster: FakeReassignedCluster) -> None:
        rated = BrokerRole(3, Role.FOLLOWER) in cluster.rates
        for name in cluster.left:
            on_move()
            listed = cluster.lists.get(ThrottledList(name.topic, Role.FOLLOWER))
            found.extend([name] * (not rated or listed != "0:3"))

    stage.cluster.on_look = look
    return found


def without_controller(policy: RunPolicy) -> RunStage:
    """A stage on which no controller answers for 10 looks after each request.

    Meanwhile brokers show the replicas and the reassignments from before it.
    """
    stage = staged()
    stage.policy = policy
    stage.cluster.stale, stage.cluster.unread, stage.cluster.looks = 10, True, 16
    return stage


def test_a_move_that_is_accepted_before_no_controller_answers_has_not_ended() -> None:
    stage = without_controller(RunPolicy(10_000_000, pause_s=0))
    moved = unthrottled(stage)
    outcome = stage.run()
    assert (outcome.stopped, outcome.refused, moved) == (None, {}, [])
    assert stage.replicas() == {tuple(name): replicas for name, replicas in AFTER.items()}
    assert (stage.cluster.rates, stage.cluster.lists, stage.left_behind()) == ({}, {}, [])


def test_a_stop_while_no_controller_answers_cancels_the_move_once_one_does() -> None:
    stage = without_controller(RunPolicy(10_000_000, pause_s=0, cancel_on_stop=True))
    moved = unthrottled(stage, stage.stop.set)
    outcome = stage.run()
    assert (outcome.stopped, moved) == ("batch 1 was taken back: stopped by the operator", [])
    assert ("reassign", {A: None}) in stage.cluster.requests
    assert stage.replicas() == {tuple(name): replicas for name, replicas in BEFORE.items()}
    assert stage.lines.count("Cancelling 1 partitions, and restoring the order of their replicas") == 1
    assert (stage.cluster.rates, stage.cluster.lists, stage.left_behind()) == ({}, {}, [])


def cancelled_unseen(looks: int) -> RunStage:
    """A stage whose stop cancels the first batch, after which some looks show no controller and no submission."""
    stage = staged()
    stage.policy = RunPolicy(10_000_000, pause_s=0, cancel_on_stop=True)
    stage.cluster.unread, before = True, dict(stage.cluster.partitions)

    def look(cluster: FakeReassignedCluster) -> None:
        if A in cluster.left:
            stage.stop.set()
        elif ("reassign", {A: None}) in cluster.requests and not hidden:
            hidden.append(looks)
            cluster._shown = (looks, before)

    hidden: list[int] = []
    stage.cluster.on_look = look
    return stage


def test_the_order_of_replicas_after_a_cancellation_is_not_taken_from_looks_without_a_controller() -> None:
    # Kafka leaves [2,1], and these looks show [1,2].
    stage = cancelled_unseen(4)
    assert stage.run().stopped == "batch 1 was taken back: stopped by the operator"
    assert stage.replicas()["a", 0] == BEFORE[A]


def test_a_cancellation_whose_end_no_controller_confirms_is_not_done() -> None:
    stage = cancelled_unseen(10_000)
    with pytest.raises(HeadroomError, match="the reassignments: could not be read, so what to cancel is unknown"):
        stage.run()
    assert [note for note in stage.notes if "a-0 was cancelled, but may still move after 60 s" in note] != []
    (record,) = stage.left_behind()
    assert (record.state, record.cancelling) == (RunState.UNFINISHED, {A})
    assert BrokerRole(3, Role.FOLLOWER) in stage.cluster.rates


def test_a_cached_topic_is_read_again_before_its_end_counts_as_a_cancellation() -> None:
    # Above 5,000 partitions a look takes most topics from its cache: the end is known, the replicas are from before.
    stage = staged()
    stage.cluster.caches_ends = True
    outcome = stage.run()
    assert (outcome.stopped, outcome.refused) == (None, {})
    assert stage.replicas() == {tuple(name): replicas for name, replicas in AFTER.items()}
    assert set(stage.cluster.refreshed) == {"a", "b", "c"}

"""Which replicas of a plan change their directory, and the bytes that each broker copies for it."""

from __future__ import annotations

from dataclasses import replace

from headroom.planning.reassignments.directory_moves import (
    DirectoryMove,
    bytes_by_broker,
    directory_moves,
    within_brokers,
)
from headroom.schemas.keys import TopicPartition
from tests.unit.builders.log_dirs import GB, A, B, cluster, placed, plan


def test_a_replica_in_another_directory_moves_within_its_broker() -> None:
    found = directory_moves(plan(("orders", 0, (1, 2), (B, A))), cluster())
    assert found == (DirectoryMove(TopicPartition("orders", 0), 1, A, B, GB, False, 0.0),)
    assert within_brokers(found) == found


def test_a_new_replica_in_a_named_directory_copies_from_the_leader() -> None:
    found = directory_moves(plan(("orders", 0, (1, 3), ("any", B))), cluster())
    assert found == (DirectoryMove(TopicPartition("orders", 0), 3, None, B, GB, True, 0.0),)
    assert (within_brokers(found), bytes_by_broker(found)) == ((), {})


def test_an_adding_replica_has_its_log_already() -> None:
    moving = placed(replicas=(3, 2, 1), adding=(3,), log_dirs={1: A, 2: A, 3: A})
    (found,) = directory_moves(plan(("orders", 0, (3, 2), (B, "any"))), cluster(moving))
    assert (found.broker, found.source, found.new_replica) == (3, A, False)


def test_any_the_same_directory_and_unknown_partitions_move_nothing() -> None:
    targets = plan(("orders", 0, (1, 2), (A, "any")), ("orders", 7, (1,), (B,)), ("orders", 1, (2,), None))
    assert directory_moves(targets, cluster(placed(), placed(partition=1))) == ()


def test_a_replica_whose_directory_is_unknown_may_have_to_move() -> None:
    (found,) = directory_moves(plan(("orders", 0, (1, 2), (A, "any"))), cluster(placed(log_dirs={})))
    assert (found.source, found.new_replica) == (None, False)


def test_the_bytes_of_each_broker_are_unknown_as_soon_as_one_size_is() -> None:
    state = cluster(placed(), placed(partition=1), placed(partition=2, size_bytes=None))
    targets = plan(*(("orders", p, (1, 2), (B, B)) for p in (0, 1)), ("orders", 2, (1, 2), (A, B)))
    assert bytes_by_broker(directory_moves(targets, state)) == {1: 2 * GB, 2: None}


def test_the_order_does_not_depend_on_that_of_the_plan() -> None:
    state = cluster(placed(), placed(partition=1))
    targets = plan(("orders", 0, (1, 2), (B, B)), ("orders", 1, (1, 2), (B, B)))
    backwards = replace(targets, assignments=targets.assignments[::-1])
    assert directory_moves(targets, state) == directory_moves(backwards, state)

"""Every replica's answer to its new log directory."""

from __future__ import annotations

from typing import Any

import pytest

from headroom.cluster.log_dirs.alter import (
    DirectoryChange,
    DirectoryChanges,
    UnansweredDirectoryError,
    alter_log_dirs,
)
from headroom.schemas.errors import HeadroomError
from headroom.schemas.keys import ReplicaKey, TopicPartition
from tests.unit.fakes.log_dir_brokers import LogDirBrokers

A, B = "/disk/a", "/disk/b"
REPLICA_NOT_AVAILABLE, NOT_AUTHORIZED, STORAGE_ERROR, NOT_FOUND, CORDONED, INVALID_TOPIC = 9, 31, 56, 57, 39, 17
ORDERS = [ReplicaKey(TopicPartition("orders", number), 1) for number in range(3)]


@pytest.fixture
def brokers() -> LogDirBrokers:
    return LogDirBrokers()


def alter(brokers: Any, directories: dict[ReplicaKey, str]) -> DirectoryChanges:
    return alter_log_dirs(brokers, directories, 5.0)


def test_each_broker_is_asked_once_for_its_own_replicas(brokers: LogDirBrokers) -> None:
    other = ReplicaKey(TopicPartition("other", 0), 2)
    changes = alter(brokers, {ORDERS[0]: A, ORDERS[1]: B, ORDERS[2]: A, other: A})
    assert changes.accepted == dict.fromkeys([*ORDERS, other], DirectoryChange.ACCEPTED)
    asked = {
        node: {directory.path: [(t.name, t.partitions) for t in directory.topics] for directory in request.dirs}
        for node, request in brokers.requests
    }
    assert asked == {1: {A: [("orders", [0, 2])], B: [("orders", [1])]}, 2: {A: [("other", [0])]}}


def test_a_replica_that_does_not_exist_yet_is_kept_for_it(brokers: LogDirBrokers) -> None:
    brokers.codes = {("orders", 0, 1): REPLICA_NOT_AVAILABLE}
    changes = alter(brokers, {ORDERS[0]: A, ORDERS[1]: A})
    assert changes.accepted == {ORDERS[0]: DirectoryChange.KEPT, ORDERS[1]: DirectoryChange.ACCEPTED}
    changes.require_all()


@pytest.mark.parametrize(
    ("code", "text"),
    [
        (NOT_AUTHORIZED, "orders-0 on broker 1: may not be moved .*Grant ALTER on the cluster to this user"),
        (NOT_FOUND, f"orders-0 on broker 1: cannot be in {A}: the broker has no log directory of that path"),
        (STORAGE_ERROR, f"cannot be in {A}: that log directory, or the one it is in, is offline"),
        (CORDONED, f"cannot be in {A}: that log directory is cordoned"),
        (
            INVALID_TOPIC,
            r"was refused \(InvalidTopicError\)\. Run the same command again\. If it is refused",
        ),
    ],
)
def test_a_refused_replica_is_named_with_its_reason_and_the_others_are_accepted(
    brokers: LogDirBrokers, code: int, text: str
) -> None:
    brokers.codes = {("orders", 0, 1): code}
    changes = alter(brokers, {ORDERS[0]: A, ORDERS[1]: A})
    assert changes.accepted == {ORDERS[1]: DirectoryChange.ACCEPTED}
    with pytest.raises(HeadroomError, match=text):
        changes.require_all()


def test_a_replica_that_the_answer_leaves_out_is_not_taken_for_accepted(brokers: LogDirBrokers) -> None:
    brokers.leaving_out = {("orders", 1, 1)}
    assert "missing in the broker's answer" in str(alter(brokers, dict.fromkeys(ORDERS, A)).errors[ORDERS[1]])


def test_a_broker_that_hangs_leaves_its_replicas_in_question_and_no_others(brokers: LogDirBrokers) -> None:
    brokers.hanging = {2}
    silent = ReplicaKey(TopicPartition("orders", 0), 2)
    changes = alter(brokers, {silent: A, ORDERS[0]: A})
    assert changes.accepted == {ORDERS[0]: DirectoryChange.ACCEPTED}
    assert "perhaps not changed" in changes.errors[silent].rule
    assert isinstance(changes.errors[silent], UnansweredDirectoryError)
    with pytest.raises(HeadroomError, match=r"^broker 2: no answer \(KafkaTimeoutError\)"):
        changes.require_all()


def test_an_error_names_three_replicas_and_counts_the_others(brokers: LogDirBrokers) -> None:
    many = [ReplicaKey(TopicPartition("orders", number), 1) for number in range(5)]
    brokers.codes = {(*replica.name, replica.broker): NOT_FOUND for replica in many}
    with pytest.raises(HeadroomError) as raised:
        alter(brokers, dict.fromkeys(many, A)).require_all()
    assert raised.value.subject == "orders-0 on broker 1, orders-1 on broker 1, orders-2 on broker 1 and 2 more"


def test_nothing_to_alter_asks_nobody(brokers: LogDirBrokers) -> None:
    assert (alter(brokers, {}), brokers.requests) == (DirectoryChanges({}, {}), [])

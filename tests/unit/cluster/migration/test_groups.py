"""Consumer groups as kafka-python's admin client returns them."""

from __future__ import annotations

from typing import Any

import pytest
from kafka.errors import (
    CoordinatorLoadInProgressError,
    CoordinatorNotAvailableError,
    GroupAuthorizationFailedError,
    KafkaTimeoutError,
    NoError,
    NotCoordinatorError,
    UnknownMemberIdError,
)
from kafka.structs import OffsetAndMetadata
from kafka.structs import TopicPartition as KafkaTopicPartition

from headroom.cluster.migration import groups
from headroom.cluster.migration.groups import commit_offsets, read_committed, read_groups
from headroom.schemas.errors import HeadroomError
from headroom.schemas.keys import TopicPartition

NAMES = [TopicPartition("orders", p) for p in (0, 1)]


class GroupClient:
    """An admin client with groups; it is its own connection.

    Attributes:
        groups: state by group; None: the broker does not report states.
        types: type by group; the broker does not report it if it is not among them.
        offsets: committed offset by group and partition.
        answers: answer to the commit of each partition; ``NoError`` if it is not among them, and None: no answer.
        failure: what the first calls raise.
        failures: how many calls raise it.
        calls: number of calls.
        forgotten: how often the coordinators of groups were forgotten.
        asked: groups and partitions that were asked for.
    """

    def __init__(self) -> None:
        self.groups: dict[str, str | None] = {}
        self.types: dict[str, str] = {}
        self.offsets: dict[str, dict[TopicPartition, int]] = {}
        self.answers: dict[TopicPartition, Any] = {}
        self.failure: Exception | None = None
        self.failures = 1_000_000
        self.calls = self.forgotten = 0
        self.asked: list[Any] = []
        self.committed: dict[TopicPartition, OffsetAndMetadata] = {}

    def client(self) -> GroupClient:
        self.calls += 1
        if self.failure is not None and self.calls <= self.failures:
            raise self.failure
        return self

    def forget_coordinators(self) -> None:
        self.forgotten += 1

    def list_groups(self) -> list[dict[str, Any]]:
        states = {group: {} if state is None else {"group_state": state} for group, state in self.groups.items()}
        return [{"group_id": group, "group_type": self.types.get(group, ""), **own} for group, own in states.items()]

    def list_group_offsets(self, wanted: dict[str, Any]) -> dict[str, dict[Any, OffsetAndMetadata]]:
        self.asked.append(wanted)
        return {
            group: {
                KafkaTopicPartition(*name): OffsetAndMetadata(self.offsets.get(group, {}).get(name, -1), "", -1)
                for name in (names if names is not None else self.offsets.get(group, {}))
            }
            for group, names in wanted.items()
        }

    def alter_group_offsets(self, group: str, offsets: dict[Any, OffsetAndMetadata]) -> dict[Any, Any]:
        self.committed = dict(offsets)
        answers = {KafkaTopicPartition(*name): self.answers.get(name, NoError) for name in offsets}
        return {name: answer for name, answer in answers.items() if answer is not None}


@pytest.fixture
def client() -> GroupClient:
    return GroupClient()


def test_a_group_is_active_unless_it_is_empty_or_dead(client: Any) -> None:
    client.groups = {"b": "Stable", "a": "Empty", "c": "PreparingRebalance", "d": "Dead", "e": None, "f": ""}
    assert read_groups(client, "cluster old") == {"a": False, "b": True, "c": True, "d": False, "e": None, "f": None}
    client.types = {"a": "Classic", "b": "Consumer", "c": "Share"}
    assert read_groups(client, "cluster old").keys() == {"a", "b", "d", "e", "f"}


def test_a_committed_offset_of_minus_one_is_none(client: Any) -> None:
    client.offsets = {"billing": {NAMES[0]: 0}}
    assert read_committed(client, "cluster old", ["billing", "audit"], NAMES) == {"billing": {NAMES[0]: 0}, "audit": {}}
    assert client.asked == [{"billing": NAMES, "audit": NAMES}]
    assert read_committed(client, "cluster old", ["billing"], None) == {"billing": {NAMES[0]: 0}}
    assert client.asked[1] == {"billing": None}


def test_nothing_is_asked_for_nothing(client: Any) -> None:
    client.failure = KafkaTimeoutError("no answer")
    assert read_committed(client, "cluster old", [], NAMES) == {}
    assert read_committed(client, "cluster old", ["billing"], []) == {"billing": {}}


def test_an_error_names_the_cluster_and_the_right_that_is_needed(client: Any) -> None:
    client.failure = GroupAuthorizationFailedError("billing")
    with pytest.raises(
        HeadroomError, match=r"groups of cluster old: .*GroupAuthorizationFailedError.* DESCRIBE on gro"
    ):
        read_groups(client, "cluster old")


def test_after_an_error_coordinators_are_looked_up_again(client: Any) -> None:
    client.offsets = {"billing": {NAMES[0]: 7}}
    client.failure, client.failures = KafkaTimeoutError("its broker is down"), 1
    with pytest.raises(HeadroomError, match="KafkaTimeoutError"):
        read_committed(client, "cluster old", ["billing"], NAMES)
    assert client.forgotten == 1
    assert read_committed(client, "cluster old", ["billing"], NAMES) == {"billing": {NAMES[0]: 7}}
    assert client.forgotten == 1


def test_a_cluster_that_never_had_a_group_is_asked_again(client: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(groups, "_PAUSE_S", 0.0)
    client.groups = {"a": "Empty"}
    for error in (CoordinatorNotAvailableError, CoordinatorLoadInProgressError, NotCoordinatorError):
        client.failure, client.failures, client.calls = error("new"), 3, 0
        assert read_groups(client, "cluster new") == {"a": False}
        assert client.calls == 4
    client.failures, client.calls = 1_000_000, 0
    monkeypatch.setattr(groups, "_PATIENCE_S", 0.0)
    with pytest.raises(HeadroomError, match="NotCoordinatorError"):
        read_groups(client, "cluster new")


def test_offsets_are_committed_without_an_epoch_of_the_origin(client: Any) -> None:
    commit_offsets(client, "cluster new", "billing", {NAMES[0]: 5, NAMES[1]: 0})
    assert client.committed == {NAMES[0]: OffsetAndMetadata(5, "", None), NAMES[1]: OffsetAndMetadata(0, "", None)}


@pytest.mark.parametrize(("answer", "reason"), [(UnknownMemberIdError, "UnknownMemberIdError"), (None, "no answer")])
def test_a_refused_commit_names_its_partitions(client: Any, answer: Any, reason: str) -> None:
    client.answers = {NAMES[1]: answer}
    with pytest.raises(HeadroomError) as caught:
        commit_offsets(client, "cluster new", "billing", {NAMES[0]: 5, NAMES[1]: 0})
    assert caught.value.subject == "group billing on cluster new"
    assert caught.value.rule == f"1 of 2 offsets were not committed (orders-1: {reason})"

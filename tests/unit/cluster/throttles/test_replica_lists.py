"""Entries are added to throttled replica lists, whatever else is in them."""

from __future__ import annotations

from types import SimpleNamespace as Answer
from typing import Any

import pytest

from headroom.cluster.admin.config_keys import FOLLOWER_LIST, LEADER_LIST
from headroom.cluster.throttles.replica_lists import append_lists
from headroom.planning.throttles.replica_lists import TopicLists
from headroom.schemas.config import Settings
from headroom.schemas.errors import HeadroomError
from tests.unit.fakes.admin_connection import ManyTopics

INVALID_CONFIG = 40
SET, DELETE, APPEND = 0, 1, 2


class Topics(ManyTopics):
    """Topics ``t`` and ``u``, whose lists change as the controller changes them.

    Attributes:
        configs: lists by topic and key.
        deaf: topics that accept a change and do not make it.
        operations: key and operation of every change.
    """

    def __init__(self) -> None:
        super().__init__({"t": 2, "u": 1})
        self.configs: dict[str, dict[str, str]] = {"t": {}, "u": {}}
        self.deaf: set[str] = set()
        self.operations: list[tuple[str, int]] = []

    def client(self) -> None:
        """Connect."""

    def close(self) -> None:
        """Close."""

    def DescribeConfigsRequest(self, request: Any) -> Any:
        found = [
            Answer(
                error_code=0,
                resource_name=name,
                configs=[
                    Answer(name=key, value=value, config_source=1)
                    for key, value in self.configs[name].items()
                    if key in keys
                ],
            )
            for _, name, keys in request.resources
        ]
        return Answer(results=found)

    def IncrementalAlterConfigsRequest(self, request: Any) -> Any:
        """Answer as ``ConfigurationControlManager``: duplicates are dropped, and entries beside ``*`` are refused."""
        ((_, name, entries),) = request.resources
        for key, operation, value in entries:
            self.operations.append((key, operation))
            if self.configs[name].get(key) == "*":
                return Answer(responses=[Answer(error_code=INVALID_CONFIG, error_message="* allows no entries.")])
            if name not in self.deaf:
                now = self.configs[name].get(key, "").split(",")
                self.configs[name][key] = ",".join(dict.fromkeys(part for part in [*now, *value.split(",")] if part))
        return Answer(responses=[Answer(error_code=0, error_message=None)])


@pytest.fixture
def topics(monkeypatch: pytest.MonkeyPatch) -> Topics:
    fake = Topics()
    monkeypatch.setattr("headroom.cluster.admin.command_connection.AdminConnection", lambda cluster: fake)
    return fake


def append(entries: dict[str, TopicLists], **options: Any) -> list[str]:
    return append_lists(Settings(), entries, deadline_s=0.0, **options)


def test_entries_are_added_to_those_of_others(topics: Topics) -> None:
    topics.configs["t"] = {LEADER_LIST: "1:7,0:1"}
    assert append({"t": TopicLists("0:1,0:2", "0:3"), "u": TopicLists(None, "0:3")}) == ["t", "u"]
    assert topics.configs == {"t": {LEADER_LIST: "1:7,0:1,0:2", FOLLOWER_LIST: "0:3"}, "u": {FOLLOWER_LIST: "0:3"}}
    # A list that was set as a whole would lose what another sets at the same time.
    assert {operation for _, operation in topics.operations} == {APPEND}


def test_a_topic_that_refuses_is_named_and_the_others_are_extended(topics: Topics) -> None:
    topics.configs["t"] = {LEADER_LIST: "*"}
    with pytest.raises(HeadroomError, match=r"^topic t: .*\* allows no entries\); the others were changed"):
        append({"t": TopicLists("0:1", None), "u": TopicLists("0:1", None)})
    assert topics.configs == {"t": {LEADER_LIST: "*"}, "u": {LEADER_LIST: "0:1"}}


def test_entries_that_do_not_read_back_are_an_error(topics: Topics) -> None:
    topics.deaf = {"u"}
    with pytest.raises(HeadroomError, match=r"^topic u: did not read the change back"):
        append({"t": TopicLists("0:1", "0:3"), "u": TopicLists("0:1", "0:3")})


def test_without_entries_nothing_is_asked(topics: Topics) -> None:
    assert append({}) == append({"t": TopicLists(None, None)}) == []
    assert topics.operations == []


def test_a_step_names_the_topics(topics: Topics) -> None:
    steps: list[str] = []
    append({"u": TopicLists("0:1", None), "t": TopicLists("0:1", None)}, on_step=steps.append)
    assert steps == ["extending the lists of t, u; waiting until they read back"]

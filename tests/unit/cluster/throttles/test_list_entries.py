"""Single entries of throttled replica lists, on brokers that change lists as the controller does."""

from __future__ import annotations

from types import SimpleNamespace as Answer
from typing import Any

import pytest

from headroom.cluster.admin.config_keys import FOLLOWER_LIST, LEADER_LIST
from headroom.cluster.throttles.list_entries import ThrottledListEntries
from headroom.planning.reassignments.run.journal import ThrottledList
from headroom.schemas.errors import HeadroomError
from headroom.schemas.keys import Role

LEADERS, FOLLOWERS = ThrottledList("t", Role.LEADER), ThrottledList("t", Role.FOLLOWER)
TOPIC_CONFIG, DEFAULT_CONFIG = 1, 5
SET, DELETE, APPEND, SUBTRACT = range(4)


class ListBrokers:
    """A topic's lists; Kafka 4.3.1, ``ConfigurationControlManager.incrementalAlterConfigResource``."""

    def __init__(self, **lists: str) -> None:
        self.forwarding = self
        self.values = {LEADER_LIST: lists.get("leader"), FOLLOWER_LIST: lists.get("follower")}
        self.operations: list[tuple[str, int]] = []
        self.is_deaf = False
        self.error_code = 0

    def nodes(self) -> list[int]:
        return [1]

    def send(self, request: Any, node: int, timeout_s: float) -> Any:
        return getattr(self, type(request).__name__)(request)

    def DescribeConfigsRequest(self, request: Any) -> Any:
        configs = [
            Answer(name=key, value=value or "", config_source=DEFAULT_CONFIG if value is None else TOPIC_CONFIG)
            for key, value in self.values.items()
        ]
        return Answer(results=[Answer(resource_name="t", error_code=self.error_code, configs=configs)])

    def IncrementalAlterConfigsRequest(self, request: Any) -> Any:
        ((_, _, entries),) = request.resources
        for key, operation, value in entries:
            self.operations.append((key, operation))
            if not self.is_deaf:
                self._change(key, operation, value)
        return Answer(responses=[Answer(error_code=0, error_message=None)])

    def _change(self, key: str, operation: int, value: str | None) -> None:
        now = (self.values[key] or "").split(",") if self.values[key] else []
        changed = (value or "").split(",")
        if operation == DELETE:
            self.values[key] = None
        elif operation == APPEND:
            assert "*" not in now
            self.values[key] = ",".join([*now, *(entry for entry in changed if entry not in now)])
        else:
            assert operation == SUBTRACT
            self.values[key] = ",".join(entry for entry in now if entry not in changed)


def entries(brokers: ListBrokers, deadline_s: float = 5.0) -> ThrottledListEntries:
    return ThrottledListEntries(brokers, 1.0, deadline_s, sleep=lambda seconds: None)  # type: ignore[arg-type]


def test_entries_of_others_stay_and_an_emptied_list_is_deleted() -> None:
    brokers = ListBrokers(leader="7:7")
    entries(brokers).append({LEADERS: {(0, 1), (10, 2)}, FOLLOWERS: {(0, 3)}})
    assert brokers.values == {LEADER_LIST: "7:7,0:1,10:2", FOLLOWER_LIST: "0:3"}
    entries(brokers).subtract({LEADERS: {(0, 1), (10, 2)}, FOLLOWERS: {(0, 3)}})
    assert brokers.values == {LEADER_LIST: "7:7", FOLLOWER_LIST: None}


def test_what_is_not_listed_is_not_subtracted_because_that_would_set_an_empty_list() -> None:
    brokers = ListBrokers()
    entries(brokers).subtract({LEADERS: {(0, 1)}})
    assert (brokers.operations, brokers.values[LEADER_LIST]) == ([], None)


def test_a_list_that_a_killed_process_left_empty_is_deleted() -> None:
    brokers = ListBrokers(leader="")
    entries(brokers).subtract({LEADERS: {(0, 1)}})
    assert brokers.values[LEADER_LIST] is None


def test_a_list_of_every_replica_is_left_alone() -> None:
    brokers = ListBrokers(leader="*")
    entries(brokers).subtract({LEADERS: {(0, 1)}})
    assert (brokers.operations, brokers.values[LEADER_LIST]) == ([], "*")


def test_a_change_that_does_not_read_back_is_an_error() -> None:
    brokers = ListBrokers()
    brokers.is_deaf = True
    with pytest.raises(HeadroomError, match="topic t: did not read the change back"):
        entries(brokers, deadline_s=0.0).append({LEADERS: {(0, 1)}})


def test_a_topic_that_is_gone_has_no_list_and_one_that_may_not_be_read_is_an_error() -> None:
    brokers = ListBrokers(leader="0:1")
    brokers.error_code = 3
    assert entries(brokers).read(["t"]) == {}
    brokers.error_code = 29
    with pytest.raises(HeadroomError, match="Grant DESCRIBE_CONFIGS"):
        entries(brokers).read(["t"])

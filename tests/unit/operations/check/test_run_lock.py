"""Whether this user may have the run lock, found without a member and without the topic of consumer groups."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from kafka.errors import CoordinatorNotAvailableError, GroupAuthorizationFailedError, KafkaError

from headroom.operations.check import run_lock
from headroom.operations.check.result import Check, CheckStatus
from headroom.operations.check.run_lock import of_operations, run_lock_checks
from headroom.schemas.config import ReassignSettings, Settings

# Codes of Kafka's AclOperation: READ 3, DESCRIBE 8.
READ, DESCRIBE = 3, 8


@pytest.mark.parametrize(
    ("granted", "answer", "finding", "remedy"),
    [
        ({READ, DESCRIBE}, CheckStatus.OK, "READ is granted", ""),
        ({DESCRIBE}, CheckStatus.OK, "not granted, and not needed", "grant READ on group runs to this user"),
        (set(), CheckStatus.OK, "not granted, and not needed", "grant READ on group runs to this user"),
        (None, CheckStatus.UNKNOWN, "does not report permissions", "grant READ on group runs to this user"),
    ],
)
def test_the_permission_is_that_of_the_group(
    granted: set[int] | None, answer: CheckStatus, finding: str, remedy: str
) -> None:
    check = of_operations("runs", granted)
    assert (check.answer, finding in check.found, remedy in check.remedy) == (answer, True, True)


class FakeConnection:
    """A cluster with these topics."""

    def __init__(self, topics: list[str]) -> None:
        self._topics = topics
        self.closed = False

    def client(self) -> FakeConnection:
        return self

    def list_topics(self) -> list[str]:
        return self._topics

    def close(self) -> None:
        self.closed = True


@pytest.fixture
def check(monkeypatch: pytest.MonkeyPatch) -> Callable[..., Check]:
    def check(topics: list[str], answer: set[int] | KafkaError, group: str = "runs") -> Check:
        class Group:
            def __init__(self, *_: object) -> None:
                """Open nothing."""

            def operations(self) -> set[int]:
                if isinstance(answer, KafkaError):
                    raise answer
                return answer

        connection: Any = FakeConnection(topics)
        monkeypatch.setattr(run_lock, "AdminConnection", lambda kafka: connection)
        monkeypatch.setattr(run_lock, "CoordinatedGroup", Group)
        [found] = run_lock_checks(Settings(reassign=ReassignSettings(lock_group=group)))
        assert connection.closed is (group != "off")
        return found

    return check


def test_a_cluster_is_asked_only_if_it_has_groups(check: Callable[..., Check]) -> None:
    assert check(["__consumer_offsets"], {READ}).found == "READ is granted"
    # The first question for a coordinator would create the topic.
    assert check(["orders"], {READ}).found == "not checked: the cluster has no consumer group yet"
    assert check(["orders"], {READ}, group="off").found == "off by reassign.lock_group"


def test_a_hidden_group_is_not_granted_and_one_without_a_coordinator_unknown(check: Callable[..., Check]) -> None:
    assert "not granted" in check(["__consumer_offsets"], GroupAuthorizationFailedError()).found
    unknown = check(["__consumer_offsets"], CoordinatorNotAvailableError())
    assert (unknown.answer, "CoordinatorNotAvailableError" in unknown.found) == (CheckStatus.UNKNOWN, True)

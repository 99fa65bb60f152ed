"""The requests of a member to the coordinator of its group, wherever that is."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
from kafka.errors import (
    GroupAuthorizationFailedError,
    KafkaConnectionError,
    MemberIdRequiredError,
    NotCoordinatorError,
    UnknownMemberIdError,
)

from headroom.cluster.run_lock.group import CoordinatedGroup, Joined, LockTiming

GROUP = "headroom-runs"


class FakeConnection:
    """Brokers 1 and 2, of which one is the coordinator.

    Attributes:
        coordinator: id of the coordinator.
        answers: answer of the coordinator by the name of the request; an error code, the answer, or what is raised.
        sent: name of each request and the node that it was sent to.
    """

    def __init__(self) -> None:
        self.coordinator = 1
        self.answers: dict[str, Any] = {}
        self.sent: list[tuple[str, Any]] = []
        self.requests: list[Any] = []
        self.disconnected: list[Any] = []

    def nodes(self) -> list[int]:
        return [2]

    def send(self, request: Any, node: Any, timeout_s: float) -> Any:
        name = type(request).__name__.removesuffix("Request")
        self.sent.append((name, node))
        self.requests.append(request)
        if name == "FindCoordinator":
            return SimpleNamespace(error_code=self.answers.get(name, 0), node_id=self.coordinator)
        if node not in (self.coordinator, f"blocked-{self.coordinator}"):
            return SimpleNamespace(error_code=NotCoordinatorError.errno)
        answer = self.answers.get(name, 0)
        if isinstance(answer, Exception):
            raise answer
        return SimpleNamespace(error_code=answer) if isinstance(answer, int) else answer

    def add_coordinator(self, group: str, found: Any) -> str:
        return f"blocked-{found.node_id}"

    def disconnect(self, node: Any) -> None:
        self.disconnected.append(node)


@pytest.fixture
def connection() -> FakeConnection:
    return FakeConnection()


@pytest.fixture
def group(connection: Any) -> CoordinatedGroup:
    return CoordinatedGroup(connection, GROUP, LockTiming())


def test_a_new_member_gets_its_id_before_it_joins(connection: FakeConnection, group: CoordinatedGroup) -> None:
    connection.answers["JoinGroup"] = SimpleNamespace(error_code=MemberIdRequiredError.errno, member_id="m")
    assert group.new_member() == "m"
    assert connection.sent == [("FindCoordinator", 2), ("JoinGroup", 1)]
    assert (connection.requests[1].member_id, connection.requests[1].group_id) == ("", GROUP)


def test_requests_that_are_answered_late_have_a_connection_of_their_own(
    connection: FakeConnection, group: CoordinatedGroup
) -> None:
    members = [SimpleNamespace(member_id="m"), SimpleNamespace(member_id="n")]
    connection.answers["JoinGroup"] = SimpleNamespace(error_code=0, generation_id=3, leader="m", members=members)
    connection.answers["SyncGroup"] = SimpleNamespace(error_code=0, assignment=b"who")
    joined = group.join("m", b"who")
    assert joined == Joined(3, "m", ["m", "n"])
    assert group.sync(joined, "m", b"who") == b"who"
    group.beat(joined, "m")
    assert connection.sent[1:] == [("JoinGroup", "blocked-1"), ("SyncGroup", "blocked-1"), ("Heartbeat", 1)]
    join, sync, _ = connection.requests[1:]
    # A dead member is removed after 10 s.
    assert (join.session_timeout_ms, join.rebalance_timeout_ms, join.protocol_type) == (10_000, 10_000, "headroom")
    assert {a.member_id: a.assignment for a in sync.assignments} == {"m": b"who", "n": b"who"}
    # Only the leader assigns.
    group.sync(joined, "n", b"me")
    assert connection.requests[-1].assignments == []


def test_a_coordinator_that_has_moved_is_looked_up_again(connection: FakeConnection, group: CoordinatedGroup) -> None:
    group.beat(Joined(1, "m", []), "m")
    connection.coordinator = 2
    with pytest.raises(NotCoordinatorError):
        group.beat(Joined(1, "m", []), "m")
    group.beat(Joined(1, "m", []), "m")
    assert connection.sent[2:] == [("Heartbeat", 1), ("FindCoordinator", 2), ("Heartbeat", 2)]


def test_a_connection_on_which_an_answer_is_missing_is_ended(
    connection: FakeConnection, group: CoordinatedGroup
) -> None:
    connection.answers["JoinGroup"] = KafkaConnectionError("gone")
    with pytest.raises(KafkaConnectionError):
        group.join("m", b"")
    assert connection.disconnected == ["blocked-1"]
    # Its coordinator may be another one since.
    with pytest.raises(KafkaConnectionError):
        group.join("m", b"")
    assert [name for name, _ in connection.sent].count("FindCoordinator") == 2


@pytest.mark.parametrize(
    "answer",
    [
        SimpleNamespace(error_code=0, members=[SimpleNamespace(error_code=UnknownMemberIdError.errno)]),
        # With its last member the group may be gone, too.
        UnknownMemberIdError.errno,
    ],
)
def test_a_member_that_is_gone_may_leave(answer: object, connection: FakeConnection, group: CoordinatedGroup) -> None:
    connection.answers["LeaveGroup"] = answer
    group.leave("m")
    assert [m.member_id for m in connection.requests[-1].members] == ["m"]


def test_a_user_without_the_permission_is_refused_where_the_coordinator_is_looked_up(
    connection: FakeConnection, group: CoordinatedGroup
) -> None:
    connection.answers["FindCoordinator"] = GroupAuthorizationFailedError.errno
    with pytest.raises(GroupAuthorizationFailedError):
        group.new_member()


def test_members_and_operations_are_those_of_the_description(
    connection: FakeConnection, group: CoordinatedGroup
) -> None:
    described = SimpleNamespace(error_code=0, members=[SimpleNamespace(member_id="m")], authorized_operations={8})
    connection.answers["DescribeGroups"] = SimpleNamespace(groups=[described])
    assert (group.members(), group.operations()) == (["m"], {8})
    described.error_code = GroupAuthorizationFailedError.errno
    with pytest.raises(GroupAuthorizationFailedError):
        group.members()

"""The consumer group whose leader has the run lock: the requests of a member to its coordinator."""

from __future__ import annotations

from collections.abc import Collection
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Protocol

import kafka.errors as kafka_errors
from kafka.errors import (
    CoordinatorLoadInProgressError,
    CoordinatorNotAvailableError,
    KafkaError,
    MemberIdRequiredError,
    NoError,
    NotCoordinatorError,
    UnknownMemberIdError,
)
from kafka.protocol.admin import DescribeGroupsRequest
from kafka.protocol.consumer import HeartbeatRequest, JoinGroupRequest, LeaveGroupRequest, SyncGroupRequest
from kafka.protocol.metadata import FindCoordinatorRequest

from headroom.cluster.connection.admin_connection import AdminConnection
from headroom.cluster.connection.failover import BrokerFailover, NoAnswerError

# Members of consumers have another type, so that the coordinator refuses a group of consumers with the same name.
_TYPE, _PROTOCOL = "headroom", "run-lock"
_MOVED = (NotCoordinatorError, CoordinatorNotAvailableError, CoordinatorLoadInProgressError)


@dataclass(frozen=True)
class LockTiming:
    """Times of the lock, seconds.

    Attributes:
        session_s: the coordinator removes a member that it has heard nothing of for so long.
        beat_s: interval of the holder's heartbeats, by which it also notices that another process asks for the lock.
        join_s: longest wait for the other members: a dead one is removed after its session, and by default a broker
            waits 3 s for further members of a new group (group.initial.rebalance.delay.ms).
        answer_s: longest wait for a broker's answer to any other request.
        retry_s: pause before a request that failed is tried again.
        give_up_s: how long no coordinator may answer before a run begins without the lock.
        note_s: wait after which a note says what for.
        look_s: interval between two looks whether a new member is alone.
    """

    session_s: float = 10.0
    beat_s: float = 1.5
    join_s: float = 30.0
    answer_s: float = 3.0
    retry_s: float = 0.3
    give_up_s: float = 10.0
    note_s: float = 2.0
    look_s: float = 0.02


@dataclass(frozen=True)
class Joined:
    """The coordinator's answer to a member, once all members have joined.

    Attributes:
        generation: number of the group's generation.
        leader: id of the leader, which has the lock.
        members: ids of all members; only the leader gets them.
    """

    generation: int
    leader: str
    members: Collection[str]


class LockGroup(Protocol):
    """The group of a lock. Every method raises ``KafkaError`` for an answer that is an error, or that did not come."""

    def new_member(self) -> str:
        """Return the id of a new member, which is none before it joins."""
        ...

    def join(self, member: str, about: bytes) -> Joined:
        """Join again or for the first time, and return the group once all its members have."""
        ...

    def sync(self, joined: Joined, member: str, about: bytes) -> bytes:
        """Return what the leader's process says about itself; ``about`` if it is this member."""
        ...

    def beat(self, joined: Joined, member: str) -> None:
        """Send a heartbeat."""
        ...

    def leave(self, member: str) -> None:
        """Remove a member; no error if it is none any more."""
        ...

    def members(self) -> Collection[str]:
        """Return the members that have joined or are joining."""
        ...

    def close(self) -> None:
        """Close the connections."""
        ...


class CoordinatedGroup:
    """The group on a cluster.

    Args:
        connection: an admin connection of its own.
        group: id of the group.
        timing: times of the lock.
    """

    def __init__(self, connection: AdminConnection, group: str, timing: LockTiming) -> None:
        self._connection = connection
        self._group = group
        self._timing = timing
        self._brokers = BrokerFailover.for_command(connection, timing.answer_s)
        # The coordinator by its id, and by the name of a second connection to it: one whose JoinGroup is unanswered is
        # blocked. None while unknown.
        self._coordinator: tuple[int, str] | None = None

    def new_member(self) -> str:
        """Return the id of a new member, which is none before it joins."""
        answer = self._send(self._join_request("", b""), self._timing.answer_s, MemberIdRequiredError)
        return str(answer.member_id)

    def join(self, member: str, about: bytes) -> Joined:
        """Join again or for the first time, and return the group once all its members have."""
        answer = self._send(self._join_request(member, about), self._timing.join_s, blocks=True)
        return Joined(answer.generation_id, answer.leader, [member.member_id for member in answer.members])

    def _join_request(self, member: str, about: bytes) -> Any:
        session_ms = int(self._timing.session_s * 1000)
        protocol = JoinGroupRequest.JoinGroupRequestProtocol(name=_PROTOCOL, metadata=about)
        return JoinGroupRequest(
            group_id=self._group,
            session_timeout_ms=session_ms,
            rebalance_timeout_ms=session_ms,
            member_id=member,
            group_instance_id=None,
            protocol_type=_TYPE,
            protocols=[protocol],
            # From this version on a new member gets its id first. Every broker that headroom reassign runs on has it.
            min_version=5,
        )

    def sync(self, joined: Joined, member: str, about: bytes) -> bytes:
        """Return what the leader's process says about itself; ``about`` if it is this member."""
        assigned = joined.members if joined.leader == member else ()
        request = SyncGroupRequest(
            group_id=self._group,
            generation_id=joined.generation,
            member_id=member,
            group_instance_id=None,
            protocol_type=_TYPE,
            protocol_name=_PROTOCOL,
            assignments=[
                SyncGroupRequest.SyncGroupRequestAssignment(member_id=other, assignment=about) for other in assigned
            ],
        )
        # It waits for the leader, which may have died since.
        return bytes(self._send(request, self._timing.join_s, blocks=True).assignment)

    def beat(self, joined: Joined, member: str) -> None:
        """Send a heartbeat."""
        request = HeartbeatRequest(
            group_id=self._group, generation_id=joined.generation, member_id=member, group_instance_id=None
        )
        self._send(request, self._timing.answer_s)

    def leave(self, member: str) -> None:
        """Remove a member; no error if it is none any more."""
        identity = LeaveGroupRequest.MemberIdentity(member_id=member, group_instance_id=None, reason=None)
        request = LeaveGroupRequest(group_id=self._group, members=[identity], min_version=3)
        with suppress(UnknownMemberIdError):
            answer = self._send(request, self._timing.answer_s)
            for left in answer.members:
                _raise_error(left.error_code)

    def members(self) -> Collection[str]:
        """Return the members that have joined or are joining."""
        return [member.member_id for member in self._describe().members]

    def operations(self) -> Collection[int] | None:
        """Return Kafka's codes of the operations on the group that this user may use; None if not reported."""
        granted: Collection[int] | None = self._describe().authorized_operations
        return granted

    def _describe(self) -> Any:
        # From version 6 on a group without members is an error.
        request = DescribeGroupsRequest(
            groups=[self._group], include_authorized_operations=True, min_version=3, max_version=5
        )
        described = self._send(request, self._timing.answer_s).groups[0]
        _raise_error(described.error_code)
        return described

    def close(self) -> None:
        """Close the connections."""
        self._connection.close()

    def _send(self, request: Any, timeout_s: float, expected: type[KafkaError] = NoError, blocks: bool = False) -> Any:
        """Return the coordinator's answer; after an error of it, or none, the coordinator is looked up again.

        Args:
            request: the request.
            timeout_s: longest wait for the answer, seconds.
            expected: the error that is an answer.
            blocks: whether the broker answers late.
        """
        # Looked up by two threads at once, it is the same one.
        self._coordinator = coordinator = self._coordinator or self._find()
        node = coordinator[blocks]
        try:
            answer = self._connection.send(request, node, timeout_s)
        except KafkaError:
            self._coordinator = None
            if blocks:
                # The broker would read no further request from this connection.
                self._connection.disconnect(node)
            raise
        error = kafka_errors.for_code(getattr(answer, "error_code", 0))
        if issubclass(error, _MOVED):
            self._coordinator = None
        if error is not NoError and error is not expected:
            raise error(f"{type(request).__name__} of group {self._group}")
        return answer

    def _find(self) -> tuple[int, str]:
        request = FindCoordinatorRequest(key=self._group, key_type=0, max_version=3)
        try:
            found = self._brokers.send(request).answer
        except NoAnswerError as error:
            raise CoordinatorNotAvailableError(str(error)) from None
        _raise_error(found.error_code)
        return int(found.node_id), self._connection.add_coordinator(self._group, found)


def _raise_error(code: int) -> None:
    error = kafka_errors.for_code(code)
    if error is not NoError:
        raise error()

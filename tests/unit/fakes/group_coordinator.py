"""A group coordinator in memory, by the rules of Kafka's (4.3.1, GroupMetadataManager) for groups of the classic kind.

The leader is the first member, and stays it as long as it joins again. A join is answered when all members have joined.
Time does not pass: a test says when a session ends, and when the delay of a new group is over.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Collection
from dataclasses import dataclass, field

from kafka.errors import IllegalGenerationError, KafkaError, RebalanceInProgressError, UnknownMemberIdError

from headroom.cluster.run_lock.group import Joined

# A test that would wait for longer has failed.
_MOST_S = 20.0


class KilledHere(BaseException):
    """The process has ended at a request, without another word."""


@dataclass
class Member:
    """A member of the group.

    Attributes:
        joining: whether its join is unanswered.
        answer: the answer to its last join; None while it is joining.
    """

    joining: bool = False
    answer: Joined | None = None


@dataclass
class FakeCoordinator:
    """The coordinator.

    Attributes:
        members: members by id, the first to join first.
        leader: id of the leader; None without members.
        assigned: what the leader has assigned in this generation; None before it has.
        delayed: whether the delay of a new group is not over yet.
        left: members that have left, in this order.
    """

    members: dict[str, Member] = field(default_factory=dict)
    leader: str | None = None
    assigned: bytes | None = None
    delayed: bool = False
    left: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.changed = threading.Condition()
        self.generation = 0
        self.rebalancing = False
        self._ids = 0
        self._known: set[str] = set()

    def client(self) -> FakeGroup:
        """Return the group as a process asks for it."""
        return FakeGroup(self)

    def end_delay(self) -> None:
        """Let the members of a new group get their answers."""
        with self.changed:
            self.delayed = False
            self._answer()

    def end_session(self, member: str) -> None:
        """Remove a member, of which nothing was heard for too long."""
        with self.changed:
            self.remove(member)

    def new_id(self) -> str:
        """Return the id of a new member."""
        with self.changed:
            self._ids += 1
            member = f"member-{self._ids}"
            self._known.add(member)
            return member

    def add(self, member: str) -> Member:
        """Begin a join."""
        if member not in self._known:
            raise UnknownMemberIdError
        found = self.members.setdefault(member, Member())
        self.leader = self.leader or member
        found.joining, found.answer = True, None
        self.rebalancing = True
        self._answer()
        return found

    def forget(self, member: str) -> None:
        """Remove an id without a member."""
        self._known.discard(member)

    def remove(self, member: str) -> None:
        """Remove a member."""
        self._known.discard(member)
        if self.members.pop(member, None) is None:
            raise UnknownMemberIdError
        if self.leader == member:
            self.leader = next(iter(self.members), None)
        self.rebalancing = bool(self.members)
        self._answer()

    def _answer(self) -> None:
        if self.rebalancing and not self.delayed and all(m.joining for m in self.members.values()):
            self.generation += 1
            self.rebalancing, self.assigned = False, None
            for name, member in self.members.items():
                ids = list(self.members) if name == self.leader else []
                member.joining, member.answer = False, Joined(self.generation, str(self.leader), ids)
        self.changed.notify_all()

    def wait(self, condition: Callable[[], bool]) -> None:
        """Wait until a condition holds."""
        assert self.changed.wait_for(condition, _MOST_S)


class FakeGroup:
    """The group as one process asks for it.

    Attributes:
        errors: the errors of its next requests, by the name of the method; the first one comes first.
        runs: cleared while the process is suspended.
        is_killed: whether the process ends at its next request.
        closed: whether it has closed its connections.
    """

    def __init__(self, coordinator: FakeCoordinator) -> None:
        self._coordinator = coordinator
        self.errors: dict[str, list[KafkaError]] = {}
        self.runs = threading.Event()
        self.runs.set()
        self.is_killed = False
        self.closed = False

    def kill(self) -> None:
        """End the process at its next request."""
        self.is_killed = True
        self.runs.set()

    def _begin(self, method: str) -> None:
        assert self.runs.wait(_MOST_S)
        if self.is_killed:
            raise KilledHere
        if errors := self.errors.get(method):
            raise errors.pop(0)

    def new_member(self) -> str:
        self._begin("new_member")
        return self._coordinator.new_id()

    def join(self, member: str, about: bytes) -> Joined:
        self._begin("join")
        group = self._coordinator
        with group.changed:
            joining = group.add(member)
            group.wait(lambda: joining.answer is not None or member not in group.members)
            if joining.answer is None:
                raise UnknownMemberIdError
            return joining.answer

    def sync(self, joined: Joined, member: str, about: bytes) -> bytes:
        self._begin("sync")
        group = self._coordinator
        with group.changed:
            self._require(joined, member)
            if joined.leader == member:
                group.assigned = about
                group.changed.notify_all()
            group.wait(lambda: group.assigned is not None or group.rebalancing or joined.generation != group.generation)
            self._require(joined, member)
            assert group.assigned is not None
            return group.assigned

    def beat(self, joined: Joined, member: str) -> None:
        self._begin("beat")
        with self._coordinator.changed:
            self._require(joined, member)

    def _require(self, joined: Joined, member: str) -> None:
        group = self._coordinator
        if member not in group.members:
            raise UnknownMemberIdError
        if joined.generation != group.generation:
            raise IllegalGenerationError
        if group.rebalancing:
            raise RebalanceInProgressError

    def leave(self, member: str) -> None:
        self._begin("leave")
        with self._coordinator.changed:
            if member in self._coordinator.members:
                self._coordinator.remove(member)
                self._coordinator.left.append(member)
            self._coordinator.forget(member)

    def members(self) -> Collection[str]:
        self._begin("members")
        with self._coordinator.changed:
            return list(self._coordinator.members)

    def close(self) -> None:
        self.closed = True

"""The run lock of a cluster: taken, kept by heartbeats, and lost only if this process was not heard of for long."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable
from concurrent.futures import Future
from concurrent.futures import TimeoutError as NotInTime
from contextlib import suppress
from dataclasses import replace
from enum import Enum, auto

from kafka.errors import (
    BrokerResponseError,
    GroupAuthorizationFailedError,
    IllegalGenerationError,
    KafkaError,
    RebalanceInProgressError,
    RetriableError,
    SaslAuthenticationFailedError,
    UnknownError,
    UnknownMemberIdError,
    UnsupportedVersionError,
)

from headroom.cluster.run_lock.group import Joined, LockGroup, LockTiming
from headroom.cluster.run_lock.holder import LockHolder
from headroom.schemas.errors import HeadroomError
from headroom.schemas.threads import run_in_daemon_thread

log = logging.getLogger(__name__)
# How often the decision of the thread is looked at, and how long its end is waited for.
_POLL_S, _END_S = 0.05, 2.0
# Errors of a broker that pass: a password that was changed is read again, and a broker may fail for a moment.
_PASSING = (RetriableError, SaslAuthenticationFailedError, UnknownError)
OnNote = Callable[[str], None]


class LockState(Enum):
    """Whether this process has the lock.

    Attributes:
        JOINING: it is not known yet.
        HELD: it has it.
        REFUSED: another process has it.
        LOST: it had it, and another process has it since.
        UNSEEN: it runs without, because the lock is not available.
    """

    JOINING = auto()
    HELD = auto()
    REFUSED = auto()
    LOST = auto()
    UNSEEN = auto()


class RunLock:
    """Lets one process at a time change the runs of a Kafka cluster, whatever store it has.

    Kafka's coordinator keeps one leader of a group's members as long as it lives, and removes a dead member after its
    session. The leader has the lock. It says who it is in what it assigns to the other members, which then leave.

    A run during an incident must not depend on it: the partition of the group may be what is to be repaired. Without an
    answer, or without the permission, there is a note and no lock.

    Args:
        group: the group.
        cluster: name of the cluster, for errors.
        holder: this process, as others get it.
        on_note: gets a sentence about what the user should know.
        timing: times of the lock.
        on_member: gets the id of the member that this process is, and None once it is none any more.
        name: id of the group, for notes.
    """

    def __init__(
        self,
        group: LockGroup,
        cluster: str,
        holder: LockHolder,
        on_note: OnNote,
        timing: LockTiming,
        on_member: Callable[[str | None], None] = lambda member: None,
        name: str = "headroom-runs",
    ) -> None:
        self._group = group
        self._cluster = cluster
        self._name = name
        self._holder = holder
        self._on_note = on_note
        self._on_member = on_member
        self._timing = timing
        self._state = LockState.JOINING
        # The process that has the lock in place of this one.
        self._other = LockHolder()
        self._unseen_reason = ""
        self._member: str | None = None
        # Whether a join of the member is unanswered.
        self._is_joining = False
        self._left_member: str | None = None
        # Since when no coordinator has answered, monotonic seconds; None if the last request was answered.
        self._failing_since_s: float | None = None
        self._thread: Future[None] | None = None
        self._changing = threading.RLock()
        self._decided, self._leaving = threading.Event(), threading.Event()
        self._on_lost: OnNote = on_note

    def take(self, left_member: str | None = None) -> None:
        """Take the lock, unless it is not available. Call ``release`` also if this raises.

        Args:
            left_member: member of a process of the same store that has ended without leaving; None if there is none.

        Raises:
            HeadroomError: another process has it.
        """
        self._left_member = left_member
        self._failing_since_s = began_s = time.monotonic()
        self._thread = run_in_daemon_thread("run-lock", self._keep)
        is_noted, may_be_alone = False, True
        while not self._decided.wait(self._timing.look_s if may_be_alone else _POLL_S):
            waited_s = time.monotonic() - began_s
            if waited_s >= self._timing.note_s and not is_noted:
                is_noted = True
                self._on_note(self._waiting_text())
            if waited_s >= self._timing.join_s:
                self._leaving.set()
                have_not = "the members of the group {} have not agreed on a leader."
                text = have_not if self._is_joining else "no coordinator of the group {} answers."
                self._decide(LockState.UNSEEN, text.format(self._name))
            may_be_alone = may_be_alone and self._may_be_alone()
        if self._state is LockState.REFUSED:
            raise self._refusal()
        if self._state is LockState.UNSEEN:
            self._on_note(f"Runs of other stores on this cluster are not seen: {self._unseen_reason}")

    def when_lost(self, on_lost: OnNote) -> None:
        """Call a function with a sentence once another process has the lock, at once if it has it already."""
        with self._changing:
            self._on_lost = on_lost
            is_lost = self._state is LockState.LOST
        if is_lost:
            on_lost(self._lost_text())

    def require_not_lost(self) -> None:
        """Check that no other process has taken the lock since.

        Raises:
            HeadroomError: one has.
        """
        if self._state is LockState.LOST:
            raise HeadroomError(
                f"cluster {self._cluster}", self._lost_text(), "Let that process end, then run the command again."
            )

    def note_run(self, run_id: str) -> None:
        """Let others get the id of the run that this process carries on."""
        self._holder = replace(self._holder, run=run_id)

    def release(self) -> None:
        """Leave the group, as far as its coordinator answers; otherwise the membership ends with its session."""
        self._leaving.set()
        left = self._member
        # Where no coordinator answers, leaving would only wait for it.
        if self._failing_since_s is None:
            self._leave()
        if self._thread is not None:
            with suppress(NotInTime):
                self._thread.result(_END_S)
        if self._member != left:
            # Its id was on its way.
            self._leave()
        self._group.close()

    @property
    def state(self) -> LockState:
        """Whether this process has the lock."""
        return self._state

    def _may_be_alone(self) -> bool:
        """Take the lock if this member is the only one, and return whether it is worth to look again.

        The first member is the leader, but gets to know it only after the delay of a new group, 3 s by default. While
        it is a member, no later one becomes the leader.
        """
        member = self._member
        if member is None or not self._is_joining:
            return True
        try:
            members = set(self._group.members())
        # Whatever it is, the answer to the join shows the same a little later.
        except Exception:
            return False
        if members == {member}:
            self._decide(LockState.HELD)
        return members <= {member}

    def _keep(self) -> None:
        """Be a member until the end, or until another process has the lock."""
        while not self._leaving.is_set():
            try:
                if self._is_other_leader():
                    return
            except (RebalanceInProgressError, IllegalGenerationError):
                continue
            except UnknownMemberIdError:
                # Removed, because nothing was heard of this process for longer than its session.
                self._set_member(None)
            except (KafkaError, HeadroomError) as error:
                if (reason := self._lasting_reason(error)) is not None:
                    self._decide(LockState.UNSEEN, reason)
                    return
                self._leaving.wait(self._timing.retry_s)
            # A run must not wait for a thread that has ended.
            except Exception as error:
                log.exception("the run lock has failed")
                self._decide(LockState.UNSEEN, f"{type(error).__name__}: {error}")
                return

    def _is_other_leader(self) -> bool:
        """Join, and send heartbeats as the leader; return true if another process is the leader.

        Raises:
            KafkaError: the group has to be joined again.
        """
        if self._left_member is not None:
            self._group.leave(self._left_member)
            self._left_member = None
        member = self._member
        if member is None:
            member = self._group.new_member()
            self._failing_since_s = None
            self._set_member(member)
        if self._leaving.is_set():
            return False
        joined = self._join(member)
        self._failing_since_s = None
        is_leader = joined.leader == member
        if is_leader:
            self._decide(LockState.HELD)
        about = self._group.sync(joined, member, self._holder.encode())
        if not is_leader:
            self._other = LockHolder.decode(about)
            self._leave()
            self._decide(LockState.LOST if self._state is LockState.HELD else LockState.REFUSED)
            return True
        while not self._leaving.wait(self._timing.beat_s):
            self._group.beat(joined, member)
            self._failing_since_s = None
        return False

    def _join(self, member: str) -> Joined:
        self._is_joining = True
        try:
            return self._group.join(member, self._holder.encode())
        finally:
            self._is_joining = False

    def _set_member(self, member: str | None) -> None:
        self._member = member
        self._on_member(member)

    def _leave(self) -> None:
        member = self._member
        if member is not None:
            # Otherwise, whatever the reason, its session ends by itself, and what the process has done is done.
            with suppress(Exception):
                self._group.leave(member)
                self._set_member(None)

    def _lasting_reason(self, error: KafkaError | HeadroomError) -> str | None:
        """Return why the lock is not available, after an error; None if it may be later, or if this process has it."""
        if isinstance(error, GroupAuthorizationFailedError):
            return f"this user may not join the group {self._name}. Grant READ on group {self._name} to this user."
        is_refusal = isinstance(error, BrokerResponseError) and not isinstance(error, _PASSING)
        if is_refusal or isinstance(error, UnsupportedVersionError):
            return f"the group {self._name} cannot be joined ({type(error).__name__})."
        now_s = time.monotonic()
        self._failing_since_s = now_s if self._failing_since_s is None else self._failing_since_s
        if self._state is LockState.HELD or now_s - self._failing_since_s < self._timing.give_up_s:
            return None
        why = error.rule if isinstance(error, HeadroomError) else type(error).__name__
        return f"no coordinator of the group {self._name} answers ({why})."

    def _decide(self, state: LockState, reason: str = "") -> None:
        with self._changing:
            before = self._state
            if before in (LockState.REFUSED, LockState.LOST, LockState.UNSEEN):
                return
            self._state, self._unseen_reason = state, reason
            on_lost = self._on_lost
        self._decided.set()
        if state is LockState.LOST:
            on_lost(self._lost_text())
        elif state is LockState.UNSEEN and before is LockState.HELD:
            self._on_note(f"Runs of other stores on this cluster are no longer seen: {reason}")

    def _waiting_text(self) -> str:
        if self._is_joining:
            return (
                f"Waiting for the run lock of the cluster: a process that does not answer has it. The brokers remove "
                f"it {self._timing.session_s:g} s after its last sign of life."
            )
        return (
            f"Waiting for the coordinator of the group {self._name}, for up to {self._timing.give_up_s:g} s: no broker "
            f"answers for it."
        )

    def _lost_text(self) -> str:
        return (
            f"the run lock of the cluster is lost: the brokers heard nothing of this process for "
            f"{self._timing.session_s:g} s, and {self._other} has it now"
        )

    def _refusal(self) -> HeadroomError:
        other = self._other
        rule = f"is worked on by another process, {other}: two runs would take back each other's throttles"
        remedy = "Let that process end, or stop it first."
        if other.pid is not None and other.host:
            remedy = f"Let that process end, or stop it first: `kill {other.pid}` on {other.host}."
        return HeadroomError(f"cluster {self._cluster}", rule, remedy)

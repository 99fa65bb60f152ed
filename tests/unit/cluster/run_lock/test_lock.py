"""One process has the run lock of a cluster, whatever becomes of the members of its group."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from dataclasses import replace
from typing import Any

import pytest
from kafka.errors import (
    CoordinatorLoadInProgressError,
    CoordinatorNotAvailableError,
    GroupAuthorizationFailedError,
    InconsistentGroupProtocolError,
    KafkaConnectionError,
    KafkaError,
    KafkaTimeoutError,
    NotCoordinatorError,
    SaslAuthenticationFailedError,
    UnknownError,
)

from headroom.cluster.run_lock.group import LockTiming
from headroom.cluster.run_lock.holder import LockHolder
from headroom.cluster.run_lock.lock import LockState, RunLock
from headroom.schemas.errors import HeadroomError
from headroom.schemas.threads import run_in_daemon_thread
from tests.unit.fakes.group_coordinator import FakeCoordinator, FakeGroup

TIMING = LockTiming(beat_s=0.01, join_s=10.0, retry_s=0.01, give_up_s=0.2, note_s=0.1, look_s=0.005)
_MOST_S = 20.0
# 2027-01-15 08:00:00 UTC.
ANNA = LockHolder("anna@host1", 4242, 1_800_000_000_000, "headroom reassign run move.json", "/data/store")
BERT = LockHolder("bert@host2", 77, 1_800_000_060_000, "headroom reassign clean", "s3://bucket/store")


class Process:
    """A process with the lock, or on its way to it."""

    def __init__(self, coordinator: FakeCoordinator, holder: LockHolder = ANNA, timing: LockTiming = TIMING) -> None:
        self.group: FakeGroup = coordinator.client()
        self.notes: list[str] = []
        self.members: list[str | None] = []
        self.lost: list[str] = []
        self.lock = RunLock(self.group, "orders", holder, self.notes.append, timing, self.members.append)

    def take(self, left_member: str | None = None) -> Process:
        self.lock.take(left_member)
        return self

    def take_later(self) -> Future[Process]:
        return run_in_daemon_thread("take", self.take)

    @property
    def member(self) -> str:
        return next(member for member in reversed(self.members) if member is not None)


@pytest.fixture
def coordinator() -> FakeCoordinator:
    return FakeCoordinator()


@pytest.fixture
def new(coordinator: FakeCoordinator) -> Iterator[Callable[..., Process]]:
    """Return a function that makes a process, which leaves in the end."""
    made: list[Process] = []

    def make(holder: LockHolder = ANNA, timing: LockTiming = TIMING) -> Process:
        made.append(Process(coordinator, holder, timing))
        return made[-1]

    yield make
    for process in made:
        if not process.group.is_killed:
            process.group.runs.set()
            process.lock.release()


def wait_until(condition: Callable[[], bool]) -> None:
    waits = threading.Event()
    for _ in range(int(_MOST_S / 0.01)):
        if condition():
            return
        waits.wait(0.01)
    raise AssertionError("not in time")


def refused(process: Process) -> str:
    with pytest.raises(HeadroomError) as error:
        process.take()
    return str(error.value)


def test_a_process_alone_has_the_lock_until_it_leaves(
    coordinator: FakeCoordinator, new: Callable[..., Process]
) -> None:
    process = new().take()
    assert (process.lock.state, coordinator.leader) == (LockState.HELD, process.member)
    process.lock.release()
    assert (coordinator.members, process.notes, process.members[-1]) == ({}, [], None)
    assert process.group.closed
    # The next one has it at once.
    assert new(BERT).take().lock.state is LockState.HELD


def test_a_second_process_is_refused_with_the_name_of_the_first(
    coordinator: FakeCoordinator, new: Callable[..., Process]
) -> None:
    first = new().take()
    first.lock.note_run("3f9a01c2")
    assert refused(new(BERT)) == (
        "cluster orders: is worked on by another process, anna@host1, pid 4242 since 2027-01-15 08:00:00 UTC (headroom "
        "reassign run move.json; run 3f9a01c2; store /data/store): two runs would take back each other's throttles. "
        "Let that process end, or stop it first: `kill 4242` on host1."
    )
    # Nothing of it is left, and the first one has joined again.
    wait_until(lambda: not coordinator.rebalancing and list(coordinator.members) == [first.member])
    assert (first.lock.state, coordinator.leader) == (LockState.HELD, first.member)
    assert len(set(first.members)) == 1


def test_of_processes_that_come_at_once_one_has_it(coordinator: FakeCoordinator, new: Callable[..., Process]) -> None:
    # As the brokers wait for further members of a new group.
    coordinator.delayed = True
    processes = [new(replace(ANNA, pid=pid)) for pid in range(1, 6)]
    with_errors = [process.take_later() for process in processes]
    wait_until(lambda: len(coordinator.members) == 5)
    coordinator.end_delay()
    errors = [future.exception(_MOST_S) for future in with_errors]
    assert errors.count(None) == 1
    holder = processes[errors.index(None)]
    assert {process.lock.state for process in processes if process is not holder} == {LockState.REFUSED}
    assert all(f"pid {holder.lock._holder.pid} " in str(error) for error in errors if error is not None)
    wait_until(lambda: list(coordinator.members) == [holder.member])


def test_the_first_member_of_a_new_group_does_not_wait_for_others(
    coordinator: FakeCoordinator, new: Callable[..., Process]
) -> None:
    coordinator.delayed = True
    first = new().take()
    assert first.lock.state is LockState.HELD
    # Its join is unanswered.
    assert coordinator.members[first.member].joining
    second = new(BERT).take_later()
    wait_until(lambda: len(coordinator.members) == 2)
    coordinator.end_delay()
    assert "anna@host1" in str(second.exception(_MOST_S))
    assert first.lock.state is LockState.HELD


def test_a_run_that_ends_within_the_delay_of_a_new_group_leaves_nothing(
    coordinator: FakeCoordinator, new: Callable[..., Process]
) -> None:
    coordinator.delayed = True
    process = new().take()
    process.lock.release()
    assert (coordinator.members, process.members[-1]) == ({}, None)


def test_a_killed_holder_is_waited_for(coordinator: FakeCoordinator, new: Callable[..., Process]) -> None:
    first = new().take()
    first.group.kill()
    second = new(BERT)
    taken = second.take_later()
    wait_until(lambda: bool(second.notes))
    assert "a process that does not answer has it. The brokers remove it 10 s after" in second.notes[0]
    assert not taken.done()
    coordinator.end_session(first.member)
    assert taken.result(_MOST_S).lock.state is LockState.HELD
    assert len(second.notes) == 1


def test_a_killed_process_of_the_same_store_is_removed_at_once(
    coordinator: FakeCoordinator, new: Callable[..., Process]
) -> None:
    first = new().take()
    first.group.kill()
    second = new().take(first.member)
    assert (second.lock.state, second.notes) == (LockState.HELD, [])
    assert coordinator.left == [first.member]
    # One that was removed already is no error.
    second.lock.release()
    assert new().take(first.member).lock.state is LockState.HELD


def test_a_wait_that_is_interrupted_leaves_no_member(coordinator: FakeCoordinator, new: Callable[..., Process]) -> None:
    first = new().take()
    first.group.kill()
    second = new(BERT)
    taken = second.take_later()
    wait_until(lambda: len(coordinator.members) == 2)
    # As after Ctrl-C.
    second.lock.release()
    assert list(coordinator.members) == [first.member]
    coordinator.end_session(first.member)
    assert coordinator.members == {}
    second.lock._decide(LockState.UNSEEN)
    taken.result(_MOST_S)


def test_a_process_that_leaves_before_it_has_its_id_does_not_join(
    coordinator: FakeCoordinator, new: Callable[..., Process]
) -> None:
    process = new()
    process.group.runs.clear()
    taken = process.take_later()
    wait_until(lambda: process.lock._thread is not None)
    # As after Ctrl-C, while no broker answers for longer than the end is waited for.
    process.lock.release()
    process.group.runs.set()
    assert process.lock._thread is not None
    process.lock._thread.result(_MOST_S)
    assert coordinator.members == {}
    process.lock._decide(LockState.UNSEEN)
    taken.result(_MOST_S)


def test_an_error_of_the_client_does_not_end_a_run(new: Callable[..., Process]) -> None:
    process, error = new(), RuntimeError("NetworkSelector closed!")
    errors: Any = {"members": [error], "leave": [error]}
    process.group.errors = errors
    assert process.take().lock.state is LockState.HELD
    process.lock.release()
    assert process.group.closed


def test_a_lock_that_is_lost_is_taken_again_if_it_is_free(
    coordinator: FakeCoordinator, new: Callable[..., Process]
) -> None:
    process = new().take()
    process.lock.when_lost(process.lost.append)
    before = process.member
    coordinator.end_session(before)
    wait_until(lambda: coordinator.leader not in (None, before))
    assert (coordinator.leader, process.lock.state) == (process.member, LockState.HELD)
    assert (process.lost, process.notes) == ([], [])
    assert "anna@host1" in refused(new(BERT))


@pytest.mark.parametrize("is_asked_later", [False, True])
def test_a_lock_that_another_process_has_taken_is_lost(
    coordinator: FakeCoordinator, new: Callable[..., Process], is_asked_later: bool
) -> None:
    process = new().take()
    if not is_asked_later:
        process.lock.when_lost(process.lost.append)
    process.group.runs.clear()
    coordinator.end_session(process.member)
    other = new(BERT).take()
    process.group.runs.set()
    wait_until(lambda: process.lock.state is LockState.LOST)
    if is_asked_later:
        process.lock.when_lost(process.lost.append)
    wait_until(lambda: bool(process.lost))
    with pytest.raises(HeadroomError, match=r"cluster orders: the run lock of the cluster is lost: .* has it now"):
        process.lock.require_not_lost()
    other.lock.require_not_lost()
    assert process.lost == [
        "the run lock of the cluster is lost: the brokers heard nothing of this process for 10 s, and bert@host2, pid "
        "77 since 2027-01-15 08:01:00 UTC (headroom reassign clean; store s3://bucket/store) has it now"
    ]
    wait_until(lambda: list(coordinator.members) == [other.member])
    assert other.lock.state is LockState.HELD


def test_without_the_permission_a_run_begins_with_a_note(new: Callable[..., Process]) -> None:
    process = new()
    process.group.errors = {"new_member": [GroupAuthorizationFailedError()]}
    process.take()
    assert process.lock.state is LockState.UNSEEN
    assert process.notes == [
        "Runs of other stores on this cluster are not seen: this user may not join the group headroom-runs. Grant READ "
        "on group headroom-runs to this user."
    ]


@pytest.mark.parametrize(
    ("error", "reason"),
    [
        (InconsistentGroupProtocolError(), "the group headroom-runs cannot be joined (InconsistentGroupProtocolE"),
        (CoordinatorNotAvailableError(), "no coordinator of the group headroom-runs answers (CoordinatorNotAvailableE"),
        (KafkaTimeoutError(), "no coordinator of the group headroom-runs answers (KafkaTimeoutError)."),
    ],
)
def test_without_a_coordinator_a_run_begins_with_a_note(
    error: KafkaError, reason: str, new: Callable[..., Process]
) -> None:
    process = new()
    process.group.errors = {"new_member": [error] * 10_000}
    process.take()
    assert process.lock.state is LockState.UNSEEN
    assert reason in process.notes[-1]


def test_a_wait_for_the_coordinator_has_a_note(new: Callable[..., Process]) -> None:
    process = new(timing=replace(TIMING, give_up_s=1.0))
    process.group.errors = {"new_member": [NotCoordinatorError()] * 20}
    process.take()
    assert process.lock.state is LockState.HELD
    assert process.notes == [
        "Waiting for the coordinator of the group headroom-runs, for up to 1 s: no broker answers for it."
    ]


@pytest.mark.parametrize("method", ["new_member", "join", "sync", "leave"])
def test_a_coordinator_that_moves_is_asked_again(
    method: str, coordinator: FakeCoordinator, new: Callable[..., Process]
) -> None:
    process = new()
    process.group.errors = {method: [NotCoordinatorError(), CoordinatorLoadInProgressError(), KafkaConnectionError()]}
    process.take("gone")
    assert (process.lock.state, process.notes) == (LockState.HELD, [])
    wait_until(lambda: coordinator.assigned is not None)
    assert list(coordinator.members) == [process.member]


def test_a_holder_outlives_a_coordinator_that_does_not_answer(
    coordinator: FakeCoordinator, new: Callable[..., Process]
) -> None:
    process = new().take()
    # Longer than a run waits at its beginning.
    process.group.errors = {"beat": [KafkaTimeoutError()], "join": [KafkaTimeoutError()] * 40}
    wait_until(lambda: process.group.errors["join"] == [])
    wait_until(lambda: not coordinator.rebalancing and coordinator.members[process.member].answer is not None)
    assert (process.lock.state, process.notes) == (LockState.HELD, [])


@pytest.mark.parametrize("error", [SaslAuthenticationFailedError(), UnknownError()])
def test_a_holder_outlives_an_error_that_passes(
    error: KafkaError, coordinator: FakeCoordinator, new: Callable[..., Process]
) -> None:
    process = new().take()
    process.group.errors = {"beat": [error]}
    wait_until(lambda: process.group.errors["beat"] == [])
    assert "anna@host1" in refused(new(BERT))
    assert (process.lock.state, process.notes) == (LockState.HELD, [])


def test_a_permission_that_is_taken_away_is_noted_and_ends_nothing(new: Callable[..., Process]) -> None:
    process = new().take()
    process.lock.when_lost(process.lost.append)
    process.group.errors = {"beat": [GroupAuthorizationFailedError()]}
    wait_until(lambda: bool(process.notes))
    assert process.notes[0].startswith("Runs of other stores on this cluster are no longer seen: this user may not")
    assert process.lost == []


@pytest.mark.parametrize(
    "data", [b"", b"no JSON", b"[1]", b'{"pid": "x"}', b'{"since_ms": 1e400}', b"\xff", b'{"by": "a@b", "pid": -1}']
)
def test_whatever_another_program_puts_in_its_place_is_an_unknown_process(data: bytes) -> None:
    assert str(LockHolder.decode(data)) == "an unknown process"


def test_who_has_the_lock_is_one_printable_line() -> None:
    assert LockHolder.decode(ANNA.encode()) == ANNA
    shown = str(LockHolder.decode(replace(ANNA, command="a\nb\x1b[2J" * 100).encode()))
    assert shown.isprintable()
    assert len(shown) <= 300

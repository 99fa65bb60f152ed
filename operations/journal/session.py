"""What the commands on runs share: the journal of the cluster, its runs, and the lock that lets one run at a time."""

from __future__ import annotations

import os
import secrets
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager

from headroom.cluster.connection.admin_connection import AdminConnection
from headroom.cluster.reassignment.execution.run_journal import RunJournal
from headroom.cluster.run_lock.group import CoordinatedGroup, LockTiming
from headroom.cluster.run_lock.holder import LockHolder
from headroom.cluster.run_lock.lock import RunLock
from headroom.operations.progress import OnText
from headroom.planning.reassignments.plan import plan_part
from headroom.planning.reassignments.run.orders import KnownOrders, known_orders
from headroom.planning.reassignments.run.record import RecordedRun, RunState, run_records
from headroom.schemas.config import Settings
from headroom.schemas.environment import user_name
from headroom.schemas.errors import HeadroomError
from headroom.streaming.clock import now_ms
from headroom.streaming.store.single_instance import (
    SHARED_S,
    JobLocks,
    JobProcess,
    SecondProcess,
    exclusive_jobs,
    own_command,
    run_job,
    running_process,
)
from headroom.streaming.tables.journal import ActionJournal

_ID_BYTES = 4
_TWO_RUNS = SecondProcess("two runs would take back each other's throttles", "Let that process end, or stop it first.")


class RunSession:
    """The runs of one cluster, and new journals of them.

    Args:
        settings: all settings.
        command: command that makes changes, as the journal names it.

    Raises:
        HeadroomError: the journal cannot be read.
    """

    def __init__(self, settings: Settings, command: str) -> None:
        self._settings = settings
        self._command = command
        self._store = ActionJournal(settings.store.path)
        self.cluster = settings.cluster.name
        self._job = run_job(self.cluster)
        self._lock: RunLock | None = None
        self.reread()

    def journal(self, record: RecordedRun | None = None) -> RunJournal:
        """Return the journal of a run; of a new one if None. Others get its id from the run lock."""
        record = record or RecordedRun(secrets.token_hex(_ID_BYTES))
        if self._lock is not None:
            self._lock.note_run(record.run_id)
        return RunJournal(self._store, record, self.cluster, self._command, author(), now_ms)

    def reread(self) -> None:
        """Read the runs again: another process may have changed them before it gave up the lock.

        Raises:
            HeadroomError: the journal cannot be read.
        """
        self._rows = self._store.rows(self.cluster)
        self.records = run_records(self._rows)

    def orders(self) -> KnownOrders:
        """Return the orders of replicas that the journal has, as it was read last."""
        return known_orders(self._rows)

    @contextmanager
    def alone(self, on_note: OnText = lambda text: None) -> Iterator[None]:
        """Keep other processes from changing runs of this cluster until the block ends.

        Those of the same store on this machine are kept off by a lock of the kernel, and all others, whatever their
        store is, by the run lock of the cluster, as far as this user and the state of the cluster allow it.

        Args:
            on_note: gets a sentence about a wait, or why runs of other stores are not seen.

        Raises:
            HeadroomError: another process does so now, or the journal cannot be read.
        """
        with exclusive_jobs(self._settings.store, [self._job], SHARED_S, second=_TWO_RUNS) as locks:
            self._lock = self._new_lock(locks, on_note)
            try:
                if self._lock is not None:
                    self._lock.take(locks.left_member)
                self.reread()
                yield
            finally:
                if self._lock is not None:
                    self._lock.release()
                self._lock = None

    def _new_lock(self, locks: JobLocks, on_note: OnText) -> RunLock | None:
        """Return the run lock of the cluster, which is not taken yet; None if the settings want none."""
        group = self._settings.reassign.run_lock_group()
        if group is None:
            return None
        holder = LockHolder(author(), os.getpid(), now_ms(), own_command(), self._settings.store.path)
        timing = LockTiming()
        requests = CoordinatedGroup(AdminConnection(self._settings.cluster), group, timing)
        return RunLock(requests, self.cluster, holder, on_note, timing, locks.note_member, group)

    def stop_if_lost(self, stop: threading.Event, on_lost: OnText) -> None:
        """Set an event, after a call with a sentence, once another process has taken the run lock of the cluster.

        Args:
            stop: the event that ends the run.
            on_lost: gets who has the lock.
        """

        def end(text: str) -> None:
            try:
                on_lost(text)
            # Its output may be closed.
            finally:
                stop.set()

        if self._lock is not None:
            self._lock.when_lost(end)

    def require_not_lost(self) -> None:
        """Check that no other process has taken the run lock of the cluster since this one had it.

        Raises:
            HeadroomError: one has.
        """
        if self._lock is not None:
            self._lock.require_not_lost()

    def running(self) -> dict[str, JobProcess]:
        """Return the process that carries on an unfinished run now, by the id of the run.

        At most one does, by the lock. It is empty too if that is unknown, as on object stores.
        """
        process = running_process(self._settings.store, self._job)
        unfinished = [record for record in self.records if record.state is RunState.UNFINISHED]
        if process is None or not unfinished:
            return {}
        return {max(unfinished, key=lambda record: record.last_ms or 0).run_id: process}

    def resumable(self, fingerprint: str) -> RecordedRun | None:
        """Return the last run of a plan that has not reached its end; None if there is none.

        Args:
            fingerprint: fingerprint of the plan; the present replicas in it do not count, because a run changes them.
        """
        of_plan = [r for r in self.records if plan_part(r.fingerprint) == plan_part(fingerprint)]
        unfinished = [r for r in of_plan if r.state is not RunState.DONE]
        return unfinished[-1] if unfinished else None

    def of_id(self, run_id: str) -> RecordedRun:
        """Return a run by its id, or by the beginning of it.

        Raises:
            HeadroomError: no run, or more than one, has this id.
        """
        matches = [record for record in self.records if run_id and record.run_id.startswith(run_id)]
        if len(matches) != 1:
            rule = "is the beginning of several ids" if matches else f"is not in the journal of cluster {self.cluster}"
            raise HeadroomError(f"run {run_id}", rule, "The runs are listed by: headroom reassign runs")
        return matches[0]


def author() -> str:
    """Return user and host of this process: ``anna@host1``; of a command of the page, its user there."""
    user = user_name()
    return f"{os.getuid() if user is None else user}@{socket.gethostname()}"


def require_this_host(record: RecordedRun, force: bool) -> None:
    """Check that an unfinished run was begun on this machine: on another one its process may be running still.

    Raises:
        HeadroomError: it was begun on another machine, and ``force`` is false.
    """
    here, there = author().rpartition("@")[2], record.by.rpartition("@")[2]
    if record.state is RunState.UNFINISHED and here != there and not force:
        rule = f"is unfinished, and was begun on host {there}, where it may be running still"
        raise HeadroomError(f"run {record.run_id}", rule, "Run the command there; or with --force if it has ended.")

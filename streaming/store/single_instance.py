"""Locks that let each job of a store run in only one process; the error of a second process names the first."""

from __future__ import annotations

import fcntl
import json
import logging
import os
import socket
import sys
import threading
import time
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

import psutil

from headroom.schemas.config import StoreSettings
from headroom.schemas.errors import HeadroomError
from headroom.schemas.text import one_line
from headroom.schemas.text.amounts import moment_text
from headroom.streaming.clock import now_ms
from headroom.streaming.delta.locations import local_path
from headroom.streaming.supervision.in_time import InTime, NoAnswer

log = logging.getLogger(__name__)

# Interval between two looks whether the locks of a running process are still there, and wait for one that is taken.
_CHECK_S, _REPAIR_S = 5.0, 2.0
# Folder of the second lock of each job, below the tables.
_FOLDER = "_locks"
_POLL_S = 0.5
# A process that asks who has a lock may have it for a moment itself; a process that needs that lock waits this long.
SHARED_S = _POLL_S
_MAX_CHARACTERS = 100
# The system knows its own start, from which those of processes are counted, only to the second.
_START_MS = 2000


@dataclass(frozen=True)
class SecondProcess:
    """Texts of the error of a second process.

    Attributes:
        why: consequence of two processes.
        remedy: action for the user.
    """

    why: str = "two would write the same rows, and send every alert twice"
    remedy: str = "Stop that process first, or set another store.path for this one."


@dataclass(frozen=True)
class JobProcess:
    """The process that runs a job, as it has written into the lock; on a full disk only the lock is there.

    Attributes:
        pid: id of the process on its host; None if unknown.
        host: name of the host; None if unknown.
        since_ms: when it began, epoch milliseconds; None if unknown.
        command: its command line, shortened; None if unknown.
        member: the member of a Kafka group that it is; None if it is none, or if that is unknown.
    """

    pid: int | None = None
    host: str | None = None
    since_ms: int | None = None
    command: str | None = None
    member: str | None = None

    def __str__(self) -> str:
        if self.since_ms is None:
            return "an unknown process"
        return one_line(f"pid {self.pid} on host {self.host} since {moment_text(self.since_ms)}", _MAX_CHARACTERS)


class JobLocks:
    """Locks that a process has.

    Args:
        store_path: ``store.path``, for errors.
        second: texts of the error of a second process.

    Attributes:
        left_member: the member of a Kafka group that the process before was, if it has ended without leaving it.
    """

    def __init__(self, store_path: str, second: SecondProcess) -> None:
        self._store_path = store_path
        self._second = second
        self._held: dict[Path, IO[str]] = {}
        # One time in all locks, also in those that are taken again.
        self._since_ms = now_ms()
        self._in_time = InTime[None](store_path)
        self._next_s = time.monotonic() + _CHECK_S
        self.left_member: str | None = None

    def take(self, path: Path, until_s: float, stop: threading.Event) -> None:
        """Lock a file, if it can be opened.

        Args:
            path: the file.
            until_s: end of the wait for a process that is about to end, monotonic seconds.
            stop: ends the wait when set.

        Raises:
            HeadroomError: another process has the lock.
        """
        file = _open(path)
        if file is None:
            return
        try:
            _lock(file, (self._store_path, self._second), until_s, stop)
            former = _identity(file)
            # The lock alone does not show it: a file system may have no locks, or the disk be that of several machines.
            if former.member is not None and _has_ended(former):
                self.left_member = former.member
            _write_owner(file, self._since_ms)
        except BaseException:
            file.close()
            raise
        before, self._held[path] = self._held.get(path), file
        if before is not None:
            before.close()

    def check(self) -> None:
        """Take locks again whose files were removed, often with all tables. It looks every 5 s.

        Raises:
            HeadroomError: another process has taken one of them meanwhile.
        """
        if time.monotonic() < self._next_s:
            return
        self._next_s = time.monotonic() + _CHECK_S
        # A disk that hangs has removed nothing.
        with suppress(NoAnswer):
            self._in_time.call(self._take_removed)

    def _take_removed(self) -> None:
        for path, file in list(self._held.items()):
            if _is_removed(path, file):
                # A repair has the lock of a job for a moment.
                self.take(path, time.monotonic() + _REPAIR_S, threading.Event())

    def note_member(self, member: str | None) -> None:
        """Write the member of a Kafka group that this process is into its locks; None if it is none any more."""
        for file in self._held.values():
            _write_owner(file, self._since_ms, member)

    def release(self) -> None:
        """Release all locks."""
        for file in self._held.values():
            # On a full disk the identity is still to be written; the lock ends all the same.
            with suppress(OSError):
                file.close()


@contextmanager
def exclusive_jobs(
    store: StoreSettings,
    jobs: Iterable[str],
    wait_s: float = 0.0,
    stop: threading.Event | None = None,
    second: SecondProcess = SecondProcess(),
) -> Iterator[JobLocks]:
    """Lock jobs of a store against other processes until the block or this process ends.

    The locks belong to the kernel, so a killed process leaves none behind. Each is taken next to the checkpoints and
    next to the tables: settings may name another checkpoint_path, and checkpoints may be removed while a job runs.
    Object stores have no locks, and a disk may be unwritable. Jobs then run without a lock, and two processes notice
    each other by their checkpoints, some batches later.

    Args:
        store: section ``[store]``.
        jobs: names of the jobs to lock.
        wait_s: longest wait for a process that is about to end, in seconds.
        stop: ends the wait when set; cannot be ended early if None.
        second: texts of the error of a second process.

    Raises:
        HeadroomError: another process runs one of the jobs.
    """
    locks = JobLocks(store.path, second)
    try:
        for path in (path for job in jobs for path in _places(store, job)):
            locks.take(path, time.monotonic() + wait_s, stop or threading.Event())
        yield locks
    finally:
        locks.release()


def running_process(store: StoreSettings, job: str) -> JobProcess | None:
    """Return the process that runs a job now; None if none does, or if that is unknown.

    For a moment this process has a shared lock itself: see ``SHARED_S``.

    Args:
        store: section ``[store]``.
        job: name of the job.
    """
    for path in _places(store, job):
        with suppress(OSError), path.open(encoding="utf-8") as file:
            if not _try_lock(file, fcntl.LOCK_SH):
                return _owner(file)
    return None


def own_command() -> str:
    """Return the command line of this process, shortened."""
    return one_line(f"headroom {' '.join(sys.argv[1:])}", _MAX_CHARACTERS)


def run_job(cluster: str) -> str:
    """Return the name of the job whose lock a process has while it changes the runs of plans on a cluster."""
    return f"reassign-{cluster.replace(os.sep, '_')}"


def run_process(store_path: str, cluster: str) -> str | None:
    """Return the process that carries on a run of a cluster now, as text; None if none does, or if that is unknown.

    Args:
        store_path: ``store.path``. A run has the lock there too, whatever its ``checkpoint_path`` is.
        cluster: name of the cluster.
    """
    process = running_process(StoreSettings(path=store_path), run_job(cluster))
    return None if process is None else str(process)


def ended_process(store: StoreSettings, job: str) -> JobProcess | None:
    """Return the last process that ran a job, if it was on this machine and has ended; None if one may run it now.

    An ended process writes no more rows, which shows by their age only a minute later. Whether a process on another
    machine runs is not known, nor on an object store, which has no locks.

    Args:
        store: section ``[store]``.
        job: name of the job.
    """
    owners = []
    for path in _places(store, job):
        try:
            with path.open(encoding="utf-8") as file:
                if not _try_lock(file, fcntl.LOCK_SH):
                    return None
                owners.append(_identity(file))
        except FileNotFoundError:
            continue
        except OSError:
            return None
    # Settings may name another checkpoint_path by now; the lock in the former one names an earlier process.
    last = max(owners, key=lambda owner: owner.since_ms or 0, default=JobProcess())
    return last if _has_ended(last) else None


def _places(store: StoreSettings, job: str) -> list[Path]:
    """Return the files to lock for a job; none for places that are on no disk."""
    folders = (local_path(store.checkpoints()), local_path(f"{store.path.rstrip('/')}/{_FOLDER}"))
    return [Path(folder) / f"{job}.lock" for folder in folders if folder is not None]


def _is_removed(path: Path, file: IO[str]) -> bool:
    """Return whether an open file is no longer the one at its path."""
    try:
        return not os.path.samestat(path.stat(), os.fstat(file.fileno()))
    except (FileNotFoundError, NotADirectoryError):
        return True
    except OSError:
        return False


def _open(path: Path) -> IO[str] | None:
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        if path.is_dir():
            # A disk may leave a folder in the place of a file. Without the lock a second process would run the job too.
            path.rmdir()
            log.warning("the lock %s was a folder, and is created again", path)
        try:
            return path.open("a+", encoding="utf-8")
        except PermissionError:
            # Another user has run the job, and may do so now. A file that can be read can be locked.
            return path.open(encoding="utf-8")
    except OSError:
        # The job that writes there reports what is wrong with the folder.
        return None


def _lock(file: IO[str], error_texts: tuple[str, SecondProcess], until_s: float, stop: threading.Event) -> None:
    """Lock a file; closing it unlocks it.

    Raises:
        HeadroomError: another process has the lock.
    """
    while not _try_lock(file):
        if time.monotonic() >= until_s or stop.wait(_POLL_S):
            store, second = error_texts
            rule = f"is worked on by another process{_owner_text(file)}: {second.why}"
            raise HeadroomError(f"store {store}", rule, second.remedy)


def _try_lock(file: IO[str], kind: int = fcntl.LOCK_EX) -> bool:
    """Return whether the lock was acquired; true also on a file system without locks."""
    try:
        fcntl.flock(file, kind | fcntl.LOCK_NB)
    except OSError as error:
        return not isinstance(error, BlockingIOError)
    return True


def _write_owner(file: IO[str], since_ms: int, member: str | None = None) -> None:
    """Write this process's identity into a file that it has locked."""
    owner = {
        "host": socket.gethostname(),
        "pid": os.getpid(),
        "command": own_command(),
        "since_ms": since_ms,
        **({} if member is None else {"member": member}),
    }
    try:
        file.truncate(0)
        file.write(json.dumps(owner))
        file.flush()
    # Locks work on a full disk too; only the identity is missing. A file that was released meanwhile is closed.
    except (OSError, ValueError):
        return


def _owner_text(file: IO[str]) -> str:
    """Return the identity of the process that has a lock, as text; empty if it cannot be read."""
    owner = _owner(file)
    if owner.pid is None:
        return ""
    return one_line(f", {owner} ({owner.command}; `kill {owner.pid}` there ends it)", 3 * _MAX_CHARACTERS)


def _has_ended(process: JobProcess) -> bool:
    """Return whether a process of this machine has ended; its id may be that of a later process."""
    if process.pid is None or process.since_ms is None or process.host != socket.gethostname():
        return False
    try:
        listed = psutil.Process(process.pid)
        # A killed process whose parent has not asked for its exit code is still listed.
        is_zombie = listed.status() == psutil.STATUS_ZOMBIE
        return is_zombie or listed.create_time() * 1000 > process.since_ms + _START_MS
    except psutil.NoSuchProcess:
        return True
    # No process has such a number, or this user may not look at it.
    except (psutil.Error, ValueError, OverflowError):
        return False


def _owner(file: IO[str]) -> JobProcess:
    """Return the process that has a lock; unknown if the lock names one that has ended."""
    process = _identity(file)
    return JobProcess() if _has_ended(process) else process


def _identity(file: IO[str]) -> JobProcess:
    """Return the process that was the last to write its identity into a lock; unknown if that cannot be read."""
    try:
        file.seek(0)
        owner: Mapping[str, Any] = json.loads(file.read())
        member = owner.get("member")
        return JobProcess(
            int(owner["pid"]),
            str(owner["host"]),
            int(owner["since_ms"]),
            str(owner["command"]),
            None if member is None else str(member),
        )
    # Whatever a disk has left in the file, even nested JSON without end.
    except (OSError, ValueError, TypeError, AttributeError, KeyError, OverflowError, RecursionError):
        return JobProcess()

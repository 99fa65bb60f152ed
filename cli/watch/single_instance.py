"""A job of a store runs in one process at a time; who comes second is told at once who is there."""

from __future__ import annotations

import fcntl
import json
import os
import socket
import sys
import threading
import time
from collections.abc import Iterable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import IO, Any

from alerts.text.formatting import moment
from schemas.config import StoreSettings
from schemas.errors import HeadroomError
from schemas.text import one_line
from streaming.delta.locations import local_path

_LOOK_S = 0.5
_MOST_CHARACTERS = 100


@contextmanager
def exclusive_jobs(
    store: StoreSettings, jobs: Iterable[str], wait_s: float = 0.0, stop: threading.Event | None = None
) -> Iterator[None]:
    """Hold jobs of a store against other processes until the block ends, or this process does.

    The kernel keeps the locks, so that a process that is killed leaves none behind. Where there are none, as on an
    object store, or on a disk that cannot be written now, jobs run without: two that meet there find it by their
    checkpoints, some batches later.

    Args:
        store: section ``[store]``.
        jobs: what to hold.
        wait_s: how long to wait for a process that is about to end, seconds.
        stop: ends the wait; None: nothing does.

    Raises:
        HeadroomError: another process does one of them.
    """
    checkpoints = local_path(store.checkpoints())
    with ExitStack() as held:
        for job in jobs if checkpoints is not None else ():
            file = _opened(Path(str(checkpoints)) / f"{job}.lock")
            if file is not None:
                held.enter_context(file)
                _lock(file, store.path, time.monotonic() + wait_s, stop or threading.Event())
        yield


def _opened(path: Path) -> IO[str] | None:
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        return path.open("a+", encoding="utf-8")
    except OSError:
        # What is wrong with the folder is told by who writes there.
        return None


def _lock(file: IO[str], store: str, until_s: float, stop: threading.Event) -> None:
    """Lock a file and write into it who did; it is unlocked when it is closed.

    Raises:
        HeadroomError: another process keeps it.
    """
    while not _locked(file):
        if time.monotonic() >= until_s or stop.wait(_LOOK_S):
            raise _taken(file, store)
    _sign(file)


def _locked(file: IO[str]) -> bool:
    """Return whether a file is locked now, or is on a file system without locks."""
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        return not isinstance(error, BlockingIOError)
    return True


def _sign(file: IO[str]) -> None:
    who = {
        "host": socket.gethostname(),
        "pid": os.getpid(),
        "command": one_line(f"headroom {' '.join(sys.argv[1:])}", _MOST_CHARACTERS),
        "since_ms": time.time_ns() // 1_000_000,
    }
    try:
        file.truncate(0)
        file.write(json.dumps(who))
        file.flush()
    except OSError:
        # A disk that is full keeps locks all the same.
        return


def _taken(file: IO[str], store: str) -> HeadroomError:
    who = _signed(file)
    rule = f"is worked on by another process{who}: two would write the same rows, and tell every alert twice"
    return HeadroomError(f"store {store}", rule, "End that one first, or give this one a store.path of its own.")


def _signed(file: IO[str]) -> str:
    """Return who has signed a lock, in words; nothing where that cannot be read."""
    try:
        file.seek(0)
        who: Mapping[str, Any] = json.loads(file.read())
        since = moment(int(who["since_ms"]))
        return one_line(
            f", pid {who['pid']} on host {who['host']} since {since} ({who['command']})", 3 * _MOST_CHARACTERS
        )
    except (OSError, ValueError, TypeError, KeyError, OverflowError):
        return ""

"""Reasons for a long command to stop: a signal, or the end of the process that started it."""

from __future__ import annotations

import _thread
import faulthandler
import os
import signal
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import partial
from typing import Any

import psutil

from headroom.schemas.environment import STARTED_BY
from headroom.schemas.errors import HeadroomError
from headroom.schemas.text import printable
from headroom.schemas.threads import run_in_daemon_thread

# The last one is that of a terminal that goes away, as with a lost connection.
_SIGNALS = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)
_PARENT_POLL_S, _ORPHAN_GRACE_S, _RELAY_S, _SET_S = 0.5, 15.0, 0.5, 0.2


def stop_on_signals(stop: threading.Event, first: str = "") -> None:
    """Set ``stop`` on SIGTERM, SIGINT and SIGHUP; a second one of the first two ends the process at once.

    Args:
        stop: set by the first signal.
        first: text that is printed then, on standard error.
    """

    def handle(number: int, _frame: Any) -> None:
        # A terminal that goes away sends its signal twice: by the kernel, and by the shell.
        signal.signal(number, signal.SIG_IGN if number == signal.SIGHUP else signal.SIG_DFL)
        # Not here: this thread may hold the lock of the event, in its wait() or set(), and would wait for itself.
        _thread.start_new_thread(stop.set, ())
        # It seldom does. What it does next then sees the event.
        until_s = time.monotonic() + _SET_S
        while not stop.is_set() and time.monotonic() < until_s:
            time.sleep(0.001)
        if first:
            # Not by print, which may have been interrupted itself.
            # Nobody may read it: Ctrl-C ends `tee` too.
            with suppress(OSError):
                os.write(2, f"\n{printable(first)}\n".encode())

    for number in _SIGNALS:
        # With nohup the process is to outlive its terminal.
        if number != signal.SIGHUP or signal.getsignal(number) != signal.SIG_IGN:
            signal.signal(number, handle)


@contextmanager
def stopping(first: str = "") -> Iterator[threading.Event]:
    """Yield an event that the first Ctrl-C, SIGTERM or SIGHUP sets; a second of the first two ends the process at once.

    Args:
        first: text that is printed at the first signal, on standard error.
    """
    # Restored at the end: only what runs in the block has to be finished, the rest of a command may end at once.
    handlers = {number: signal.getsignal(number) for number in _SIGNALS}
    stop = threading.Event()
    stop_on_signals(stop, first)
    try:
        yield stop
    finally:
        for number, handler in handlers.items():
            signal.signal(number, handler)


def end_with_parent(stop: threading.Event) -> None:
    """Set ``stop`` when the parent process has ended; if this process has not ended 15 s later, end it at once.

    Starting or stopping Spark may take minutes on a busy machine, and meanwhile nothing looks at ``stop``. The next
    process with the same jobs would wait for that.

    Raises:
        HeadroomError: the process that started this one has ended already.
    """
    started_by = os.environ.pop(STARTED_BY, "")
    # Killed while this one was importing its modules. Then its parent is another process, which lives for ever.
    if started_by.isdecimal() and has_ended(int(started_by)):
        raise HeadroomError("this process", "was started by one that has ended since", "Start `headroom watch` again")
    threading.Thread(target=_end_with, args=(os.getppid(), stop), name="parent", daemon=True).start()


def end_within(stop: threading.Event, grace_s: float) -> None:
    """End this process if it still runs so long after ``stop`` was set, and print on standard error what it does.

    Args:
        stop: what the process ends for.
        grace_s: the grace, in seconds.
    """

    def end() -> None:
        stop.wait()
        time.sleep(grace_s)
        # Standard error may block, be closed, or be relayed by a thread of this process.
        run_in_daemon_thread("stacks", partial(_print_stacks, grace_s))
        time.sleep(_RELAY_S)
        os._exit(1)

    threading.Thread(target=end, name="grace", daemon=True).start()


def _print_stacks(grace_s: float) -> None:
    line = f"pid {os.getpid()} has not ended {grace_s:g} s after it was asked to, and is ended now. It was at:\n"
    os.write(2, line.encode())
    faulthandler.dump_traceback(file=2, all_threads=True)


def has_ended(pid: int) -> bool:
    """Return whether a process has ended, also if nobody has asked for its exit code yet."""
    try:
        return bool(psutil.Process(pid).status() == psutil.STATUS_ZOMBIE)
    # The second: the process ended while psutil read of it.
    except (psutil.NoSuchProcess, ProcessLookupError):
        return True


def _end_with(parent: int, stop: threading.Event) -> None:
    while os.getppid() == parent:
        time.sleep(_PARENT_POLL_S)
    stop.set()
    time.sleep(_ORPHAN_GRACE_S)
    # As if it were killed: nothing is lost or doubled by that. Spark's JVM ends when its standard input is closed.
    os._exit(1)

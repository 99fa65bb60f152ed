"""Reasons for a long command to stop: a signal, or the end of the process that started it."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from schemas.text import printable

_SIGNALS = (signal.SIGTERM, signal.SIGINT)


def stop_on_signals(stop: threading.Event, first: str = "") -> None:
    """Set ``stop`` on SIGTERM and SIGINT; a second signal ends the process at once.

    Args:
        stop: set by the first signal.
        first: text that is printed then, on standard error.
    """

    def handle(number: int, _frame: Any) -> None:
        signal.signal(number, signal.SIG_DFL)
        stop.set()
        if first:
            # Not by print, which may have been interrupted itself.
            os.write(2, f"\n{printable(first)}\n".encode())

    for number in _SIGNALS:
        signal.signal(number, handle)


@contextmanager
def stopping(first: str = "") -> Iterator[threading.Event]:
    """Yield an event that the first Ctrl-C or SIGTERM sets; a second signal ends the process at once.

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


def stop_when_orphaned(stop: threading.Event) -> Callable[[], None]:
    """Return a function that sets ``stop`` if the parent process has ended."""
    parent = os.getppid()

    def check() -> None:
        if os.getppid() != parent:
            stop.set()

    return check

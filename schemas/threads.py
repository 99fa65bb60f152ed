"""Calls on daemon threads, whose results are futures."""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import Future
from typing import TypeVar

_T = TypeVar("_T")


def run_in_daemon_thread(name: str, call: Callable[[], _T]) -> Future[_T]:
    """Start a call on a thread of its own and return its future; a call that hangs does not keep the process alive.

    Executors do not offer this: the interpreter waits for their threads at exit.

    Args:
        name: name of the thread, as in stack dumps.
        call: what it raises, the future raises too.
    """
    future: Future[_T] = Future()

    def work() -> None:
        # From now on it cannot be cancelled: it would have no place for its result.
        if not future.set_running_or_notify_cancel():
            return
        try:
            future.set_result(call())
        except BaseException as error:  # whatever it is: without a result, who waits for the future waits forever
            future.set_exception(error)

    try:
        threading.Thread(target=work, name=name, daemon=True).start()
    except RuntimeError as error:  # the machine has no thread left
        future.set_exception(error)
    return future

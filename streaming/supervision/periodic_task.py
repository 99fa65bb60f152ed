"""Function that is called periodically on a thread of its own."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable

from headroom.schemas.errors import ENDINGS
from headroom.streaming.supervision.failure import cause_of

log = logging.getLogger(__name__)


class PeriodicTask:
    """Calls a function again and again on a daemon thread, with a pause between two calls.

    An error ends no thread: what the function follows would stay as it was last seen, and nothing would say so.

    Args:
        name: name of the thread.
        call: the function. What it raises is logged, unless the call before has raised the same.
        every_s: pause after each call, seconds.
        first_s: pause before the first call, seconds; ``every_s`` if None.
    """

    def __init__(self, name: str, call: Callable[[], object], every_s: float, first_s: float | None = None) -> None:
        self._call = call
        self._every_s = every_s
        self._first_s = every_s if first_s is None else first_s
        self._stop = threading.Event()
        self._logged = ""
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)

    def start(self) -> None:
        """Start the thread; once it was started, nothing happens."""
        if self._thread.ident is None:
            self._thread.start()

    def stop(self, wait_s: float = 0.0) -> None:
        """Start no further call. A call may stop its own task, without waiting.

        Args:
            wait_s: longest wait for a call in progress, seconds. 0: it continues after this returns.
        """
        self._stop.set()
        if wait_s and self._thread.is_alive():
            self._thread.join(wait_s)

    def _run(self) -> None:
        pause_s = self._first_s
        while not self._stop.wait(pause_s):
            self._call_safely()
            pause_s = self._every_s

    def _call_safely(self) -> None:
        try:
            self._call()
        except ENDINGS:
            raise
        # A panic of the Delta library is no Exception.
        except BaseException as error:
            trouble = cause_of(error)
            if trouble != self._logged:
                log.exception("%s failed, and is tried again: %s", self._thread.name, trouble)
            self._logged = trouble
        else:
            self._logged = ""

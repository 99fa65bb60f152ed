"""Commands of Headroom that another one runs as child processes, started again when they die."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable

from alerts.text.formatting import format_duration
from cli.common.output import echo

# What ends again and again, before it has lasted for a while, is started less and less often.
_RESTART_AFTER_S, _MOST_RESTART_AFTER_S = 5.0, 60.0
_LASTED_S = 30.0
STOP_S = 45.0


def headroom_command(*arguments: str) -> list[str]:
    """Return the command line of this very program, which need not be on the PATH."""
    return [sys.executable, "-m", "cli.main", *arguments]


class ChildProcess:
    """A command of Headroom as a child process, which ends when this process does.

    Args:
        name: what messages call it.
        arguments: of ``headroom``.
        config: configuration file; None: as found.
    """

    def __init__(self, name: str, arguments: list[str], config: str | None) -> None:
        self._name = name
        self._command = headroom_command(*arguments, "--with-parent")
        if config:
            self._command += ["--config", config]
        self._process, self._began_at = self._start(), time.monotonic()
        self._ended_at: float | None = None
        self._again_s = 0.0
        self._asked = False

    def _start(self) -> subprocess.Popen[bytes]:
        # In a session of its own, so that Ctrl-C comes to it as our SIGTERM, once. What it prints is no result of ours.
        return subprocess.Popen(
            self._command, stdin=subprocess.DEVNULL, stdout=sys.stderr.fileno(), start_new_session=True
        )

    def check(self) -> None:
        """Start it again, some seconds after it died."""
        code = self._process.poll()
        if code is None:
            return
        now = time.monotonic()
        if self._ended_at is None:
            self._ended_at = now
            lasted = now - self._began_at >= _LASTED_S
            self._again_s = _RESTART_AFTER_S if lasted else _longer(self._again_s)
            again = f"it is started again in {format_duration(self._again_s)}"
            echo(f"headroom: the {self._name} ended with code {code}; {again}", err=True)
        elif now - self._ended_at >= self._again_s:
            self._process, self._began_at, self._ended_at = self._start(), now, None

    def ask_to_stop(self) -> None:
        """Ask it to end, once, and do not wait: a second signal would end it in the midst of a batch."""
        if not self._asked and self._process.poll() is None:
            self._process.terminate()
        self._asked = True

    def stop(self) -> None:
        """End it, by force if it takes too long."""
        self.ask_to_stop()
        try:
            self._process.wait(timeout=STOP_S)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()


def _longer(wait_s: float) -> float:
    return min(max(_RESTART_AFTER_S, 2 * wait_s), _MOST_RESTART_AFTER_S)


def stop_when_orphaned(stop: threading.Event) -> Callable[[], None]:
    """Return a check that sets ``stop`` once the process that started this one has ended."""
    parent = os.getppid()

    def check() -> None:
        if os.getppid() != parent:
            stop.set()

    return check

"""Heartbeats of a child process over a pipe: one that hangs is killed and restarted."""

from __future__ import annotations

import os
import threading
import time
from contextlib import suppress
from subprocess import TimeoutExpired

from headroom.cli.common.child_process import ChildProcess
from headroom.cli.common.output import echo

_EVERY_S = 0.5
# Silence that means a hang. It doubles with each kill, because a machine may also be too busy for the heartbeats.
_SILENT_S, _MAX_SILENT_S = 3.0, 60.0
# If the checks themselves were further apart, the whole machine stood still and silence proves nothing.
_OWN_PAUSE_S = 2.5
_KILLED_WITHIN_S = 0.5
# Such a process has no JVM to start, so a restart every 10 s costs little.
_EARLY_S = 10.0
_READ_BYTES = 65_536


class BeatingProcess(ChildProcess):
    """A child process that writes heartbeats to a pipe, and is killed if they stop.

    Args:
        name: name in messages.
        arguments: arguments of ``headroom``; the command has the option ``--heartbeat-fd``.
        config: settings file; the default one if None.
    """

    def __init__(self, name: str, arguments: list[str], config: str | None) -> None:
        self._heartbeats, child_end = os.pipe()
        os.set_blocking(self._heartbeats, False)
        # None until the first heartbeat: a command that starts has to import its modules first.
        self._heard_at: float | None = None
        self._checked_at, self._silent_s = time.monotonic(), _SILENT_S
        beating = [*arguments, "--heartbeat-fd", str(child_end)]
        super().__init__(name, beating, config, early_s=_EARLY_S, inherited_fds=(child_end,))

    def check(self) -> None:
        """Kill the process if its heartbeats have stopped, and restart it if it has ended."""
        now = time.monotonic()
        paused, self._checked_at = now - self._checked_at > _OWN_PAUSE_S, now
        heard = False
        with suppress(BlockingIOError):
            heard = bool(os.read(self._heartbeats, _READ_BYTES))
        if not self.is_running:
            self._heard_at = None
        elif heard or (paused and self._heard_at is not None):
            self._heard_at = now
        elif self._heard_at is not None and now - self._heard_at > self._silent_s:
            self._kill()
        super().check()

    def _kill(self) -> None:
        echo(f"headroom: the {self._name} hangs: no heartbeat for {self._silent_s:.0f} s; it is killed", err=True)
        self._silent_s, self._heard_at = min(2 * self._silent_s, _MAX_SILENT_S), None
        self._process.kill()
        with suppress(TimeoutExpired):
            self._process.wait(_KILLED_WITHIN_S)


def send_heartbeats(fd: int) -> None:
    """Write heartbeats to a file descriptor from a thread, as long as this process lives.

    Args:
        fd: end of the pipe of a ``BeatingProcess``.
    """
    os.set_blocking(fd, False)

    def run() -> None:
        while True:
            # A full pipe: the parent hangs. A broken one: it has ended.
            with suppress(OSError):
                os.write(fd, b".")
            time.sleep(_EVERY_S)

    threading.Thread(target=run, name="heartbeats", daemon=True).start()

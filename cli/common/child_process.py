"""Child processes that run commands of Headroom and are restarted when they end."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Sequence

from headroom.cli.common.output import echo
from headroom.schemas.environment import STARTED_BY
from headroom.schemas.text.amounts import duration_text

# Delay before a restart. It doubles with each process that ended early. The first one, and one that ran longer, is
# restarted at once: without a collector nobody watches the brokers.
_RESTART_AFTER_S, _MAX_RESTART_AFTER_S = 5.0, 60.0
# The record process ends its micro-batch first, which may take this long.
STOP_S = 45.0


def headroom_command(*arguments: str) -> list[str]:
    """Return the command line of this installation of Headroom, which need not be on the PATH."""
    return [sys.executable, "-m", "headroom.cli.main", *arguments]


class ChildProcess:
    """A command of Headroom as a child process, which ends when this process does.

    Args:
        name: name in messages.
        arguments: arguments of ``headroom``.
        config: settings file; the default one if None.
        early_s: a process that ends sooner than this after its start ends early.
        inherited_fds: file descriptors that the process inherits.
    """

    def __init__(
        self,
        name: str,
        arguments: list[str],
        config: str | None,
        *,
        early_s: float = 30.0,
        inherited_fds: Sequence[int] = (),
    ) -> None:
        self._name = name
        self._early_s = early_s
        self._inherited_fds = inherited_fds
        self._command = headroom_command(*arguments, "--with-parent")
        if config:
            self._command += ["--config", config]
        self._process, self._began_at = self._start(), time.monotonic()
        self._ended_at: float | None = None
        self._early_ends, self._restart_after_s = 0, 0.0
        self._stop_requested = False

    def _start(self) -> subprocess.Popen[bytes]:
        # In its own session, so that Ctrl-C reaches it once, as our SIGTERM. Its output is a log, not a result: stderr.
        return subprocess.Popen(
            self._command,
            stdin=subprocess.DEVNULL,
            stdout=sys.stderr.fileno(),
            start_new_session=True,
            env=os.environ | {STARTED_BY: str(os.getpid())},
            pass_fds=self._inherited_fds,
        )

    @property
    def is_running(self) -> bool:
        """Return whether the process has not ended."""
        return self._process.poll() is None

    def check(self) -> None:
        """Restart the process if it has ended and its delay has passed."""
        code = self._process.poll()
        if code is None:
            return
        now = time.monotonic()
        if self._ended_at is None:
            self._ended_at = now
            self._early_ends = self._early_ends + 1 if now - self._began_at < self._early_s else 0
            # The second early end in a row delays the restart, and each further one doubles the delay.
            doubled_s = _RESTART_AFTER_S * 2.0 ** (self._early_ends - 2)
            self._restart_after_s = 0.0 if self._early_ends < 2 else min(doubled_s, _MAX_RESTART_AFTER_S)
            delay = f" in {duration_text(self._restart_after_s)}" if self._restart_after_s else ""
            echo(f"headroom: the {self._name} ended with code {code}; it is started again{delay}", err=True)
        if now - self._ended_at >= self._restart_after_s:
            self._process, self._began_at, self._ended_at = self._start(), now, None

    def ask_to_stop(self) -> None:
        """Send SIGTERM once, without waiting; a second signal would end the process in the middle of a batch."""
        if not self._stop_requested and self._process.poll() is None:
            self._process.terminate()
        self._stop_requested = True

    def stop(self) -> None:
        """Stop the process; kill it if it has not ended after ``STOP_S`` seconds."""
        self.ask_to_stop()
        try:
            self._process.wait(timeout=STOP_S)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()

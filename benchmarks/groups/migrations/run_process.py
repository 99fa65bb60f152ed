"""A run of a migration that is killed and started again until it has reached its goal."""

from __future__ import annotations

import subprocess
import threading
from collections.abc import Sequence
from pathlib import Path

from benchmarks.fixtures.bench_cluster import failure

_LAST_CHARACTERS = 3_000


class RunProcess:
    """Processes of one ``headroom migration run``, one after the other.

    Args:
        command: its command line.
        log: file of its output.
    """

    def __init__(self, command: Sequence[str], log: Path) -> None:
        self._command = command
        self._log = log
        self._process: subprocess.Popen[bytes] | None = None
        # The fault that kills it has a thread of its own.
        self._changing = threading.Lock()
        self.lives = 0

    def start(self) -> None:
        """Start it."""
        with self._changing, self._log.open("ab") as log:
            self._process = subprocess.Popen(
                self._command, stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True
            )
            self.lives += 1

    def kill(self) -> bool:
        """Kill it with SIGKILL; return whether it still ran."""
        with self._changing:
            process, self._process = self._process, None
        if process is None:
            return False
        was_running = process.poll() is None
        process.kill()
        process.wait()
        return was_running

    def has_succeeded(self) -> bool:
        """Return whether it has ended with code 0; False while it runs, and between a kill and its next start.

        Raises:
            HeadroomError: it has ended with another code.
        """
        with self._changing:
            code = None if self._process is None else self._process.poll()
        if code:
            raise failure(f"the run ended with code {code}: {self.output()[-_LAST_CHARACTERS:]}")
        return code == 0

    def output(self) -> str:
        """Return what all its processes have printed."""
        return self._log.read_text(encoding="utf-8", errors="replace")

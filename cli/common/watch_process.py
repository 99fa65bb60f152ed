"""``headroom watch`` as a child process, whose JSON lines are recorded with their times of arrival."""

from __future__ import annotations

import json
import os
import subprocess
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import TypeVar

import psutil
from kafka.errors import KafkaError

from headroom.cli.common.child_process import headroom_command
from headroom.cli.common.watch_output import Line, WatchLines
from headroom.cluster.embedded.patience import Patience
from headroom.cluster.embedded.processes import await_end
from headroom.schemas.environment import STARTED_BY
from headroom.schemas.errors import HeadroomError

T = TypeVar("T")
P = TypeVar("P", bound="VerdictProcess")
_NAME = "headroom watch"
_POLL_S = 0.05
# The process stops its own children one after the other, and finishes the batch that is being written.
_STOP_S = 45.0


class VerdictProcess(WatchLines):
    """A running command that prints verdicts and alerts as JSON lines on its standard output.

    Args:
        name: name in errors.
        command: command line.
        log: file to which all other output is appended.
        environment: variables in addition to those of this process.
        subject: subject of the error after a timeout; ``name`` if None.
        remedy: remedy in errors; a reference to the log if None.

    Attributes:
        name: its name.
        log: file of its other output.
        started_s: time of the start, in seconds of the monotonic clock.
    """

    def __init__(
        self,
        name: str,
        command: Sequence[str],
        log: Path,
        environment: Mapping[str, str] | None = None,
        *,
        subject: str | None = None,
        remedy: str | None = None,
    ) -> None:
        super().__init__()
        self.name = name
        self.log = log
        self._subject = subject or name
        self._remedy = remedy or f"See {log}"
        self.started_s = time.monotonic()
        self._process = _start(command, log, environment or {})
        self._reader = threading.Thread(target=self._read, name="watch-lines", daemon=True)
        self._reader.start()

    def __enter__(self: P) -> P:
        """Return the running process."""
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        """Stop the process and its children."""
        self.stop()

    def _read(self) -> None:
        assert self._process.stdout is not None
        with self.log.open("a", encoding="utf-8") as log:
            for text in self._process.stdout:
                at_s = time.monotonic()
                try:
                    self.lines.append(Line(at_s, json.loads(text)))
                except ValueError:
                    # With spark-submit, log lines arrive on standard output too.
                    log.write(text)
                    log.flush()

    def processes(self) -> list[psutil.Process]:
        """Return the process, its children and their JVMs; an empty list if it has ended."""
        if self._process.poll() is not None:
            return []
        process = psutil.Process(self._process.pid)
        return [process, *process.children(recursive=True)]

    def wait(self, condition: Callable[[], T | None], deadline_s: float, what: str, poll_s: float = _POLL_S) -> T:
        """Wait until the condition returns a true value, and return it; errors of Kafka's client are retried.

        Args:
            condition: called every ``poll_s`` seconds.
            deadline_s: longest wait, in seconds; longer while the machine is busy.
            what: name of the condition in the error message.
            poll_s: interval between calls, in seconds.

        Raises:
            HeadroomError: the deadline passed, with the last verdicts and alerts; or the process ended.
        """
        patience = Patience(deadline_s)
        while True:
            self.require_running()
            try:
                if value := condition():
                    return value
                last = ""
            except KafkaError as error:
                last = f" ({type(error).__name__})"
            if patience.is_over():
                state = f"{self.summary()}; its log ends: {self._log_end(2)}"
                rule = f"waited {patience} in vain for {what}{last}; last seen: {state}"
                raise HeadroomError(self._subject, rule, self._remedy)
            time.sleep(poll_s)

    def require_running(self) -> None:
        """Check that the process is running.

        Raises:
            HeadroomError: the process has ended; with the last lines of its standard error.
        """
        code = self._process.poll()
        if code is not None:
            raise HeadroomError(self.name, f"ended with code {code}: {self._log_end(5)}", self._remedy)

    def _log_end(self, lines: int) -> str:
        return " | ".join(self.log.read_text(encoding="utf-8", errors="replace").strip().splitlines()[-lines:])

    def stop(self, grace_s: float = _STOP_S) -> None:
        """Stop the process and its children; those that have not ended by themselves are killed.

        Args:
            grace_s: longest wait for the process, and then for its children, seconds; longer while the machine is busy.
        """
        tree = self.processes()
        self._ask_to_stop()
        await_end(tree[:1], grace_s)
        self._process.wait()
        await_end(tree[1:], grace_s)
        self._reader.join(timeout=_STOP_S)

    def _ask_to_stop(self) -> None:
        self._process.terminate()


class WatchProcess(VerdictProcess):
    """A running ``headroom watch``, which ends when this process does.

    Args:
        config: settings file.
        log: file to which its standard error is appended.
        store: folder of its tables; as configured if None.
        options: further options of ``headroom watch``.
        subject: subject of the error after a timeout.
        remedy: remedy in errors; a reference to the log if None.
    """

    def __init__(
        self,
        config: Path,
        log: Path,
        store: Path | None = None,
        options: Sequence[str] = (),
        *,
        subject: str = _NAME,
        remedy: str | None = None,
    ) -> None:
        command = headroom_command("watch", "--config", str(config), "--format", "json", "--with-parent", *options)
        environment = {"HEADROOM_STORE__PATH": str(store)} if store else {}
        super().__init__(_NAME, command, log, environment, subject=subject, remedy=remedy)


def _start(command: Sequence[str], log: Path, environment: Mapping[str, str]) -> subprocess.Popen[str]:
    with log.open("a", encoding="utf-8") as errors:
        # In its own session, so that Ctrl-C reaches it once, as our SIGTERM.
        return subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=errors,
            text=True,
            env=os.environ | environment | {STARTED_BY: str(os.getpid())},
            start_new_session=True,
        )

"""Starts, finds and ends the processes of brokers."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Iterable, Sequence
from contextlib import suppress
from pathlib import Path

import psutil

from headroom.cluster.embedded.files import BrokerFiles
from headroom.cluster.embedded.patience import Patience
from headroom.schemas.errors import HeadroomError

_GUARDIAN = Path(__file__).with_name("guardian.py")
# Longest wait for the command line of a starting process.
_EXEC_S = 2.0
_FREEZE_S = 10.0
_POLL_S = 0.05


class Guardian:
    """Client of the guardian process, which starts the brokers and kills them after this process has ended."""

    def __init__(self) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-I", "-S", str(_GUARDIAN)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )

    def spawn(self, command: Sequence[str], log: Path) -> int:
        """Return the pid of the started command, whose output is appended to the log.

        Raises:
            HeadroomError: the command could not be started.
        """
        answer = json.loads(self._ask({"spawn": list(command), "log": str(log)}) or '{"error": "its guardian ended"}')
        if "error" in answer:
            raise HeadroomError(command[0], f"could not be started: {answer['error']}", f"See {log}")
        return int(answer["pid"])

    def release(self) -> None:
        """Let the brokers continue after this process ends."""
        self._ask({"release": True})
        self._close()

    def kill_all(self) -> None:
        """Kill every broker that the guardian started, and wait for the guardian to end."""
        self._close()

    def _ask(self, request: dict[str, object]) -> str:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        with suppress(BrokenPipeError):
            self._process.stdin.write(json.dumps(request) + "\n")
            self._process.stdin.flush()
        return self._process.stdout.readline()

    def _close(self) -> None:
        with suppress(BrokenPipeError):
            self._process.communicate()


def find(files: BrokerFiles, pid: int) -> psutil.Process | None:
    """Return the process if that pid still belongs to this broker; None otherwise.

    The command line decides, because the system reuses the pids of ended processes.
    """
    try:
        process = psutil.Process(pid)
        if str(files.properties) in _command_line(process):
            return process
    except psutil.Error:
        pass
    return None


def _command_line(process: psutil.Process) -> list[str]:
    """Return a process's command line; empty if it has ended. It is also empty for a moment during a start."""
    give_up = time.monotonic() + _EXEC_S
    while process.status() != psutil.STATUS_ZOMBIE:
        command = process.cmdline()
        if command or time.monotonic() > give_up:
            return command
        time.sleep(0.01)
    return []


def end(processes: Iterable[psutil.Process], grace_s: float) -> None:
    """Terminate the processes; those that still run after the grace are killed.

    Args:
        processes: the processes.
        grace_s: see ``await_end``; 0 kills at once.
    """
    living = list(processes)
    for process in living if grace_s > 0 else ():
        with suppress(psutil.NoSuchProcess):
            process.resume()
            process.terminate()
    await_end(living, grace_s)


def await_end(processes: Iterable[psutil.Process], grace_s: float) -> None:
    """Wait for processes that were told to end, and kill those that have not within the grace.

    Args:
        processes: the processes.
        grace_s: longest wait for all of them, seconds; longer while the machine is busy.
    """
    patience, living = Patience(grace_s), list(processes)
    while living and not patience.is_over():
        _, living = psutil.wait_procs(living, timeout=_POLL_S)
    for process in living:
        with suppress(psutil.NoSuchProcess):
            process.kill()
    psutil.wait_procs(living)


def last_lines(log: Path, count: int = 3) -> str:
    """Return the last warnings and errors of a log, joined by `` | ``; its last lines if there are none."""
    try:
        lines = [line.strip() for line in log.read_text(encoding="utf-8", errors="replace").splitlines()]
    except OSError:
        return "no log"
    non_empty = [line for line in lines if line]
    problems = [line for line in non_empty if " INFO " not in line and not line.startswith("at ")]
    return " | ".join((problems or non_empty)[-count:]) or "an empty log"


def freeze(process: psutil.Process) -> None:
    """Suspend a process and return once it has stopped; its threads stop one by one after the signal."""
    process.suspend()
    give_up = time.monotonic() + _FREEZE_S
    while process.status() != psutil.STATUS_STOPPED and time.monotonic() < give_up:
        time.sleep(0.01)

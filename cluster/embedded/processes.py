"""Starting, finding and ending the processes of brokers."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Iterable, Sequence
from contextlib import suppress
from pathlib import Path

import psutil

from cluster.embedded.files import BrokerFiles
from schemas.errors import HeadroomError

_GUARDIAN = Path(__file__).with_name("guardian.py")
_EXEC_S = 2.0
_FREEZE_S = 10.0


class Guardian:
    """The owner's end of the process that starts the brokers and outlives the owner just long enough to kill them."""

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
            HeadroomError: it could not be started.
        """
        answer = json.loads(self._ask({"spawn": list(command), "log": str(log)}) or '{"error": "its guardian ended"}')
        if "error" in answer:
            raise HeadroomError(command[0], f"could not be started: {answer['error']}", f"See {log}")
        return int(answer["pid"])

    def release(self) -> None:
        """Let the brokers live on after this process."""
        self._ask({"release": True})
        self._close()

    def kill_all(self) -> None:
        """Kill every broker that it started, and wait for the guardian's own end."""
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
    """Return the process if that pid is, still, this very broker; None otherwise.

    The command line decides, because the system gives the pid of an ended process to another one.
    """
    try:
        process = psutil.Process(pid)
        if str(files.properties) in _command_line(process):
            return process
    except psutil.Error:
        pass
    return None


def _command_line(process: psutil.Process) -> list[str]:
    """Return a process's command line; that of an ended one is empty, and so it is for a moment while one starts."""
    give_up = time.monotonic() + _EXEC_S
    while process.status() != psutil.STATUS_ZOMBIE:
        command = process.cmdline()
        if command or time.monotonic() > give_up:
            return command
        time.sleep(0.01)
    return []


def end(processes: Iterable[psutil.Process], grace_s: float) -> None:
    """Ask the processes to end, and kill what has not within the grace, in seconds; 0 kills at once."""
    living = list(processes)
    for process in living if grace_s > 0 else ():
        with suppress(psutil.NoSuchProcess):
            process.resume()
            process.terminate()
    _, living = psutil.wait_procs(living, timeout=grace_s)
    for process in living:
        with suppress(psutil.NoSuchProcess):
            process.kill()
    psutil.wait_procs(living)


def last_lines(log: Path, count: int = 3) -> str:
    """Return the last lines of a log that tell of trouble, joined by `` | ``; any lines if none does."""
    try:
        lines = [line.strip() for line in log.read_text(encoding="utf-8", errors="replace").splitlines()]
    except OSError:
        return "no log"
    said = [line for line in lines if line]
    telling = [line for line in said if " INFO " not in line and not line.startswith("at ")]
    return " | ".join((telling or said)[-count:]) or "an empty log"


def freeze(process: psutil.Process) -> None:
    """Suspend a process, and return once it stands still: its threads stop one by one after the signal."""
    process.suspend()
    give_up = time.monotonic() + _FREEZE_S
    while process.status() != psutil.STATUS_STOPPED and time.monotonic() < give_up:
        time.sleep(0.01)

"""Runs one command to its end, whatever becomes of the page: ``python worker.py FOLDER LOCK COMMAND...``.

It is run as a file, and gets its command as arguments, so that nothing in a folder decides on what is run.
"""

from __future__ import annotations

import fcntl
import json
import os
import subprocess
import sys
import time
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

OUTPUT_FILE, PROCESS_FILE, RESULT_FILE, LOCK_FILE = "output.txt", "process.json", "result.json", "lock"
# As of a shell that cannot start a command.
_NOT_STARTED = 127


def main(folder: Path, lock: int, command: Sequence[str]) -> None:
    """Run a command, with its output, process and exit code as files in a folder.

    Args:
        folder: the folder.
        lock: descriptor of its lock, which is held as long as the starter, this worker or the command has it open:
            whatever the clock, and whatever becomes of the worker.
        command: the command.
    """
    with (folder / OUTPUT_FILE).open("ab") as output:
        exit_code = _run(folder, output.fileno(), lock, command)
        write_json(folder / RESULT_FILE, {"exit_code": exit_code, "ended_ms": round(time.time() * 1000)})


def _run(folder: Path, output: int, lock: int, command: Sequence[str]) -> int:
    try:
        process = subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=output, stderr=subprocess.STDOUT, pass_fds=[lock]
        )
    except (OSError, ValueError) as error:
        os.write(output, f"It was not started: {error!r}\n".encode())
        return _NOT_STARTED
    # On a full disk it cannot be stopped from the page, but goes on.
    with suppress(OSError):
        write_json(folder / PROCESS_FILE, {"pid": process.pid})
    return process.wait()


def take_lock(folder: Path) -> int:
    """Return a descriptor of the lock of a folder, which is made and held from now on.

    Raises:
        OSError: it cannot be written.
    """
    lock = os.open(folder / LOCK_FILE, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    fcntl.flock(lock, fcntl.LOCK_EX)
    return lock


def is_running(folder: Path) -> bool:
    """Return whether the worker of a folder, or its command, lives."""
    try:
        with (folder / LOCK_FILE).open("rb") as lock:
            fcntl.flock(lock, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    except OSError:
        return False
    return False


def write_json(file: Path, value: Any) -> None:
    """Write a file atomically and for good."""
    unfinished = file.with_name(f".{file.name}.{os.getpid()}")
    with unfinished.open("w", encoding="utf-8") as opened:
        json.dump(value, opened)
        opened.flush()
        os.fsync(opened.fileno())
    unfinished.replace(file)


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]), sys.argv[3:])

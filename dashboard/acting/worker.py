"""Runs one command to its end, whatever becomes of the page: ``python worker.py FOLDER``.

It is run as a file, so that no module of the working directory comes before those of Python.
"""

from __future__ import annotations

import fcntl
import json
import os
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path
from typing import Any

COMMAND_FILE, OUTPUT_FILE, PROCESS_FILE, RESULT_FILE = "command.json", "output.txt", "process.json", "result.json"
LOCK_FILE = "lock"
# As of a shell that cannot start a command.
_NOT_STARTED = 127


def main(folder: Path) -> None:
    """Run the command of a folder, with its output, process and exit code as files beside it.

    The lock is held as long as worker or command lives: whatever the clock, and whatever becomes of the worker.
    """
    unlocked = folder / f".{LOCK_FILE}"
    with unlocked.open("ab") as lock, (folder / OUTPUT_FILE).open("ab") as output:
        fcntl.flock(lock, fcntl.LOCK_EX)
        # Nobody sees it before it is locked.
        unlocked.rename(folder / LOCK_FILE)
        exit_code = _run(folder, output.fileno(), lock.fileno())
        write_json(folder / RESULT_FILE, {"exit_code": exit_code, "ended_ms": round(time.time() * 1000)})


def _run(folder: Path, output: int, lock: int) -> int:
    try:
        command = json.loads((folder / COMMAND_FILE).read_text(encoding="utf-8"))
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
    main(Path(sys.argv[1]))

"""Runs one command to its end, whatever becomes of the page: ``python -m headroom.dashboard.acting.worker FOLDER``."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import psutil

COMMAND_FILE, OUTPUT_FILE, PROCESS_FILE, RESULT_FILE = "command.json", "output.txt", "process.json", "result.json"


def main(folder: Path) -> None:
    """Run the command of a folder, with its output, process and exit code as files beside it."""
    command = json.loads((folder / COMMAND_FILE).read_text(encoding="utf-8"))
    with (folder / OUTPUT_FILE).open("ab") as output:
        process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=output, stderr=subprocess.STDOUT)
    # The result comes a moment after the end of the command.
    write_json(folder / PROCESS_FILE, {"command": _identity(process.pid), "worker": _identity(os.getpid())})
    exit_code = process.wait()
    write_json(folder / RESULT_FILE, {"exit_code": exit_code, "ended_ms": round(time.time() * 1000)})


def _identity(pid: int) -> dict[str, Any]:
    # Another process may have the id later.
    return {"pid": pid, "created_s": psutil.Process(pid).create_time()}


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

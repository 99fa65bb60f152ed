"""The demo as a child process, and what is left of it."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import psutil


def start_demo(folder: Path, *options: str) -> subprocess.Popen[str]:
    command = [sys.executable, "-m", "headroom.cli.main", "demo", "--dir", str(folder), *options]
    # In a session of its own, so that the signal of a test comes to it alone, as from a shell.
    return subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, start_new_session=True
    )


def working_in(folder: Path) -> list[str]:
    """Return the command lines of the processes that name the folder."""
    found = []
    for process in psutil.process_iter():
        try:
            words = process.cmdline()
        except psutil.Error:
            continue
        if process.pid != os.getpid() and any(str(folder) in word for word in words):
            found.append(f"{process.pid}: {' '.join(words)[-200:]}")
    return found


def nothing_works_in(folder: Path) -> bool:
    return not working_in(folder)

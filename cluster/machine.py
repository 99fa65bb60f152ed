"""Free memory and cores of this machine, or of the container that Headroom runs in."""

from __future__ import annotations

import os
from pathlib import Path

import psutil

# cgroup version 2: a container sees its own limits at the root.
_CGROUP = Path("/sys/fs/cgroup")


def available_bytes(cgroup: Path = _CGROUP) -> int:
    """Return the memory available to new processes, in bytes: of the machine, or of the container if that is less."""
    free = int(psutil.virtual_memory().available)
    limit, used = (_number(cgroup / f"memory.{name}") for name in ("max", "current"))
    return free if limit is None or used is None else max(0, min(free, limit - used))


def cores(cgroup: Path = _CGROUP) -> float:
    """Return the number of cores this process may use: of the machine, or of the container if that is less."""
    allowed = float(len(os.sched_getaffinity(0))) if hasattr(os, "sched_getaffinity") else float(os.cpu_count() or 1)
    quota = _words(cgroup / "cpu.max")
    # "max 100000" means no limit; otherwise microseconds of CPU time per period, and the period in microseconds.
    return min(allowed, int(quota[0]) / int(quota[1])) if len(quota) == 2 and quota[0].isdecimal() else allowed


def _number(file: Path) -> int | None:
    words = _words(file)
    return int(words[0]) if words and words[0].isdecimal() else None


def _words(file: Path) -> list[str]:
    try:
        return file.read_text(encoding="ascii").split()
    except (OSError, UnicodeDecodeError):
        return []

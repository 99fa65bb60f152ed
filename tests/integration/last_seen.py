"""What the brokers, watches and tables of a failed test were last seen to do, and how busy the machine was."""

from __future__ import annotations

import gc
import os
import time
from collections.abc import Callable, Iterable
from contextlib import suppress
from pathlib import Path

import psutil

from headroom.cli.common.watch_process import VerdictProcess
from headroom.cluster.embedded import EmbeddedCluster
from headroom.cluster.embedded.patience import runnable_programs

_LOG_LINES = 5
_PROGRAMS = 6


def last_seen() -> str:
    """Return a text for the report of a failed test."""
    # Whatever fixture or test made them: objects that are in use at the moment of the failure. Not isinstance, which
    # asks a proxy, and fails if what it stands for is gone.
    objects = gc.get_objects()
    clusters = [o for o in objects if issubclass(type(o), EmbeddedCluster)]
    watches = [o for o in objects if issubclass(type(o), VerdictProcess)]
    del objects
    lines = _lines(_machine)
    for cluster in clusters:
        lines += _lines(_of_cluster, cluster)
    for watch in watches:
        lines += _lines(_of_watch, watch)
    return "\n".join(lines)


def _lines(look: Callable[..., list[str]], *at: object) -> list[str]:
    """Return what a look shows, or why it failed: an error here would end the whole run instead of one test."""
    try:
        return look(*at)
    except Exception as error:
        return [f"{look.__name__}: {type(error).__name__}: {error}"]


def _machine() -> list[str]:
    processes = []
    for process in psutil.process_iter(["pid", "name", "cpu_times"]):
        times = process.info["cpu_times"]
        if times is not None:
            processes.append((times.user + times.system, f"{process.info['name']} {process.info['pid']}"))
    busiest = ", ".join(f"{name} {used_s:.0f} s" for used_s, name in sorted(processes, reverse=True)[:_PROGRAMS])
    memory = psutil.virtual_memory()
    text = (
        f"machine: {runnable_programs():.0f} threads want {os.cpu_count()} cores, load {os.getloadavg()[0]:.1f}, "
        f"{memory.available / 1e9:.1f} of {memory.total / 1e9:.1f} GB available; most CPU time so far: {busiest}"
    )
    return [text]


def _of_cluster(cluster: EmbeddedCluster) -> list[str]:
    lines = [f"cluster in {cluster.folder}"]
    with suppress(KeyError):
        for broker in cluster.brokers:
            lines.append(f"  broker {broker.broker_id}: {_status(broker.pid)}; its log ends:")
            lines += [f"    {line}" for line in _end_of(broker.log_file)]
    tables = sorted(cluster.folder.parent.rglob("_delta_log"))
    return lines + [f"  table {log.parent.relative_to(cluster.folder.parent)}: {_commits(log)}" for log in tables]


def _of_watch(watch: VerdictProcess) -> list[str]:
    lines = [f"{watch.name}: {'runs' if watch.processes() else 'has ended'}; {watch.summary()}; its log ends:"]
    return lines + [f"    {line}" for line in _end_of(watch.log)]


def _status(pid: int) -> str:
    try:
        return f"pid {pid} is {psutil.Process(pid).status()}"
    except psutil.NoSuchProcess:
        return f"pid {pid} has ended"


def _commits(log: Path) -> str:
    """Return how many commits a table has, and how old the last one is."""
    times = []
    for commit in log.glob("*.json"):
        # Maintenance may remove it meanwhile.
        with suppress(FileNotFoundError):
            times.append(commit.stat().st_mtime)
    return f"{len(times)} commits, the last {time.time() - max(times):.1f} s ago" if times else "no commit"


def _end_of(file: Path) -> Iterable[str]:
    try:
        return file.read_text(encoding="utf-8", errors="replace").splitlines()[-_LOG_LINES:]
    except OSError as error:
        return [f"cannot be read: {error}"]

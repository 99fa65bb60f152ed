"""Damage to tables while a watch writes them."""

from __future__ import annotations

import os
import re
import subprocess
from collections.abc import Collection, Mapping
from pathlib import Path

from deltalake import DeltaTable
from deltalake.exceptions import DeltaError

from benchmarks.fixtures.bench_cluster import failure
from benchmarks.fixtures.receivers.alert_events import stored_events
from cli.common.child_process import headroom_command
from schemas.alerts import AlertState
from schemas.tables import ALERT_EVENTS
from streaming.delta.damage import damages
from streaming.delta.locations import local_path

# Names of commits; the log also has checkpoints and checksums.
_COMMIT = re.compile(r"\d{20}\.json")
_LOG = "_delta_log"
_REPAIR_S = 90.0


def remove_newest_file(store: Path, table: str) -> Path:
    """Remove the file with the newest rows of a table, and return its path."""
    location = store / table
    paths, newest = _files(location)
    removed = location / max(paths, key=lambda path: newest[path][1])
    removed.unlink()
    return removed


def cut_newest_commit(store: Path, table: str) -> Path:
    """Truncate the newest commit of a table to half its size, and return its path."""
    log = store / table / _LOG
    commit = max(file for file in log.iterdir() if _COMMIT.fullmatch(file.name))
    os.truncate(commit, commit.stat().st_size // 2)
    return commit


def remove_events_of_the_past(store: Path) -> Path:
    """Remove the newest file of ``alerts/events`` with events of resolved alerts only, and return its path.

    Active alerts keep all their events. Without them an alert would rightly fire as a new one.

    Raises:
        HeadroomError: there is no such file.
    """
    location = store / ALERT_EVENTS.path
    events = stored_events(str(store))
    ended = {event.alert_id for event in events if event.state == AlertState.RESOLVED.value}
    paths, ticks_ms = _files(location)
    own: dict[str, set[str]] = {}
    for path in paths:
        first_ms, last_ms = ticks_ms[path]
        own[path] = {event.alert_id for event in events if first_ms <= event.tick_ms <= last_ms}
    past = [path for path in paths if own[path] <= ended]
    if not past:
        raise failure("no file of alerts/events is about resolved alerts alone")
    removed = location / max(past, key=lambda path: ticks_ms[path][1])
    removed.unlink()
    return removed


def _files(location: Path) -> tuple[list[str], dict[str, tuple[int, int]]]:
    """Return the files of a table, and the lowest and highest tick of each.

    Raises:
        HeadroomError: the table cannot be read, for example because it is damaged.
    """
    try:
        files = DeltaTable(str(location)).get_add_actions(flatten=True)
    except DeltaError as error:
        raise failure(f"{location} cannot be read: {error}") from None
    paths, least, most = (list(files.column(name).to_pylist()) for name in ("path", "min.tick_ms", "max.tick_ms"))
    return paths, {path: (low, high) for path, low, high in zip(paths, least, most, strict=True)}


def damaged(store: Path, table: str) -> bool:
    """Return whether a table is damaged."""
    return bool(damages(local_path(str(store / table)) or ""))


def newest_tick_ms(store: Path, table: str) -> int:
    """Return the newest tick in a table, epoch milliseconds; -1 if there is none."""
    location = store / table
    if not (location / _LOG).is_dir():
        return -1
    return max((most for _, most in _files(location)[1].values()), default=-1)


def repair(
    config_arguments: Collection[str], environment: Mapping[str, str] | None = None, timeout_s: float = _REPAIR_S
) -> None:
    """Run ``headroom maintain --repair``.

    Args:
        config_arguments: arguments with the configuration file.
        environment: variables in addition to those of this process.
        timeout_s: longest time that it may take, seconds.

    Raises:
        HeadroomError: it failed; the text has its error output.
    """
    command = headroom_command("maintain", *config_arguments, "--repair")
    variables = {**os.environ, **(environment or {})}
    try:
        done = subprocess.run(
            command,
            capture_output=True,
            text=True,
            timeout=timeout_s,
            env=variables,
            check=False,
        )
    except subprocess.TimeoutExpired:
        raise failure(f"`headroom maintain --repair` took longer than {timeout_s:.0f} s") from None
    if done.returncode:
        raise failure(f"`headroom maintain --repair` ended with code {done.returncode}: {done.stderr.strip()[-500:]}")

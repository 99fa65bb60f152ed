"""Damage to one file of a store: which file, and what becomes of it; and the repair of a store."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import Enum
from pathlib import Path
from urllib.parse import unquote

from deltalake import DeltaTable
from deltalake.exceptions import DeltaError

from benchmarks.fixtures.bench_cluster import failure
from benchmarks.fixtures.receivers.alert_events import stored_events
from headroom.cli.common.child_process import headroom_command
from headroom.schemas.alerts import AlertState
from headroom.schemas.tables import ALERT_EVENTS, DURABLE_TABLES
from headroom.streaming.delta.append import without_panic
from headroom.streaming.delta.damage import COMMIT, LOG, actions_of, definition_of

_CHECKPOINT_FILES = "*.checkpoint*.parquet"
_HINT = "_last_checkpoint"
# A footer's length is in the last eight bytes of a Parquet file, before its four last ones.
_FOOTER_LENGTH_AT = -8
_REPAIR_S = 90.0


class DamagedPlace(str, Enum):
    """What a file belongs to."""

    TABLE = "table"
    CHECKPOINT = "checkpoint"
    LOCK = "lock"


@dataclass(frozen=True)
class PlannedDamage:
    """Damage to one file.

    Attributes:
        place: what the file belongs to.
        name: path of the table, name of the query, or name of the job.
        file: kind of file, a key of ``FILES``.
        harm: what becomes of it, a key of ``HARMS``.
    """

    place: DamagedPlace
    name: str
    file: str
    harm: str

    def __str__(self) -> str:
        return f"{self.place.value} {self.name}: {self.file} {self.harm}"


def cut(path: Path) -> None:
    """Leave the first half of a file."""
    os.truncate(path, path.stat().st_size // 2)


def empty(path: Path) -> None:
    """Leave nothing in a file."""
    os.truncate(path, 0)


def zero(path: Path) -> None:
    """Replace all bytes of a file by zeros; one of a single byte at least."""
    path.write_bytes(bytes(max(1, path.stat().st_size)))


def flip(path: Path) -> None:
    """Flip one bit, where a reader of the whole file meets it."""
    content = bytearray(path.read_bytes())
    at = _FOOTER_LENGTH_AT if path.suffix == ".parquet" else content.index(b"{")
    content[at] ^= 0x40
    path.write_bytes(bytes(content))


def remove(path: Path) -> None:
    """Remove a file, or a folder with all that is in it."""
    shutil.rmtree(path) if path.is_dir() else path.unlink()


def replace_by_folder(path: Path) -> None:
    """Put an empty folder in the place of a file."""
    path.unlink(missing_ok=True)
    path.mkdir()


def replace_by_file(path: Path) -> None:
    """Put an empty file in the place of a folder."""
    shutil.rmtree(path)
    path.touch()


HARMS: Mapping[str, Callable[[Path], None]] = {
    "cut": cut,
    "emptied": empty,
    "zeroed": zero,
    "flipped": flip,
    "removed": remove,
    "a folder": replace_by_folder,
    "a file": replace_by_file,
}


def newest_commit(table: Path) -> Path:
    """Return the newest commit of a table."""
    return max(file for file in (table / LOG).iterdir() if COMMIT.fullmatch(file.name))


def _needed_commit(table: Path) -> Path:
    """Return the newest commit. If a checkpoint of the log includes it, no reader needs it, and another one follows."""
    if list((table / LOG).glob(f"{newest_commit(table).stem}{_CHECKPOINT_FILES}")):
        DeltaTable(str(table)).alter.set_table_properties({"headroom.benchmark": "1"}, raise_if_not_exists=False)
    return newest_commit(table)


def _log_checkpoint(table: Path) -> Path:
    if not (table / LOG / _HINT).exists():
        DeltaTable(str(table)).create_checkpoint()
    return max((table / LOG).glob(_CHECKPOINT_FILES))


def _hint(table: Path) -> Path:
    _log_checkpoint(table)
    return table / LOG / _HINT


def _newest_data_file(table: Path) -> Path:
    files = [Path(unquote(uri)) for uri in DeltaTable(str(table)).file_uris()]
    return max(files, key=lambda file: file.stat().st_mtime_ns)


def _newest_in(folder: Path) -> Path:
    return max((file for file in folder.iterdir() if file.name.isdigit()), key=lambda file: int(file.name))


# Kind of file to the file, of the folder of a table or checkpoint, or of the path of a lock.
FILES: Mapping[str, Callable[[Path], Path]] = {
    "newest commit": _needed_commit,
    "checkpoint of the log": _log_checkpoint,
    "_last_checkpoint": _hint,
    "data file": _newest_data_file,
    "_delta_log": lambda table: table / LOG,
    "folder": lambda folder: folder,
    "newest offsets": lambda checkpoint: _newest_in(checkpoint / "offsets"),
    "newest commits": lambda checkpoint: _newest_in(checkpoint / "commits"),
    "metadata": lambda checkpoint: checkpoint / "metadata",
    "offsets": lambda checkpoint: checkpoint / "offsets",
    "lock": lambda lock: lock,
}


def path_of(damage: PlannedDamage, store: Path, checkpoints: Path) -> Path:
    """Return the folder of the damaged table or checkpoint, or the path of the damaged lock."""
    if damage.place is DamagedPlace.TABLE:
        return store / damage.name
    return checkpoints / (damage.name if damage.place is DamagedPlace.CHECKPOINT else f"{damage.name}.lock")


def do_damage(damage: PlannedDamage, location: Path) -> int:
    """Damage a file, and return how many rows may be lost with it.

    Args:
        damage: the damage.
        location: see ``path_of``.

    Raises:
        HeadroomError: there is no such file.
    """
    try:
        file = FILES[damage.file](location)
        rows = rows_with(file, location) if damage.place is DamagedPlace.TABLE else 0
        HARMS[damage.harm](file)
    except (OSError, ValueError) as error:
        raise failure(f"{damage} is not possible: {error!r}") from None
    return rows


def rows_with(file: Path, table: Path) -> int:
    """Return the number of rows of a table that are lost with a file at most."""
    rows = rows_by_file(table)
    if COMMIT.fullmatch(file.name):
        # A compaction adds files with rows that are still in those that it replaces.
        added = [action["add"] for action in actions_of(file) if action is not None and "add" in action]
        return sum(rows.get(one["path"], 0) for one in added if one.get("dataChange"))
    if LOG in file.parts and file.name != LOG:
        return 0
    if file in (table, table / LOG):
        # With the log alone gone, the rows of tables that promises rest on are read from their files.
        return 0 if file != table and definition_of(table) in DURABLE_TABLES else sum(rows.values())
    return rows.get(str(file.relative_to(table)), 0)


def rows_by_file(table: Path) -> dict[str, int]:
    """Return the number of rows of a table by the path of the file."""
    files = DeltaTable(str(table)).get_add_actions(flatten=True)
    return dict(zip(files.column("path").to_pylist(), files.column("num_records").to_pylist(), strict=True))


def row_count(table: Path) -> int:
    """Return the number of rows of a table; 0 if it cannot be read."""
    try:
        with without_panic(str(table)):
            return sum(rows_by_file(table).values())
    # The library raises errors of many kinds at a missing or damaged table.
    except Exception:
        return 0


def lock_owner(lock: Path) -> int | None:
    """Return the process id in a lock; None if the lock names none."""
    try:
        pid = json.loads(lock.read_text(encoding="utf-8"))["pid"]
    except (OSError, ValueError, KeyError, TypeError):
        return None
    return pid if isinstance(pid, int) else None


def remove_file_of_newest_rows(table: Path) -> Path:
    """Remove the file with the newest rows of a table, and return its path."""
    ticks_ms = _ticks_of_files(table)
    removed = table / max(ticks_ms, key=lambda path: ticks_ms[path][1])
    removed.unlink()
    return removed


def cut_newest_commit(table: Path) -> Path:
    """Truncate the newest commit of a table to half its size, and return its path."""
    commit = newest_commit(table)
    cut(commit)
    return commit


def remove_events_of_the_past(store: Path) -> Path:
    """Remove the newest file of ``alerts/events`` with events of resolved alerts only, and return its path.

    Active alerts keep all their events. Without them an alert would rightly fire as a new one.

    Raises:
        HeadroomError: there is no such file.
    """
    table = store / ALERT_EVENTS.path
    events = stored_events(str(store))
    ended = {event.alert_id for event in events if event.state == AlertState.RESOLVED.value}
    past = {
        path: last_ms
        for path, (first_ms, last_ms) in _ticks_of_files(table).items()
        if {event.alert_id for event in events if first_ms <= event.tick_ms <= last_ms} <= ended
    }
    if not past:
        raise failure("no file of alerts/events is about resolved alerts alone")
    removed = table / max(past, key=lambda path: past[path])
    removed.unlink()
    return removed


def newest_tick_ms(table: Path) -> int:
    """Return the newest tick in a table, epoch milliseconds; -1 if there is none."""
    if not (table / LOG).is_dir():
        return -1
    return max((last_ms for _, last_ms in _ticks_of_files(table).values()), default=-1)


def _ticks_of_files(table: Path) -> dict[str, tuple[int, int]]:
    """Return the lowest and highest tick of each file of a table.

    Raises:
        HeadroomError: the table cannot be read, for example because it is damaged.
    """
    try:
        files = DeltaTable(str(table)).get_add_actions(flatten=True)
    except DeltaError as error:
        raise failure(f"{table} cannot be read: {error}") from None
    paths, least, most = (files.column(name).to_pylist() for name in ("path", "min.tick_ms", "max.tick_ms"))
    return {path: (low, high) for path, low, high in zip(paths, least, most, strict=True)}


def repair_store_of(config: Path, environment: Mapping[str, str] | None = None, timeout_s: float = _REPAIR_S) -> None:
    """Run ``headroom maintain --repair``.

    Args:
        config: configuration file.
        environment: variables in addition to those of this process.
        timeout_s: longest time that it may take, seconds.

    Raises:
        HeadroomError: it failed; the text has its error output.
    """
    command = headroom_command("maintain", "--config", str(config), "--repair")
    variables = {**os.environ, **(environment or {})}
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=timeout_s, env=variables, check=False)
    except subprocess.TimeoutExpired:
        raise failure(f"`headroom maintain --repair` took longer than {timeout_s:.0f} s") from None
    if done.returncode:
        raise failure(f"`headroom maintain --repair` ended with code {done.returncode}: {done.stderr.strip()[-500:]}")

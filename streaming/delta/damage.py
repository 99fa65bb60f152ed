"""Delta tables that a disk has damaged: damaged files, what is lost with them, and the repair.

The check works without Spark, whose error for a damaged log does not name the file. On this machine it covers every
file that the table needs: it reads the log, and compares the size and both ends of the other files. At a URL the
library lists missing files.
"""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from deltalake import DeltaTable
from deltalake.exceptions import DeltaError, TableNotFoundError

from schemas.errors import HeadroomError
from streaming.delta.locations import local_path
from streaming.supervision.failure import cause_of

_LOG = "_delta_log"
_COMMIT = re.compile(r"(\d{20})\.json")
_CHECKPOINT = re.compile(r"(\d{20})\.checkpoint\..*parquet")
_LAST_CHECKPOINT = "_last_checkpoint"
# First and last bytes of every Parquet file.
_PARQUET = b"PAR1"
# Actions of a commit other than files: protocol, columns, and the batches that the table has.
_KEPT_ACTIONS = ("protocol", "metaData", "txn", "commitInfo", "domainMetadata")
# Folder next to the tables and checkpoints for what is damaged.
ASIDE = "_damaged"


@dataclass(frozen=True)
class Damage:
    """One damaged file of a table.

    Attributes:
        file: its path below the table's location.
        fault: description of the damage.
        lost: data that is lost with the file.
        can_be_mended: whether ``mend`` can repair the table without it.
    """

    file: str
    fault: str
    lost: str
    can_be_mended: bool = True


def damages(location: str) -> list[Damage]:
    """Return the damaged files of a table; an empty list if it is undamaged or does not exist.

    Args:
        location: folder or URL.
    """
    path = local_path(location)
    if path is None:
        return _missing_files(location)
    folder = Path(path)
    # Data files can only be listed with an undamaged log.
    of_log = [*_damaged_checkpoints(folder), *_damaged_commits(folder)]
    return of_log or _damaged_files(folder)


def describe_damage(table: str, found: Sequence[Damage]) -> str:
    """Return one line for the log: the damage to a table, and the remedy.

    Args:
        table: path of the table below the store.
        found: its damaged files, at least one.
    """
    more = f", and {len(found) - 1} more" if len(found) > 1 else ""
    return (
        f"table {table} is damaged: its file {found[0].file} {found[0].fault}{more} (lost: {found[0].lost}); "
        "run `headroom maintain --repair`"
    )


def mend(location: str) -> list[Damage]:
    """Repair a table by moving its damaged files aside, and return these; see ``damages``.

    Args:
        location: folder or URL.

    Raises:
        HeadroomError: the table cannot be repaired.
    """
    path = local_path(location)
    mended: list[Damage] = []
    # Several rounds: commits are checked once the checkpoints can be read, and data files once the log can.
    while found := damages(location):
        unrepairable = [damage for damage in found if not damage.can_be_mended or damage in mended]
        if unrepairable:
            remedy = f"Move {location} away: a new, empty table is made in its place."
            raise HeadroomError(
                f"{location}/{unrepairable[0].file}", f"{unrepairable[0].fault}, and cannot be mended", remedy
            )
        mended += found
        if path is not None:
            for damage in found:
                _set_aside(Path(path), damage)
        # The library repairs only a table whose log it can read.
        if not any(damage.file.startswith(_LOG) for damage in found):
            DeltaTable(location).repair()
    return mended


def _damaged_checkpoints(folder: Path) -> Iterator[Damage]:
    """Yield the damaged checkpoints of the log. None of them is needed while the commits exist."""
    log = folder / _LOG
    lost = "nothing, if the commits are there"
    undamaged = set()
    for file in sorted(_files_named(log, _CHECKPOINT)):
        fault = _parquet_fault(file)
        if fault:
            yield Damage(f"{_LOG}/{file.name}", fault, lost)
        else:
            undamaged.add(int(file.name[:20]))
    # The hint to the last checkpoint is damaged too if that checkpoint is.
    hint = log / _LAST_CHECKPOINT
    if hint.exists():
        version = (_action(hint.read_bytes()) or {}).get("version")
        if version not in undamaged:
            yield Damage(f"{_LOG}/{_LAST_CHECKPOINT}", "names no checkpoint that is whole", lost)


def _damaged_commits(folder: Path) -> Iterator[Damage]:
    """Yield the damaged commits of the log after its last checkpoint."""
    log = folder / _LOG
    since = max((int(file.name[:20]) for file in _files_named(log, _CHECKPOINT)), default=-1)
    commits = {version: file for file in _files_named(log, _COMMIT) if (version := int(file.name[:20])) > since}
    if not commits:
        if since < 0 and log.is_dir() and any(log.iterdir()):
            yield Damage(f"{_LOG}/{_commit_name(0)}", "is missing", "the table", can_be_mended=False)
        return
    for version in range(since + 1, max(commits) + 1):
        name = f"{_LOG}/{_commit_name(version)}"
        if version not in commits:
            yield Damage(name, "is missing", "the rows of one commit", can_be_mended=version > 0)
            continue
        lines = _lines(commits[version])
        if None in lines:
            # Without the columns, which are in the first commit, a table cannot be repaired.
            has_columns = version > 0 or any(line is not None and "metaData" in line for line in lines)
            yield Damage(name, "is cut off, or no JSON", "at most the rows of one commit", can_be_mended=has_columns)


def _damaged_files(folder: Path) -> list[Damage]:
    """Return the damaged data files of a table with an undamaged log."""
    try:
        table = DeltaTable(str(folder))
    except TableNotFoundError:
        return []
    except DeltaError as error:
        return [Damage(_LOG, f"cannot be read ({cause_of(error)})", "the table", can_be_mended=False)]
    files = table.get_add_actions(flatten=True)
    columns = [files.column(name).to_pylist() for name in ("path", "size_bytes", "num_records")]
    return [
        Damage(path, fault, "an unknown number of rows" if rows is None else f"{rows} rows")
        for path, size_bytes, rows in zip(*columns, strict=True)
        if (fault := _parquet_fault(folder / path, size_bytes))
    ]


def _missing_files(location: str) -> list[Damage]:
    """Return the missing files of a table at a URL."""
    try:
        found: Sequence[str] = DeltaTable(location).repair(dry_run=True)["files_removed"]
    except TableNotFoundError:
        return []
    except Exception as error:
        return [Damage(_LOG, f"cannot be read ({cause_of(error)})", "unknown", can_be_mended=False)]
    return [Damage(file, "is missing", "its rows") for file in found]


def _set_aside(folder: Path, damage: Damage) -> None:
    """Move a damaged file aside; a commit is replaced by one with its readable actions other than files."""
    file = folder / damage.file
    commit = _COMMIT.fullmatch(file.name)
    kept = [_kept(line) for line in _lines(file)] if commit and file.exists() else []
    if file.exists():
        aside = folder.parent / ASIDE / folder.name / damage.file
        aside.parent.mkdir(parents=True, exist_ok=True)
        shutil.move(file, aside)
    for checksum in (file.with_name(f".{file.name}.crc"), file.with_suffix(".crc")):
        # Hadoop's and Delta's checksums do not match any more.
        checksum.unlink(missing_ok=True)
    if commit:
        lines = [line for line in kept if line] or [{"commitInfo": {}}]
        file.write_text("".join(f"{json.dumps(line)}\n" for line in lines), encoding="utf-8")


def _kept(action: Mapping[str, Any] | None) -> Mapping[str, Any] | None:
    """Return an action of a damaged commit if it may be kept alone, otherwise None.

    Half of a compaction would duplicate or lose rows. Without the whole compaction its source files are still there.
    """
    if action is None or any(name in action for name in _KEPT_ACTIONS):
        return action
    change = action.get("add") or action.get("remove") or {}
    return action if change.get("dataChange") else None


def _files_named(log: Path, pattern: re.Pattern[str]) -> list[Path]:
    with suppress(OSError):
        return [file for file in log.iterdir() if pattern.fullmatch(file.name)]
    return []


def _commit_name(version: int) -> str:
    return f"{version:020d}.json"


def _lines(commit: Path) -> list[Mapping[str, Any] | None]:
    """Return the actions of a commit, one per line; None for an unreadable line."""
    return [_action(line) for line in commit.read_bytes().split(b"\n") if line.strip()]


def _action(line: bytes) -> Mapping[str, Any] | None:
    try:
        value = json.loads(line)
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, dict) else None


def _parquet_fault(file: Path, size_bytes: int | None = None) -> str | None:
    """Return the damage of a Parquet file by its size and its first and last bytes; None if there is none."""
    try:
        with file.open("rb") as opened:
            begin = opened.read(len(_PARQUET))
            length = opened.seek(0, 2)
            opened.seek(max(0, length - len(_PARQUET)))
            end = opened.read()
    except FileNotFoundError:
        return "is missing"
    except OSError as error:
        return f"cannot be read ({error.strerror})"
    if size_bytes is not None and length != size_bytes:
        return f"has {length} of {size_bytes} bytes"
    return None if begin == end == _PARQUET else "is no Parquet file"

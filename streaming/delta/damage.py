"""Delta tables that a disk has damaged: damaged files, and what is lost with them.

The check works without Spark, whose error for a damaged log does not name the file. On this machine it covers every
file that the table needs: it reads the log, and compares the size and both ends of the other files. A thorough check
decodes these too. At a URL the library lists missing files.

What the log of one of Headroom's own tables must begin with is known: its columns are in its definition.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import unquote

from deltalake import DeltaTable
from deltalake.exceptions import DeltaError, TableNotFoundError

from headroom.schemas.errors import HeadroomError
from headroom.schemas.tables import ALL_TABLES, DURABLE_TABLES, Table
from headroom.streaming.delta.files.log_actions import (
    fault_of_action,
    fault_of_commit,
    needs_newer_version,
    parsed_action,
)
from headroom.streaming.delta.files.table_files import data_files, fault_of_file, fault_of_rows, may_be_of
from headroom.streaming.delta.locations import local_path
from headroom.streaming.supervision.failure import cause_of

LOG = "_delta_log"
COMMIT = re.compile(r"(\d{20})\.json")
_CHECKPOINT = re.compile(r"(\d{20})\.checkpoint\..*parquet")
_LAST_CHECKPOINT = "_last_checkpoint"
# Of a file in the place of the folder of several tables. Whoever writes tables takes that for a wrong store.path.
LAYER = ".."
# What is lost of a table that cannot be read, and need not be damaged.
UNKNOWN = "unknown"
# Of a table or checkpoint that cannot be read.
UNREADABLE_REMEDY = "Give this user the right to read it, and check store.path, its credentials and its disk."
_LOST_CHECKPOINT = "nothing, if the commits are there"
# A disk loses single commits. What comes after a greater gap than this is a stray file.
_MOST_MISSING = 1000
# First and last bytes of every Parquet file.
_PARQUET = b"PAR1"


@dataclass(frozen=True)
class Damage:
    """One damaged file of a table.

    Attributes:
        file: its path below the table's location.
        fault: description of the damage.
        lost: data that is lost with the file.
        can_be_mended: whether ``mend`` can repair the table without it.
        whole: whether the table is created again, because the file is, or its log has lost, what all of it needs.
        is_stray: whether the table needs nothing in the file's place.
    """

    file: str
    fault: str
    lost: str
    can_be_mended: bool = True
    whole: bool = False
    is_stray: bool = False


def damages(location: str, *, thorough: bool = False) -> list[Damage]:
    """Return the damaged files of a table; an empty list if it is undamaged or does not exist.

    Of a table that cannot be read its log is named, with an unknown loss: often this user may not read it.

    Args:
        location: folder or URL.
        thorough: whether data files are decoded, which takes as long as reading the table.
    """
    path = local_path(location)
    if path is None:
        return _missing_files(location)
    try:
        # What is in a folder that may not be searched does not seem to exist.
        with suppress(FileNotFoundError, NotADirectoryError):
            os.stat(Path(path) / LOG)
        # Data files can only be listed with an undamaged log.
        return _damaged_log(Path(path)) or _damaged_files(Path(path), thorough)
    except OSError as error:
        return [unreadable(LOG, error)]


def unreadable(file: str, error: OSError) -> Damage:
    """Return what is known of a table or checkpoint that cannot be read, often because this user may not."""
    return Damage(file, f"cannot be read ({error.strerror})", UNKNOWN, can_be_mended=False)


def log_damages(location: str) -> list[Damage]:
    """Return the damage of a table's log alone, which takes some milliseconds.

    The list is empty at a URL, and where this user may not look: that is no damage, and whoever reads there is told.
    """
    path = local_path(location)
    if path is None:
        return []
    with suppress(PermissionError):
        return _damaged_log(Path(path))
    return []


def _damaged_log(folder: Path) -> list[Damage]:
    return _lost_log(folder) or [*_damaged_checkpoints(folder), *_damaged_commits(folder)]


def error_of_damage(location: str) -> HeadroomError | None:
    """Return the error of a damaged table, with the command that repairs it; None if it is undamaged."""
    damaged: list[Damage] = []
    with suppress(OSError):
        damaged = damages(location, thorough=True)
    # Of what cannot be read nothing is known; the reader's own error says why.
    if not damaged or damaged[0].lost == UNKNOWN:
        return None
    rule = f"is damaged: its file {damaged[0].file} {damaged[0].fault} (lost: {damaged[0].lost})"
    return HeadroomError(location, rule, "Run `headroom maintain --repair`.")


def describe_damage(table: str, damaged: Sequence[Damage]) -> str:
    """Return one line for the log: the damage to a table, and the remedy.

    Args:
        table: path of the table below the store.
        damaged: its damaged files, at least one.
    """
    more = f", and {len(damaged) - 1} more" if len(damaged) > 1 else ""
    return (
        f"table {table} is damaged: its file {damaged[0].file} {damaged[0].fault}{more} (lost: {damaged[0].lost}); "
        "run `headroom maintain --repair`"
    )


def definition_of(folder: Path) -> Table | None:
    """Return the definition of the table whose place a folder is; None if it is of no table of Headroom."""
    # A store may be the working directory.
    place = "/".join(folder.absolute().parts[-2:])
    return next((table for table in ALL_TABLES if table.path == place), None)


def _rows_of(folder: Path) -> str:
    """Return what is lost of a table that is created again."""
    if definition_of(folder) in DURABLE_TABLES:
        return "nothing that its data files have"
    return "its rows: the files are kept"


def _lost_log(folder: Path) -> list[Damage]:
    """Return the damage of a table that has no log."""
    definition = definition_of(folder)
    has_definition = definition is not None
    # The folder of a layer has the tables below it.
    above = folder.parent
    if has_definition and os.path.lexists(above) and not above.is_dir():
        return [Damage(LAYER, f"({above.name}) is a file, and must be a folder", "the table", whole=True)]
    if os.path.lexists(folder) and not folder.is_dir():
        return [Damage(".", "is a file, and must be a folder", "the table", has_definition, whole=True)]
    log = folder / LOG
    if os.path.lexists(log) and not log.is_dir():
        return [Damage(LOG, "is a file, and must be a folder", _rows_of(folder), has_definition, whole=True)]
    if definition is None or not folder.is_dir() or any(_readable(log)):
        return []
    # A folder of something else is not Headroom's to repair.
    if any(may_be_of(file, folder, definition) for file in data_files(folder)):
        return [Damage(LOG, "is missing", _rows_of(folder), whole=True)]
    return []


def _readable(log: Path) -> Iterator[Path]:
    """Yield the files of a log; none if it is not there."""
    with suppress(FileNotFoundError):
        yield from log.iterdir()


def _damaged_checkpoints(folder: Path) -> Iterator[Damage]:
    """Yield the damaged checkpoints of the log. None of them is needed while the commits exist."""
    log = folder / LOG
    lost = _LOST_CHECKPOINT
    undamaged = set()
    for file in sorted(_files_named(log, _CHECKPOINT)):
        fault = _parquet_fault(file)
        if fault:
            yield Damage(f"{LOG}/{file.name}", fault, lost)
        else:
            undamaged.add(int(file.name[:20]))
    # The hint to the last checkpoint is damaged too if that checkpoint is.
    hint = log / _LAST_CHECKPOINT
    if os.path.lexists(hint):
        version = (parsed_action(_content(hint) or b"") or {}).get("version")
        if not isinstance(version, int) or version not in undamaged:
            yield Damage(f"{LOG}/{_LAST_CHECKPOINT}", "names no checkpoint that is whole", lost)


def _damaged_commits(folder: Path) -> Iterator[Damage]:
    """Yield the damaged commits of the log after its last checkpoint."""
    log = folder / LOG
    since = max((int(file.name[:20]) for file in _files_named(log, _CHECKPOINT)), default=-1)
    commits = {version: file for file in _files_named(log, COMMIT) if (version := int(file.name[:20])) > since}
    table = definition_of(folder)
    is_known = table is not None
    if not commits:
        if since < 0 and log.is_dir() and any(log.iterdir()):
            yield Damage(f"{LOG}/{_commit_name(0)}", "is missing", _rows_of(folder), is_known, whole=is_known)
        return
    if since < 0 and min(commits) > 1:
        # The commits before a checkpoint are deleted, and the checkpoint is gone.
        yield Damage(f"{LOG}/{_commit_name(0)}", "is missing", _rows_of(folder), is_known, whole=is_known)
        return
    newest, strays = _newest_and_strays(since, commits)
    for version in strays:
        fault = f"has a number that does not follow {newest}, the commit before it"
        yield Damage(f"{LOG}/{_commit_name(version)}", fault, "at most the rows of one commit", is_stray=True)
    for version in range(since + 1, newest + 1):
        name = f"{LOG}/{_commit_name(version)}"
        if version not in commits:
            yield Damage(name, "is missing", "the rows of one commit", can_be_mended=version > 0 or is_known)
        else:
            yield from _damaged_commit(commits[version], name, version == 0, table)


def _newest_and_strays(since: int, versions: Iterable[int]) -> tuple[int, list[int]]:
    """Return the newest commit of a table, and the numbers of files that are no commits of it.

    Args:
        since: version of the last checkpoint; -1 if there is none.
        versions: commits after it.
    """
    newest = since
    in_order = sorted(versions)
    for position, version in enumerate(in_order):
        if version - newest > _MOST_MISSING:
            return newest, in_order[position:]
        newest = version
    return newest, []


def _damaged_commit(commit: Path, name: str, is_first: bool, table: Table | None) -> Iterator[Damage]:
    """Yield the damage of one commit, if any.

    Args:
        commit: its file.
        name: path of the file below the table.
        is_first: whether the table begins with it.
        table: definition of the table; None if it is not Headroom's.
    """
    # Without its columns and protocol, which are in the first commit, a table cannot be repaired.
    can_be_mended = not is_first or table is not None
    try:
        lines = [parsed_action(line) for line in _lines(commit)]
    except PermissionError:
        raise
    except OSError as error:
        yield Damage(name, f"cannot be read ({error.strerror})", "at most the rows of one commit", can_be_mended)
        return
    newer = next(filter(None, map(needs_newer_version, lines)), None)
    if newer is not None:
        yield Damage(name, f"{newer}: a newer program has written it, or it is damaged", "the table", False)
        return
    actions = [line for line in lines if line is not None]
    can_be_mended |= {"metaData", "protocol"} <= {kind for line in actions for kind in line}
    faults = [fault for line in lines if (fault := fault_of_action(line, table)) is not None]
    fault = "is empty" if not lines else faults[0] if faults else fault_of_commit(actions, is_first)
    if fault is not None:
        yield Damage(name, fault, "at most the rows of one commit", can_be_mended)


def _damaged_files(folder: Path, thorough: bool) -> list[Damage]:
    """Return the damaged data files of a table with an undamaged log."""
    try:
        table = DeltaTable(str(folder))
    except TableNotFoundError:
        return []
    except (DeltaError, OSError) as error:
        checkpoint = max(_files_named(folder / LOG, _CHECKPOINT), default=None)
        if checkpoint is not None and "Parquet error" in str(error):
            return [Damage(f"{LOG}/{checkpoint.name}", f"cannot be decoded ({cause_of(error)})", _LOST_CHECKPOINT)]
        is_known = definition_of(folder) is not None
        return [Damage(LOG, f"cannot be read ({cause_of(error)})", _rows_of(folder), is_known, whole=is_known)]
    files = table.get_add_actions(flatten=True)
    columns = [files.column(name).to_pylist() for name in ("path", "size_bytes", "num_records")]
    by_path = [(unquote(path), size_bytes, rows) for path, size_bytes, rows in zip(*columns, strict=True)]
    faults = {path: fault for path, size_bytes, _ in by_path if (fault := _parquet_fault(folder / path, size_bytes))}
    if thorough and not faults and fault_of_rows(table) is not None:
        decoded = {path: fault_of_file(folder / path, folder, table.schema()) for path, _, _ in by_path}
        faults = {path: fault for path, fault in decoded.items() if fault is not None}
    lost = {path: "an unknown number of rows" if rows is None else f"{rows} rows" for path, _, rows in by_path}
    return [Damage(path, fault, lost[path]) for path, fault in faults.items()]


def _missing_files(location: str) -> list[Damage]:
    """Return the missing files of a table at a URL."""
    try:
        missing: Sequence[str] = DeltaTable(location).repair(dry_run=True)["files_removed"]
    except TableNotFoundError:
        return []
    except Exception as error:
        # Perhaps only the credentials are wrong.
        return [Damage(LOG, f"cannot be read ({cause_of(error)})", UNKNOWN, can_be_mended=False)]
    return [Damage(file, "is missing", "its rows") for file in missing]


def _files_named(log: Path, pattern: re.Pattern[str]) -> list[Path]:
    with suppress(OSError):
        return [file for file in log.iterdir() if pattern.fullmatch(file.name)]
    return []


def _commit_name(version: int) -> str:
    return f"{version:020d}.json"


def actions_of(commit: Path, table: Table | None = None) -> list[Mapping[str, Any] | None]:
    """Return the actions of a commit, one per line; None for a line that is none.

    Args:
        commit: its file.
        table: definition of the table; None if it is not Headroom's.
    """
    lines = [parsed_action(line) for line in _content(commit).split(b"\n") if line.strip()]
    return [line if fault_of_action(line, table) is None else None for line in lines]


def _lines(commit: Path) -> list[bytes]:
    """Return the lines of a commit; none if a folder is in its place.

    Raises:
        OSError: it cannot be read.
    """
    with suppress(IsADirectoryError):
        return [line for line in commit.read_bytes().split(b"\n") if line.strip()]
    return []


def _content(file: Path) -> bytes:
    """Return the bytes of a file; none if it cannot be read, or a folder is in its place."""
    try:
        return file.read_bytes()
    except PermissionError:
        raise
    except OSError:
        return b""


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
    except PermissionError:
        raise
    except OSError as error:
        return f"cannot be read ({error.strerror})"
    if size_bytes is not None and length != size_bytes:
        return f"has {length} of {size_bytes} bytes"
    return None if begin == end == _PARQUET else "is no Parquet file"

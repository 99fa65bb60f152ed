"""Repair of damaged tables: damaged files are moved aside, and what a table needs is put in their place."""

from __future__ import annotations

import json
import os
import shutil
import time
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any
from urllib.parse import unquote

from deltalake import DeltaTable

from headroom.schemas.errors import HeadroomError
from headroom.schemas.tables import DURABLE_TABLES, Table
from headroom.streaming.delta.append import append_columns, create
from headroom.streaming.delta.damage import (
    COMMIT,
    LOG,
    UNKNOWN,
    UNREADABLE_REMEDY,
    Damage,
    actions_of,
    damages,
    definition_of,
)
from headroom.streaming.delta.files.sync import sync_commits, sync_path
from headroom.streaming.delta.files.table_files import data_files, distinct_rows, first_commit
from headroom.streaming.delta.locations import DISK_REMEDY, local_path
from headroom.streaming.durability.aside import ASIDE, free_place, keep_owner
from headroom.streaming.supervision.failure import cause_of

# Actions of a commit other than files: protocol, columns, and the batches that the table has.
_KEPT_ACTIONS = ("protocol", "metaData", "txn", "commitInfo", "domainMetadata")


def mend(location: str) -> list[Damage]:
    """Repair a table by moving its damaged files aside, and return these; see ``damages``.

    Args:
        location: folder or URL.

    Raises:
        HeadroomError: the table cannot be repaired.
    """
    try:
        return _mend(location)
    except HeadroomError:
        raise
    # The library raises its own errors, OSError and bare Exceptions for problems of the storage.
    except Exception as error:
        # An OSError of the library has a text alone.
        why = (isinstance(error, OSError) and error.strerror) or cause_of(error)
        rule = f"is damaged, and cannot be mended ({why})"
        raise HeadroomError(location, rule, DISK_REMEDY) from error


def _mend(location: str) -> list[Damage]:
    path = local_path(location)
    mended: list[Damage] = []
    # Several rounds: commits are checked once the checkpoints can be read, and data files once the log can.
    while damaged := damages(location, thorough=True):
        unrepairable = [damage for damage in damaged if not damage.can_be_mended or damage in mended]
        if unrepairable:
            first = unrepairable[0]
            remedy = f"Move {location} away: a new, empty table is made in its place."
            if first.lost == UNKNOWN:
                remedy = UNREADABLE_REMEDY
            raise HeadroomError(f"{location}/{first.file}", f"{first.fault}, and cannot be mended", remedy)
        mended += damaged
        if path is not None and any(damage.whole for damage in damaged):
            _create_again(Path(path))
            continue
        if path is not None:
            for damage in damaged:
                _set_aside(Path(path), damage)
        # The library repairs only a table whose log it can read.
        if not any(damage.file.startswith(LOG) for damage in damaged):
            DeltaTable(location).repair()
            if path is not None:
                _remove_left(Path(path), {damage.file for damage in damaged})
    return mended


def _remove_left(folder: Path, files: Collection[str]) -> None:
    """Remove files from the log that the library's repair has left: it spells some names otherwise than the log.

    Args:
        folder: folder of the table.
        files: paths of data files below it.
    """
    left = {damage.file for damage in damages(str(folder))} & set(files)
    if not left:
        return
    commits = sorted(file for file in (folder / LOG).iterdir() if COMMIT.fullmatch(file.name))
    actions = [action for commit in commits for action in actions_of(commit) if action is not None]
    added = [action["add"]["path"] for action in actions if "add" in action]
    now_ms = round(time.time() * 1000)
    removed = [
        {"remove": {"path": path, "dataChange": True, "deletionTimestamp": now_ms}}
        for path in added
        if unquote(path) in left
    ]
    if removed:
        commit = commits[-1].with_name(f"{int(commits[-1].name[:20]) + 1:020d}.json")
        # Another process may have made this commit meanwhile.
        with commit.open("x", encoding="utf-8") as opened:
            opened.write("".join(f"{json.dumps(line)}\n" for line in [{"commitInfo": {}}, *removed]))
        sync_path(commit)
        keep_owner(commit, commit.parent)
        sync_path(commit.parent)


def _set_aside(folder: Path, damage: Damage) -> None:
    """Move a damaged file aside; a commit is replaced by one with its readable actions other than files."""
    file = folder / damage.file
    aside = folder.parent / ASIDE / folder.name / damage.file
    for checksum in (file.with_name(f".{file.name}.crc"), file.with_suffix(".crc")):
        # Hadoop's and Delta's checksums do not match any more.
        checksum.unlink(missing_ok=True)
    commit = None if damage.is_stray else COMMIT.fullmatch(file.name)
    if commit is not None:
        _replace_commit(file, aside, int(commit[1]), definition_of(folder))
    elif os.path.lexists(file):
        _move(file, aside)


def _replace_commit(file: Path, aside: Path, version: int, definition: Table | None) -> None:
    """Replace a damaged commit by one with its readable actions.

    The new one takes its place at once: a repair that is killed must not lose these actions, and while the place is
    free another process may make a commit of its own there.

    Args:
        file: the commit.
        aside: place for the damaged one.
        version: its version.
        definition: definition of the table; None if it is not Headroom's.
    """
    kept = [line for line in map(_action_to_keep, actions_of(file, definition)) if line]
    has = {name for line in kept for name in line}
    known = first_commit(definition) if definition and version == 0 else []
    columns = [line for line in known if not has & line.keys()]
    lines = [*columns, *kept] or [{"commitInfo": {}}]
    new = file.with_name(f".{file.name}.new")
    new.write_text("".join(f"{json.dumps(line)}\n" for line in lines), encoding="utf-8")
    sync_path(new)
    keep_owner(new, file.parent)
    if os.path.lexists(file):
        try:
            os.link(file, free_place(aside))
        except OSError:
            # A folder is in its place, or the file system has no links.
            _move(file, aside)
    os.replace(new, file)
    sync_path(file.parent)


def _action_to_keep(action: Mapping[str, Any] | None) -> Mapping[str, Any] | None:
    """Return an action of a damaged commit if it may be kept alone, otherwise None.

    Half of a compaction would duplicate or lose rows. Without the whole compaction its source files are still there.
    """
    if action is None or any(name in action for name in _KEPT_ACTIONS):
        # Its metrics count the files of the whole commit.
        info = (action or {}).get("commitInfo")
        return action if info is None else {"commitInfo": {**info, "operationMetrics": {}}}
    change = action.get("add") or action.get("remove") or {}
    return action if change.get("dataChange") else None


def _create_again(folder: Path) -> None:
    """Move a table aside, and create it again, with its rows if a promise rests on them."""
    definition = definition_of(folder)
    assert definition is not None
    layer = folder.parent
    if definition in DURABLE_TABLES and folder.is_dir():
        _replace_log(folder, definition)
        return
    damaged = folder if layer.is_dir() else layer
    _move(damaged, damaged.parent / ASIDE / damaged.name)
    create(str(folder), definition)
    keep_owner(damaged, damaged.parent)


def _replace_log(folder: Path, definition: Table) -> None:
    """Give a table a new log, with the rows of all its readable files.

    These files stay where they are until the new log is in its place, in one step. A repair that is killed before that
    is begun again, and finds each row at least once.
    """
    aside, old = folder.parent / ASIDE / folder.name, data_files(folder)
    rows = distinct_rows(old, folder, definition)
    new = folder.parent / ASIDE / f"{folder.name}.new"
    # What a repair that was killed has left.
    shutil.rmtree(new, ignore_errors=True)
    new = free_place(new)
    create(str(new), definition)
    if rows:
        append_columns(DeltaTable(str(new)), {name: [row[name] for row in rows] for name in definition.names()})
    sync_commits(str(new), -1)
    keep_owner(new, folder)
    for file in data_files(new):
        file.rename(folder / file.relative_to(new))
    sync_path(folder)
    if os.path.lexists(folder / LOG):
        _move(folder / LOG, aside / LOG)
    (new / LOG).rename(folder / LOG)
    sync_path(folder)
    for file in old:
        _move(file, aside / file.relative_to(folder))
    shutil.rmtree(new)


def _move(path: Path, aside: Path) -> None:
    """Move a file or folder to a place, or to one next to it if it is taken."""
    shutil.move(path, free_place(aside))

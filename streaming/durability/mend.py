"""Repair of damaged tables: damaged files are moved aside, and what a table needs is put in their place."""

from __future__ import annotations

import json
import os
import shutil
import time
from collections.abc import Collection, Mapping
from datetime import datetime, timezone
from pathlib import Path
from typing import Any
from urllib.parse import unquote

from deltalake import DeltaTable

from headroom.schemas.errors import HeadroomError
from headroom.schemas.tables import DURABLE_TABLES
from headroom.streaming.delta.append import append_columns, create
from headroom.streaming.delta.damage import COMMIT, LOG, Damage, actions_of, damages, definition_of
from headroom.streaming.delta.files.sync import sync_commits, sync_path
from headroom.streaming.delta.files.table_files import data_files, distinct_rows, first_commit
from headroom.streaming.delta.locations import local_path

# Folder next to the tables and checkpoints for what is damaged.
ASIDE = "_damaged"
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
    except OSError as error:
        rule = f"is damaged, and cannot be mended ({error.strerror})"
        raise HeadroomError(location, rule, "Look at store.path and the rights on it.") from None


def _mend(location: str) -> list[Damage]:
    path = local_path(location)
    mended: list[Damage] = []
    # Several rounds: commits are checked once the checkpoints can be read, and data files once the log can.
    while damaged := damages(location, thorough=True):
        unrepairable = [damage for damage in damaged if not damage.can_be_mended or damage in mended]
        if unrepairable:
            remedy = f"Move {location} away: a new, empty table is made in its place."
            raise HeadroomError(
                f"{location}/{unrepairable[0].file}", f"{unrepairable[0].fault}, and cannot be mended", remedy
            )
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
        sync_path(commit.parent)


def _set_aside(folder: Path, damage: Damage) -> None:
    """Move a damaged file aside; a commit is replaced by one with its readable actions other than files."""
    file = folder / damage.file
    definition = definition_of(folder)
    commit = None if damage.is_stray else COMMIT.fullmatch(file.name)
    kept = [line for line in map(_action_to_keep, actions_of(file, definition)) if line] if commit else []
    if os.path.lexists(file):
        _move(file, folder.parent / ASIDE / folder.name / damage.file)
    for checksum in (file.with_name(f".{file.name}.crc"), file.with_suffix(".crc")):
        # Hadoop's and Delta's checksums do not match any more.
        checksum.unlink(missing_ok=True)
    if commit:
        has = {name for line in kept for name in line}
        known = first_commit(definition) if definition and int(commit[1]) == 0 else []
        columns = [line for line in known if not has & line.keys()]
        lines = [*columns, *kept] or [{"commitInfo": {}}]
        file.write_text("".join(f"{json.dumps(line)}\n" for line in lines), encoding="utf-8")
        sync_path(file)
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
    if not layer.is_dir():
        _move(layer, layer.parent / ASIDE / layer.name)
        create(str(folder), definition)
        return
    aside = _move(folder, folder.parent / ASIDE / folder.name)
    create(str(folder), definition)
    if definition in DURABLE_TABLES and aside.is_dir():
        rows = distinct_rows(data_files(aside), aside, definition)
        if rows:
            columns = {name: [row[name] for row in rows] for name in definition.names()}
            append_columns(DeltaTable(str(folder)), columns)
            sync_commits(str(folder), 0)


def _move(path: Path, aside: Path) -> Path:
    """Move a file or folder to a place that is still free, and return that."""
    if os.path.lexists(aside):
        aside = aside.with_name(f"{aside.name}-{datetime.now(timezone.utc).strftime('%Y%m%dT%H%M%S%f')}")
    aside.parent.mkdir(parents=True, exist_ok=True)
    shutil.move(path, aside)
    return aside

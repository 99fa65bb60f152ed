"""Sync of files and folders to the disk, so that a power cut leaves what a promise rests on.

Neither the Delta library nor Spark syncs a file. A file that was closed and renamed, but not synced, may come back
empty after a power cut, also one that was committed before it.
"""

from __future__ import annotations

import errno
import json
import logging
import os
from collections.abc import Iterable, Iterator
from pathlib import Path
from urllib.parse import unquote

from headroom.streaming.delta.locations import local_path

log = logging.getLogger(__name__)

_LOG = "_delta_log"
# A file system that cannot sync, or a folder that this user may not open: what was written may still reach the disk.
_UNSYNCABLE = {errno.EINVAL, errno.ENOTSUP, errno.ENOSYS, errno.EROFS, errno.EACCES, errno.EPERM}
_warned: set[Path] = set()


def sync_path(path: Path) -> None:
    """Sync a file or folder; one that cannot be synced is logged once, and left to the file system.

    Args:
        path: the file or folder.

    Raises:
        OSError: it does not exist, or the disk has failed or is full.
    """
    try:
        descriptor = os.open(path, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
    except OSError as error:
        if error.errno not in _UNSYNCABLE:
            raise
        folder = path.parent
        if folder not in _warned:
            _warned.add(folder)
            log.warning("%s cannot be synced (%s): a power cut may lose its newest rows", path, error.strerror)


def sync_commits(location: str, since: int) -> None:
    """Sync the later commits of a table with their files; a URL is left to its storage.

    Args:
        location: folder or URL of the table.
        since: newest version that is synced already; -1: none is, and the folders above the table are synced too.

    Raises:
        OSError: a file is missing, or the disk has failed or is full.
    """
    path = local_path(location)
    if path is None:
        return
    table = Path(path).absolute()
    commits = list(_commits_after(table / _LOG, since))
    folders = {table: None, table / _LOG: None}
    # Files first: a commit on the disk then never names a file that is not.
    for file in _files_of(table, commits):
        sync_path(file)
        folders |= dict.fromkeys(parent for parent in file.parents if table in parent.parents)
    for commit in commits:
        sync_path(commit)
    for file in _checkpoints_of(commits):
        sync_path(file)
    above = list(table.parents)[:3] if since < 0 else []
    for folder in (*folders, *above):
        sync_path(folder)


def _commits_after(log_folder: Path, since: int) -> Iterator[Path]:
    """Yield the files of the commits after a version, in order."""
    version = since + 1
    while (commit := log_folder / f"{version:020d}.json").exists():
        yield commit
        version += 1


def _files_of(table: Path, commits: Iterable[Path]) -> Iterator[Path]:
    """Yield the files that commits have added to a table."""
    for commit in commits:
        for line in commit.read_bytes().splitlines():
            added = json.loads(line).get("add") if b'"add"' in line else None
            if added is not None:
                yield table / unquote(added["path"])


def _checkpoints_of(commits: Iterable[Path]) -> Iterator[Path]:
    """Yield the checkpoints that the library has written after commits, and the hint to the last one."""
    for commit in commits:
        checkpoint = commit.with_name(f"{commit.stem}.checkpoint.parquet")
        if checkpoint.exists():
            yield checkpoint
            # Another writer that has just made the checkpoint writes the hint afterwards.
            hint = commit.with_name("_last_checkpoint")
            if hint.exists():
                yield hint

"""Delta tables that a disk has damaged: what is wrong with which file, what is lost with it, and the table mended.

Looked at without Spark, which says of a damaged log no more than that it failed. On this machine every file that the
table needs is looked at: the log is read, of other files the size and the ends are compared. At a URL the library tells
of files that are missing.
"""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Iterable, Iterator, Mapping, Sequence
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
# How every Parquet file begins and ends.
_PARQUET = b"PAR1"
# What a commit says besides of files: the library that made the table, its columns, and which batches it has.
_KEPT_ACTIONS = ("protocol", "metaData", "txn", "commitInfo", "domainMetadata")
_ASIDE = "_damaged"


@dataclass(frozen=True)
class Damage:
    """One file of a table that is damaged.

    Attributes:
        file: its path below the table's place.
        fault: what is wrong with it.
        lost: what is lost with it.
        can_be_mended: whether ``mend`` can make the table whole without it.
    """

    file: str
    fault: str
    lost: str
    can_be_mended: bool = True


def damages(location: str) -> list[Damage]:
    """Return what is damaged of a table; nothing of one that is whole, or not there.

    Args:
        location: its folder or URL.
    """
    path = local_path(location)
    if path is None:
        return _missing(location)
    folder = Path(path)
    of_log = [*_of_checkpoints(folder), *_of_commits(folder)]
    return of_log or _of_files(folder)


def describe_damage(table: str, found: Sequence[Damage]) -> str:
    """Return in words what is damaged of a table, and what to do.

    Args:
        table: its path below the store.
        found: at least one.
    """
    more = f", and {len(found) - 1} more" if len(found) > 1 else ""
    return (
        f"table {table} is damaged: its file {found[0].file} {found[0].fault}{more} (lost: {found[0].lost}); "
        "run `headroom maintain --repair`"
    )


def mend(location: str) -> list[Damage]:
    """Make a table whole without what is damaged, which is moved aside, and return what was; see ``damages``.

    Args:
        location: folder or URL.

    Raises:
        HeadroomError: it cannot be mended.
    """
    path = local_path(location)
    mended: list[Damage] = []
    # Files are seen once the log can be read, and commits once its checkpoints can.
    while found := damages(location):
        hopeless = [damage for damage in found if not damage.can_be_mended or damage in mended]
        if hopeless:
            remedy = f"Move {location} away: a new, empty table is made in its place."
            raise HeadroomError(f"{location}/{hopeless[0].file}", f"{hopeless[0].fault}, and cannot be mended", remedy)
        mended += found
        if path is not None:
            for damage in found:
                _mend_locally(Path(path), damage)
        if not _log_is_damaged(found):
            DeltaTable(location).repair()
    return mended


def _log_is_damaged(found: Iterable[Damage]) -> bool:
    return any(damage.file.startswith(_LOG) for damage in found)


def _of_checkpoints(folder: Path) -> Iterator[Damage]:
    """Return the damaged checkpoints of the log, of which none is needed while the commits are there."""
    log = folder / _LOG
    lost = "nothing, if the commits are there"
    whole = set()
    for file in sorted(_named(log, _CHECKPOINT)):
        fault = _parquet_fault(file)
        if fault:
            yield Damage(f"{_LOG}/{file.name}", fault, lost)
        else:
            whole.add(int(file.name[:20]))
    hint = log / _LAST_CHECKPOINT
    if hint.exists():
        version = _value(hint).get("version")
        if version not in whole:
            yield Damage(f"{_LOG}/{_LAST_CHECKPOINT}", "names no checkpoint that is whole", lost)


def _of_commits(folder: Path) -> Iterator[Damage]:
    """Return the damaged commits of the log, as far as no checkpoint stands for them."""
    log = folder / _LOG
    since = max((int(file.name[:20]) for file in _named(log, _CHECKPOINT)), default=-1)
    commits = {version: file for file in _named(log, _COMMIT) if (version := int(file.name[:20])) > since}
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
            # The first commit has the columns of the table.
            needed = version > 0 or any(line is not None and "metaData" in line for line in lines)
            yield Damage(name, "is cut off, or no JSON", "at most the rows of one commit", can_be_mended=needed)


def _of_files(folder: Path) -> list[Damage]:
    """Return the damaged files of a table whose log is whole."""
    try:
        table = DeltaTable(str(folder))
    except TableNotFoundError:
        return []
    except DeltaError as error:
        return [Damage(_LOG, f"cannot be read ({cause_of(error)})", "the table", can_be_mended=False)]
    files = table.get_add_actions(flatten=True)
    columns = [files.column(name).to_pylist() for name in ("path", "size_bytes", "num_records")]
    return [
        Damage(path, fault, "rows, nobody knows how many" if rows is None else f"{rows} rows")
        for path, size_bytes, rows in zip(*columns, strict=True)
        if (fault := _parquet_fault(folder / path, size_bytes))
    ]


def _missing(location: str) -> list[Damage]:
    """Return the files that a table at a URL lacks."""
    try:
        found: Sequence[str] = DeltaTable(location).repair(dry_run=True)["files_removed"]
    except TableNotFoundError:
        return []
    except Exception as error:
        return [Damage(_LOG, f"cannot be read ({cause_of(error)})", "nobody knows what", can_be_mended=False)]
    return [Damage(file, "is missing", "its rows") for file in found]


def _mend_locally(folder: Path, damage: Damage) -> None:
    """Move a damaged file aside; in the place of a commit goes one with what it said of other things than files."""
    file = folder / damage.file
    commit = _COMMIT.fullmatch(file.name)
    kept = [_kept(line) for line in _lines(file)] if commit and file.exists() else []
    if file.exists():
        aside = folder.parent / _ASIDE / folder.name / damage.file
        aside.parent.mkdir(parents=True, exist_ok=True)
        shutil.move(file, aside)
    for beside in (file.with_name(f".{file.name}.crc"), file.with_suffix(".crc")):
        # Checksums of Hadoop's and of Delta's, which are right no more.
        beside.unlink(missing_ok=True)
    if commit:
        describe_damage = [line for line in kept if line]
        file.write_text(
            "".join(f"{json.dumps(line)}\n" for line in describe_damage or [{"commitInfo": {}}]), encoding="utf-8"
        )


def _kept(action: Mapping[str, Any] | None) -> Mapping[str, Any] | None:
    """Return what a damaged commit still says, where half of it does no harm.

    Half of a compaction would double rows, or lose them; without it the files that it compacted are still there.
    """
    if action is None or any(name in action for name in _KEPT_ACTIONS):
        return action
    change = action.get("add") or action.get("remove") or {}
    return action if change.get("dataChange") else None


def _named(log: Path, pattern: re.Pattern[str]) -> list[Path]:
    with suppress(OSError):
        return [file for file in log.iterdir() if pattern.fullmatch(file.name)]
    return []


def _commit_name(version: int) -> str:
    return f"{version:020d}.json"


def _lines(commit: Path) -> list[Mapping[str, Any] | None]:
    """Return the actions of a commit; None for a line that is none."""
    return [_action(line) for line in commit.read_bytes().split(b"\n") if line.strip()]


def _action(line: bytes) -> Mapping[str, Any] | None:
    try:
        value = json.loads(line)
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, dict) else None


def _value(file: Path) -> Mapping[str, Any]:
    return _action(file.read_bytes()) or {}


def _parquet_fault(file: Path, size_bytes: int | None = None) -> str | None:
    """Return what is wrong with a Parquet file, as far as its size and its ends tell; None: nothing."""
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

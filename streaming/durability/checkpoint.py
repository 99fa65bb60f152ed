"""Checkpoints of the streaming queries on a local disk: what is damaged in them, and how a query begins again.

A checkpoint is derived state: how far a query is follows from its tables and from the topic. One that Spark cannot read
would stop its query for good. One that has fallen behind its table would let new batches pass for written ones. Such a
checkpoint is moved aside, and a new one, with a new id, takes its place.
"""

from __future__ import annotations

import json
import logging
import os
import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

from headroom.schemas.errors import HeadroomError
from headroom.streaming.delta.damage import Damage, unreadable
from headroom.streaming.delta.files.sync import sync_path
from headroom.streaming.delta.locations import local_path
from headroom.streaming.durability.aside import ASIDE, free_place

log = logging.getLogger(__name__)

_REMEDY = "Check store.checkpoint_path, the free space on its disk and its permissions."
_METADATA = "metadata"
_BATCH = re.compile(r"\d+")
_VERSION = re.compile(rb"v\d+")
# Records where a query of existing tables began. Spark ignores the file.
_BEGUN = "headroom_begun.json"


@dataclass(frozen=True)
class Progress:
    """How far an undamaged checkpoint is.

    Attributes:
        metadata: text of its file ``metadata``, with the id of the stream.
        stream_id: id of the stream.
        planned: number of the newest batch that was planned.
        done: number of the newest batch that was written; None if none was.
        offset: offset of the first source at the end of the newest planned batch.
    """

    metadata: str
    stream_id: str
    planned: int
    done: int | None
    offset: Mapping[str, Any]


# Returns how a checkpoint contradicts the table of its query; None if it does not.
Contradiction = Callable[[Progress], str | None]


class Checkpoint:
    """The checkpoint of one query. At a URL it is always taken for undamaged: an object store writes whole objects.

    Args:
        location: folder or URL.
        lost: what is lost if it begins again.
        contradiction: how it contradicts the table of its query.
    """

    def __init__(self, location: str, lost: str, contradiction: Contradiction = lambda progress: None) -> None:
        path = local_path(location)
        self._folder = None if path is None else Path(path)
        self._lost = lost
        self._contradiction = contradiction

    def damage(self) -> Damage | None:
        """Return the first damage; None if a query can continue from it, or begin with it.

        Of a checkpoint that cannot be read the loss is unknown: often this user may not read it.
        """
        if self._folder is None:
            return None
        above = self._folder.parent
        if os.path.lexists(above) and not above.is_dir():
            return Damage("..", f"({above.name}) is a file, and must be a folder", self._lost)
        try:
            os.lstat(self._folder)
            for file, fault in self._faults(self._folder):
                return Damage(file, fault, self._lost)
        except (FileNotFoundError, NotADirectoryError):
            return None
        except OSError as error:
            return unreadable(self._folder.name, error)
        return None

    def mend(self) -> Damage | None:
        """Move a damaged checkpoint aside, log that in one line, and return the damage; None if there is none.

        No query may use the checkpoint meanwhile.

        Raises:
            HeadroomError: it cannot be moved.
        """
        damage = self.damage()
        # What cannot be read need not be damaged, and the query's own error names it.
        if damage is None or self._folder is None or not damage.can_be_mended:
            return None
        damaged = self._folder if self._folder.parent.is_dir() else self._folder.parent
        moment = datetime.now(timezone.utc).strftime("%Y%m%dT%H%M%S%f")
        try:
            aside = free_place(damaged.parent / ASIDE / f"{damaged.name}-{moment}")
            damaged.rename(aside)
            sync_path(damaged.parent)
        except OSError as error:
            rule = f"is damaged, and cannot be moved away ({error.strerror})"
            raise HeadroomError(str(self._folder), rule, _REMEDY) from None
        log.error(
            "checkpoint %s was damaged: %s %s; it was moved to %s, and its query begins again (lost: %s)",
            self._folder.name,
            damage.file,
            damage.fault,
            aside,
            damage.lost,
        )
        return damage

    @property
    def is_new(self) -> bool:
        """Return whether no batch was planned with it; false at a URL, where this is not known."""
        with suppress(PermissionError):
            return self._folder is not None and not _batches(self._folder / "offsets")
        return False

    def begin(self, known: Mapping[str, Any]) -> None:
        """Record that the tables of the query had rows before its first batch.

        Args:
            known: what the tables had then, as JSON.

        Raises:
            HeadroomError: the folder cannot be written.
        """
        if self._folder is None:
            return
        file = self._folder / _BEGUN
        try:
            self._folder.mkdir(parents=True, exist_ok=True)
            file.write_text(json.dumps(known), encoding="utf-8")
            sync_path(file)
            sync_path(self._folder)
        except OSError as error:
            raise HeadroomError(str(file), f"cannot be written ({error.strerror})", _REMEDY) from None

    def begun(self) -> Mapping[str, Any] | None:
        """Return what the tables of the query had before its first batch; None if they had no rows."""
        if self._folder is None:
            return None
        with suppress(FileNotFoundError, NotADirectoryError, PermissionError):
            return _object((self._folder / _BEGUN).read_bytes())
        return None

    def _faults(self, folder: Path) -> Iterator[tuple[str, str]]:
        """Yield damaged files with their fault."""
        if not folder.is_dir():
            yield folder.name, "is a file, and must be a folder"
            return
        if (folder / _BEGUN).exists():
            yield from _fault(folder, _BEGUN, _object)
        for name in ("offsets", "commits"):
            for batch in _batches(folder / name):
                yield from _fault(folder, f"{name}/{batch}", _lines)
        for file in sorted((folder / "sources").glob("*/[!.]*")):
            yield from _fault(folder, str(file.relative_to(folder)), _lines)
        for part in (*(folder / name for name in ("offsets", "commits", "sources")), *(folder / "sources").glob("*")):
            if os.path.lexists(part) and not part.is_dir():
                yield str(part.relative_to(folder)), "is a file, and must be a folder"
        planned, written = _batches(folder / "offsets"), _batches(folder / "commits")
        if planned or written or os.path.lexists(folder / _METADATA):
            yield from _fault(folder, _METADATA, _identity)
        if written and written[-1] not in planned:
            # With the number of a written batch, a new one would pass for written.
            yield f"offsets/{written[-1]}", "is missing"
        elif planned and planned[-1] > 0 and planned[-1] - 1 not in planned:
            yield f"offsets/{planned[-1] - 1}", "is missing"
        elif planned:
            contradiction = self._contradiction(_progress(folder, planned[-1], written))
            if contradiction:
                yield f"offsets/{planned[-1]}", contradiction


def _batches(folder: Path) -> list[int]:
    """Return the numbers of the batches in a folder, in order; none if it is not there."""
    with suppress(FileNotFoundError, NotADirectoryError):
        return sorted(int(name) for name in os.listdir(folder) if _BATCH.fullmatch(name))
    return []


def _fault(folder: Path, name: str, parse: Callable[[bytes], object]) -> Iterator[tuple[str, str]]:
    """Yield a file if it cannot be read as Spark reads it."""
    try:
        content = (folder / name).read_bytes()
        if not content:
            yield name, "is empty"
        else:
            parse(content)
    except FileNotFoundError:
        # A running query has deleted it, because later batches are done. Only the metadata is never deleted.
        if name == _METADATA:
            yield name, "is missing"
    except PermissionError:
        raise
    except OSError as error:
        yield name, f"cannot be read ({error.strerror})"
    except (ValueError, RecursionError):
        yield name, "is cut off, or garbled"


def _object(content: bytes) -> Mapping[str, Any]:
    """Return a JSON object.

    Raises:
        ValueError: it is none.
    """
    value = json.loads(content)
    if not isinstance(value, dict):
        raise ValueError("not an object")
    return value


def _identity(content: bytes) -> str:
    """Return the id of the stream; see ``_object``."""
    stream_id = _object(content).get("id")
    if not isinstance(stream_id, str) or not stream_id:
        raise ValueError("no id")
    return stream_id


def _lines(content: bytes) -> list[Mapping[str, Any]]:
    """Return the objects of a file of batches: a version, and one object per line, where ``-`` is an empty one.

    Raises:
        ValueError: it is none.
    """
    version, *lines = content.removeprefix(b"\0").split(b"\n")
    if not _VERSION.fullmatch(version) or not lines:
        raise ValueError("no version, or no content")
    return [{} if line == b"-" else _object(line) for line in lines]


def _progress(folder: Path, planned: int, written: list[int]) -> Progress:
    metadata = (folder / _METADATA).read_text(encoding="utf-8")
    offsets = _lines((folder / "offsets" / str(planned)).read_bytes())
    done = written[-1] if written else None
    return Progress(metadata, _identity(metadata.encode()), planned, done, offsets[-1])

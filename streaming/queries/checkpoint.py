"""StoredCheckpoint of a streaming query: how far it has read, and its replacement where its source has changed."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from py4j.protocol import Py4JJavaError
from pyspark.sql import SparkSession

# Endings of a checkpoint in whose place a new one begins. A checkpoint is renamed before it is removed, so that a crash
# leaves all of it or nothing.
_REPLACED, _REMOVED = ".replaced", ".removed"


@dataclass(frozen=True)
class Position:
    """How far a query has read its source.

    Attributes:
        source: what its source continues from, as the source wrote it.
        planned: end of the last planned batch in the same form; ``source`` unless that batch is unfinished.
        read_ms: when the last finished batch was planned, epoch milliseconds; None if no batch is finished.
        is_finished: whether the last planned batch is finished.
    """

    source: Mapping[str, Any]
    planned: Mapping[str, Any]
    read_ms: int | None
    is_finished: bool


class StoredCheckpoint:
    """Folder of a query with one source. Spark writes it; its format is internal to Spark.

    Args:
        spark: session.
        location: folder or URL.
    """

    def __init__(self, spark: SparkSession, location: str) -> None:
        context: Any = spark.sparkContext
        self._jvm = context._jvm
        self._path = self._jvm.org.apache.hadoop.fs.Path(location)
        self._files = self._path.getFileSystem(context._jsc.hadoopConfiguration())

    def position(self) -> Position | None:
        """Return how far the query has read; None if it has read nothing, or the checkpoint cannot be read.

        Until a new checkpoint has its first batch, the one that it replaces counts.
        """
        position = self._position(self._path)
        replaced = self._path.suffix(_REPLACED)
        if position is None:
            return self._position(replaced)
        self._files.delete(replaced, True)
        return position

    def replace(self) -> None:
        """Make room for a new checkpoint, whose start follows from the position of this one."""
        # After a crash the new one may have begun without a batch.
        if self._position(self._path) is not None:
            self._move(_REPLACED)
        else:
            self._files.delete(self._path, True)

    def remove(self) -> None:
        """Remove the checkpoint: the query starts like a new one."""
        self._move(_REMOVED)
        for ending in (_REPLACED, _REMOVED):
            self._files.delete(self._path.suffix(ending), True)

    def _move(self, ending: str) -> None:
        target = self._path.suffix(ending)
        self._files.delete(target, True)
        self._files.rename(self._path, target)

    def _position(self, root: Any) -> Position | None:
        try:
            planned, finished = self._newest(root, "offsets"), self._newest(root, "commits")
            if planned is None:
                return None
            _, end = _batch(self._text(root, f"offsets/{planned}"))
            if finished is None:
                return Position(_last_line(self._text(root, "sources/0/0")), end, None, False)
            read_ms, source = _batch(self._text(root, f"offsets/{min(planned, finished)}"))
            return Position(source, end, read_ms, finished >= planned)
        except (Py4JJavaError, ValueError, LookupError, TypeError, AttributeError):
            return None

    def _newest(self, root: Any, folder: str) -> int | None:
        """Return the highest number among the files of a folder; None if there is none."""
        path = self._child(root, folder)
        if not self._files.exists(path):
            return None
        names = [str(status.getPath().getName()) for status in self._files.listStatus(path)]
        return max((int(name) for name in names if name.isdigit()), default=None)

    def _text(self, root: Any, file: str) -> str:
        stream = self._files.open(self._child(root, file))
        try:
            return str(self._jvm.org.apache.commons.io.IOUtils.toString(stream, "UTF-8"))
        finally:
            stream.close()

    def _child(self, root: Any, name: str) -> Any:
        return self._jvm.org.apache.hadoop.fs.Path(root, name)


def _batch(text: str) -> tuple[int, dict[str, Any]]:
    """Return the time of a planned batch, epoch milliseconds, and the end of its source."""
    _, metadata, *_ = text.splitlines()
    return int(json.loads(metadata)["batchTimestampMs"]), _last_line(text)


def _last_line(text: str) -> dict[str, Any]:
    parsed: dict[str, Any] = json.loads(text.splitlines()[-1])
    return parsed

"""Checkpoint of a streaming query: how far it has read, and its removal once its source is another one."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from py4j.protocol import Py4JJavaError
from pyspark.sql import SparkSession

# Renamed first, so that a crash leaves either the whole checkpoint or none.
_REMOVED = ".removed"


@dataclass(frozen=True)
class Position:
    """How far a query has read its source.

    Attributes:
        source: what its source continues from, as the source wrote it.
        planned: end of the last planned batch in the same form; ``source`` unless that batch is unfinished.
        read_ms: when the last finished batch was planned, epoch milliseconds; None if no batch is finished.
    """

    source: Mapping[str, Any]
    planned: Mapping[str, Any]
    read_ms: int | None


class Checkpoint:
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
        """Return how far the query has read; None if it has read nothing, or the checkpoint cannot be read."""
        try:
            planned, finished = self._newest("offsets"), self._newest("commits")
            if planned is None:
                return None
            _, end = _batch(self._text(f"offsets/{planned}"))
            if finished is None:
                return Position(_last_line(self._text("sources/0/0")), end, None)
            read_ms, source = _batch(self._text(f"offsets/{min(planned, finished)}"))
            return Position(source, end, read_ms)
        except (Py4JJavaError, ValueError, LookupError, TypeError, AttributeError):
            return None

    def remove(self) -> None:
        """Remove the checkpoint: the query starts like a new one."""
        removed = self._path.suffix(_REMOVED)
        self._files.delete(removed, True)
        self._files.rename(self._path, removed)
        self._files.delete(removed, True)

    def _newest(self, folder: str) -> int | None:
        """Return the highest number among the files of a folder; None if there is none."""
        path = self._child(folder)
        if not self._files.exists(path):
            return None
        names = [str(status.getPath().getName()) for status in self._files.listStatus(path)]
        return max((int(name) for name in names if name.isdigit()), default=None)

    def _text(self, file: str) -> str:
        stream = self._files.open(self._child(file))
        try:
            return str(self._jvm.org.apache.commons.io.IOUtils.toString(stream, "UTF-8"))
        finally:
            stream.close()

    def _child(self, name: str) -> Any:
        return self._jvm.org.apache.hadoop.fs.Path(self._path, name)


def _batch(text: str) -> tuple[int, dict[str, Any]]:
    """Return the time of a planned batch, epoch milliseconds, and the end of its source."""
    _, metadata, *_ = text.splitlines()
    return int(json.loads(metadata)["batchTimestampMs"]), _last_line(text)


def _last_line(text: str) -> dict[str, Any]:
    parsed: dict[str, Any] = json.loads(text.splitlines()[-1])
    return parsed

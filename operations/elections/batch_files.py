"""Files of the batches of an election plan, for ``kafka-leader-election``."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from headroom.operations.files import read_text
from headroom.planning.elections.election_file import parse_request, request_json
from headroom.planning.elections.planner import Batch
from headroom.schemas.errors import HeadroomError
from headroom.schemas.keys import TopicPartition

_FILE = "batch-{:03d}.json"


def write_batches(folder: Path, batches: Sequence[Batch]) -> list[Path]:
    """Write one file per batch for ``kafka-leader-election --path-to-json-file``, and return the files.

    Raises:
        HeadroomError: the folder cannot be written to, or contains batches of another plan.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
        if any(folder.glob("batch-*.json")):
            raise HeadroomError(str(folder), "contains batches already", "Remove them, or name another folder.")
        files = [folder / _FILE.format(number) for number in range(1, len(batches) + 1)]
        for file, batch in zip(files, batches, strict=True):
            file.write_text(request_json(batch.partitions) + "\n", encoding="utf-8")
    except OSError as error:
        raise HeadroomError(str(folder), f"cannot be written to ({error.strerror})", "Name another folder.") from None
    return files


def read_batch(file: Path) -> frozenset[TopicPartition]:
    """Return the partitions in a file for ``kafka-leader-election --path-to-json-file``.

    Raises:
        HeadroomError: the file cannot be read, or is no such file.
    """
    return frozenset(parse_request(read_text(file), str(file)))

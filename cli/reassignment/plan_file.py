"""The file of ``kafka-reassign-partitions.sh --reassignment-json-file``: written from running reassignments."""

from __future__ import annotations

import json
import os
import tempfile
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from cluster.reassignment.running import Reassignment
from schemas.errors import HeadroomError

_VERSION = 1


def plan_json(reassignments: Iterable[Reassignment]) -> str:
    """Return the text of the file, in which every partition has its target replicas.

    Source: Kafka 4.3.1, ``ReassignPartitionsCommand.parsePartitionReassignmentData``.
    """
    partitions = [{"topic": r.topic, "partition": r.partition, "replicas": list(r.target)} for r in reassignments]
    return json.dumps({"version": _VERSION, "partitions": partitions}, separators=(",", ":")) + "\n"


def is_plan(text: str) -> bool:
    """Return whether a text is such a file: an object of partitions, each with its replicas, and perhaps a version."""
    try:
        plan = json.loads(text)
    # The second of a text that nests more deeply than Python reads.
    except (ValueError, RecursionError):
        return False
    # Kafka takes a file without a version for one of version 1.
    if not isinstance(plan, dict) or {"version": _VERSION, **plan}.keys() != {"version", "partitions"}:
        return False
    entries = plan["partitions"]
    return plan.get("version", _VERSION) == _VERSION and isinstance(entries, list) and all(map(_is_entry, entries))


def _is_entry(entry: Any) -> bool:
    return (
        isinstance(entry, dict)
        and isinstance(entry.get("topic"), str)
        and isinstance(entry.get("partition"), int)
        and isinstance(entry.get("replicas"), list)
    )


def write_plan(path: Path, reassignments: Iterable[Reassignment]) -> None:
    """Write the file, whole or not at all; one that is there is replaced only if it is such a file too.

    Raises:
        HeadroomError: something else is there, or it cannot be written.
    """
    try:
        if path.exists() and not (path.is_file() and is_plan(path.read_text(encoding="utf-8"))):
            raise _not_a_plan(path)
        _replace(path, plan_json(reassignments))
    except UnicodeDecodeError:
        raise _not_a_plan(path) from None
    except OSError as error:
        raise HeadroomError(str(path), f"cannot be written ({error.strerror})", "Name another file.") from None


def _not_a_plan(path: Path) -> HeadroomError:
    return HeadroomError(
        str(path), "is there and holds something other than a reassignment plan", "Name another file, or remove it."
    )


def _replace(path: Path, text: str) -> None:
    # A tool that reads it meanwhile sees the earlier file or this one, never a part of one.
    descriptor, name = tempfile.mkstemp(dir=path.resolve().parent, prefix=f".{path.name}.")
    try:
        with os.fdopen(descriptor, "w", encoding="utf-8") as output:
            output.write(text)
        # As any file that a person writes, not for its owner alone as temporary files are.
        mask = os.umask(0)
        os.umask(mask)
        os.chmod(name, 0o666 & ~mask)
        os.replace(name, path.resolve())
    except BaseException:
        Path(name).unlink(missing_ok=True)
        raise

"""The file of ``kafka-reassign-partitions.sh --reassignment-json-file``: written from running reassignments."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

from headroom.cluster.live.running import Reassignment
from headroom.operations.files import read_bytes, read_text, write_own
from headroom.operations.progress import OnText
from headroom.planning.reassignments.plan import (
    PLAN_VERSION,
    ReassignmentPlan,
    TargetAssignment,
    given_plan,
    plan_text,
)
from headroom.schemas.errors import HeadroomError
from headroom.schemas.quantities import is_id
from headroom.schemas.text.json_text import decode_text, parse_json

_WHAT = "a reassignment plan"


def running_plan_text(reassignments: Iterable[Reassignment]) -> str:
    """Return the text of the plan file, in which every partition has its target replicas.

    Source: Kafka 4.3.1, ``ReassignPartitionsCommand.parsePartitionReassignmentData``.
    """
    return plan_text(TargetAssignment(r.name, r.target) for r in reassignments)


def is_plan(text: str) -> bool:
    """Return whether a text is a plan file: an object with partitions, their replicas, and optionally a version."""
    try:
        plan = parse_json(text)
    except ValueError:
        return False
    # Kafka reads a file without a version as version 1.
    if not isinstance(plan, dict) or {"version": PLAN_VERSION, **plan}.keys() != {"version", "partitions"}:
        return False
    entries = plan["partitions"]
    return (
        plan.get("version", PLAN_VERSION) == PLAN_VERSION and isinstance(entries, list) and all(map(_is_entry, entries))
    )


def _is_entry(entry: Any) -> bool:
    return (
        isinstance(entry, dict)
        and isinstance(entry.get("topic"), str)
        and is_id(entry.get("partition"))
        and isinstance(entry.get("replicas"), list)
        and all(map(is_id, entry["replicas"]))
    )


def read_plan(file: Path, on_note: OnText) -> ReassignmentPlan:
    """Return the plan in a file, or the proposal in the output of ``kafka-reassign-partitions.sh --generate``.

    Args:
        file: the file.
        on_note: gets what the operator should know of the file.

    Raises:
        HeadroomError: the file cannot be read, or is no plan.
    """
    plan, is_generated = given_plan(read_text(file), str(file))
    if is_generated:
        on_note(f"{file} is the output of --generate: its proposal counts, not its current replicas.")
    return plan


def write_plan(path: Path, reassignments: Iterable[Reassignment]) -> None:
    """Write the plan file of running reassignments; ``write_plan_text`` says when it is refused."""
    write_plan_text(path, running_plan_text(reassignments))


def write_plan_text(path: Path, text: str) -> None:
    """Write a plan file atomically; an existing file is replaced only if it is a plan file too.

    Raises:
        HeadroomError: another kind of file exists there, or the file cannot be written.
    """
    write_own(path, text, _is_plan_file, _WHAT)


def require_plan_or_none(path: Path) -> None:
    """Require that a path is free or has a plan file.

    Raises:
        HeadroomError: another kind of file exists there.
        OSError: it cannot be read.
    """
    if path.exists() and not (path.is_file() and _is_plan_file(read_bytes(path))):
        raise HeadroomError(str(path), f"exists and is not {_WHAT}", "Name another file, or remove it.")


def _is_plan_file(content: bytes) -> bool:
    try:
        return is_plan(decode_text(content))
    except ValueError:
        return False

"""Plan files as batches of one plan: each file is a batch."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from headroom.operations.progress import OnText
from headroom.operations.reassignments.plan_file import read_plan
from headroom.planning.reassignments.plan import ReassignmentPlan
from headroom.planning.reassignments.run.orders_first import require_orders_only
from headroom.schemas.errors import HeadroomError

_PATTERN = "batch-*.json"


def read_batches(files: Sequence[Path], folder: Path | None, on_note: OnText) -> list[ReassignmentPlan]:
    """Return the plans of some files, and of the batch files of a folder, in the order in which they are to move.

    A partition may be in a second file if the first one only reorders its replicas, as the first batch of a drained
    broker does.

    Args:
        files: plan files, as written by ``headroom plan`` or for ``kafka-reassign-partitions.sh``.
        folder: folder with batch files (``headroom plan --batches-dir``); None if there is none.
        on_note: gets what the operator should know of the files.

    Raises:
        HeadroomError: a file cannot be read or is no plan, or a partition is in two files in another way.
    """
    # By length first: batch-10 follows batch-9, also where numbers have no leading zeros.
    in_folder = (
        sorted(folder.glob(_PATTERN), key=lambda file: (len(file.name), file.name)) if folder is not None else ()
    )
    paths = [*files, *in_folder]
    if not paths:
        subject = str(folder) if folder is not None else "the plan"
        raise HeadroomError(subject, f"has no file {_PATTERN}", "Name a plan file, or a folder with batch files.")
    batches = [read_plan(file, on_note) for file in paths]
    require_orders_only(batches)
    return batches


def whole_plan(batches: Sequence[ReassignmentPlan]) -> ReassignmentPlan:
    """Return the batches as one plan, with the last target replicas of each partition."""
    targets = {assignment.name: assignment for batch in batches for assignment in batch}
    return ReassignmentPlan(tuple(targets.values()))

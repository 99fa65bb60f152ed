"""Files of the batches of a plan, for ``kafka-reassign-partitions.sh``."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

from headroom.operations.files import replace_file
from headroom.operations.reassignments.plan_file import require_plan_or_none
from headroom.planning.reassignments.plan import ReassignmentPlan, plan_text
from headroom.schemas.errors import HeadroomError
from headroom.schemas.text.json_text import decode_text

ROLLBACK_FILE = "rollback.json"
_BATCH_FILE = re.compile(r"batch-\d+\.json")


def write_batch_files(folder: Path, batches: Sequence[ReassignmentPlan], rollback: ReassignmentPlan) -> list[Path]:
    """Write one file per batch and ``rollback.json``, each atomically, and return the files of the batches.

    Files of earlier plans are replaced, except for another rollback: it may be the only way back from a plan that is
    carried out already.

    Raises:
        HeadroomError: a file there is no plan, belongs to an earlier plan with more batches, or restores other
            replicas, and nothing is written; or the folder cannot be written to.
    """
    digits = max(2, len(str(len(batches))))
    files = [folder / f"batch-{number:0{digits}d}.json" for number in range(1, len(batches) + 1)]
    back, text = folder / ROLLBACK_FILE, plan_text(rollback)
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for file in (*files, back):
            require_plan_or_none(file)
        if back.exists() and decode_text(back.read_bytes()) != text:
            raise HeadroomError(str(back), "restores the replicas of another plan", "Name another folder.")
        others = sorted({path for path in folder.iterdir() if _BATCH_FILE.fullmatch(path.name)}.difference(files))
        if others:
            raise HeadroomError(str(others[0]), "is a batch of another plan", "Remove it, or name another folder.")
        # The way back exists before anything that could be carried out.
        replace_file(back, text)
        for file, batch in zip(files, batches, strict=True):
            replace_file(file, plan_text(batch))
    except OSError as error:
        raise HeadroomError(str(folder), f"cannot be written to ({error.strerror})", "Name another folder.") from None
    return files

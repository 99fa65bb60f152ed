"""Options of ``headroom plan`` that cut a plan into batches, and their files."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path

import click

from cli.common.options import option_group
from cli.common.parameters import Quantity, Rate, WholeNumber, WindowOfDay
from operations.files import replace_file
from operations.reassignments.plan_file import require_plan_or_none
from planning.elections.quiet_hours import DailyWindow
from planning.reassignments.batches.batching import BatchPolicy
from planning.reassignments.plan import ReassignmentPlan, plan_text
from schemas.errors import HeadroomError
from schemas.quantities import QuantityError
from schemas.text.json_text import decoded

AUTO = "auto"
ROLLBACK_FILE = "rollback.json"
_BATCH_FILE = re.compile(r"batch-\d+\.json")


class BatchNumber(Quantity["int | str"]):
    """A number of batches, or ``auto``."""

    name = "batches"

    def read(self, text: str) -> int | str:
        """Return the number, or ``auto``."""
        if text == AUTO:
            return AUTO
        try:
            return WholeNumber(least=1).read(text)
        except QuantityError as error:
            raise QuantityError(error.rule, "Write a number of at least 1, or auto.") from None


@dataclass(frozen=True)
class BatchingOptions:
    """Values of the options; None where one was not given.

    Attributes:
        batches: number of batches, or ``auto``.
        max_throttle: largest throttle, bytes per second.
        window: daily window in which batches run.
        batches_dir: folder for the files.
    """

    batches: int | str | None
    max_throttle: int | None
    window: DailyWindow | None
    batches_dir: Path | None

    @property
    def given(self) -> bool:
        """Whether any of them was given."""
        return any(value is not None for value in (self.batches, self.max_throttle, self.window, self.batches_dir))

    def policy(
        self, margin_ratio: float, throttle: float | None, finish_within_s: float | None, capacity: float | None
    ) -> BatchPolicy:
        """Return the limits of batches. Without any of the options, the plan is one batch.

        Args:
            margin_ratio: factor between the required rate and the throttle.
            throttle: throttle that was given for the whole plan, bytes per second; None if none was.
            finish_within_s: longest time for all batches together, seconds; None without a limit.
            capacity: replication traffic that a broker can carry, bytes per second; None if unknown.
        """
        wanted = self.batches
        if wanted is None:
            wanted = AUTO if self.max_throttle is not None or self.window is not None else 1
        limits = [self.max_throttle if self.max_throttle is not None else throttle]
        if wanted == AUTO:
            limits.append(capacity)
        known = [limit for limit in limits if limit is not None]
        return BatchPolicy(
            batches=None if wanted == AUTO else int(wanted),
            max_throttle_bytes_per_s=min(known, default=None),
            finish_within_s=finish_within_s,
            window_s=None if self.window is None else length_s(self.window),
            margin_ratio=margin_ratio,
        )


_OPTIONS = (
    click.option(
        "--batches",
        type=BatchNumber(),
        metavar="N|auto",
        help="Cut the plan into N batches, or into the fewest that keep --max-throttle, --finish-within and --window.",
    ),
    click.option(
        "--max-throttle", type=Rate(), metavar="RATE", help="Largest throttle; every batch fits it, with the margin."
    ),
    click.option(
        "--window",
        type=WindowOfDay(),
        metavar="TEXT",
        help='Daily window in which batches run, such as "22:00-06:00 Europe/Berlin"; no batch is longer.',
    ),
    click.option(
        "--batches-dir",
        type=click.Path(path_type=Path, file_okay=False),
        metavar="DIR",
        help="Write a file for each batch, and rollback.json, for kafka-reassign-partitions.sh.",
    ),
)


# Decorator of a command, which gets the options as ``batching``.
batching_options = option_group(_OPTIONS, BatchingOptions, "batching")


def length_s(window: DailyWindow) -> float:
    """Return the length of a window in seconds, on a day without a change of the clock."""
    day = datetime(2000, 1, 1).date()
    length = datetime.combine(day, window.ends) - datetime.combine(day, window.begins)
    return (length % timedelta(days=1)).total_seconds()


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
        if back.exists() and decoded(back.read_bytes()) != text:
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

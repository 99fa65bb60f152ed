"""Files that ``headroom plan`` has written, and the command that carries them out."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from headroom.alerts.recommendations.commands import headroom_reassign_run
from headroom.cli.common.output import echo, json_text
from headroom.operations.files import is_object_with, write_own
from headroom.operations.plans.batch_files import ROLLBACK_FILE
from headroom.operations.plans.result import PlanResult
from headroom.schemas.text import shell_quoted


@dataclass(frozen=True)
class WrittenFiles:
    """Files of a plan; None where they were not asked for.

    Attributes:
        batches_dir: folder with a file for each batch.
        save_plan: file of the whole plan.
        config: settings file that the next command names; the default one if None.
        log_dirs_throttle: rate of moves between log directories that was asked for, bytes per second.
        max_throttle: largest throttle that was asked for, bytes per second.
    """

    batches_dir: Path | None
    save_plan: Path | None
    config: str | None = None
    log_dirs_throttle: int | None = None
    max_throttle: int | None = None

    def next_commands(self, result: PlanResult) -> list[str]:
        """Return the commands that carry out what was written; none if it does not fit, or its throttle is unknown."""
        if result.fits is False or result.in_flight:
            return []
        return list(self._commands(result))

    def _commands(self, result: PlanResult) -> Iterator[str]:
        cut, throttle = result.cut, result.estimate.throttle_bytes_per_s
        is_one = (cut is None or cut.chosen.batches <= 1) and result.fits_in_one is not False
        if self.batches_dir is not None:
            plan = f"--batches-dir {shell_quoted(str(self.batches_dir))}"
            throttle = throttle if cut is None else cut.chosen.throttle_bytes_per_s
        elif self.save_plan is not None and is_one:
            plan = shell_quoted(str(self.save_plan))
            throttle = self._throttle_in_one(result)
        else:
            return
        copies = bool(result.estimate.changes.gaining)
        # A throttle that covers only known write rates is none to run with.
        if copies and (throttle is None or result.estimate.unknown_rates):
            return
        rates = {"--throttle": throttle if copies else None, "--log-dirs-throttle": self.log_dirs_throttle}
        yield headroom_reassign_run(plan, rates, self.config)

    def _throttle_in_one(self, result: PlanResult) -> int | None:
        """Return the throttle of the plan in one file; None if none is enough, or only one above --max-throttle.

        The file gives up no leads first. So a throttle of the batches may be too low for it.
        """
        throttle, cut = result.estimate.throttle_bytes_per_s, result.cut
        if throttle is None or (self.max_throttle is not None and throttle > self.max_throttle):
            return None
        of_batch = None if cut is None else cut.chosen.throttle_bytes_per_s
        return throttle if of_batch is None else max(throttle, of_batch)


def print_written(written: WrittenFiles, result: PlanResult) -> None:
    """Print what was written, and the commands that carry it out."""
    if written.batches_dir is not None:
        number = len(result.batches)
        echo(f"Wrote {number:,} batch file{'' if number == 1 else 's'} and {ROLLBACK_FILE} to {written.batches_dir}.")
    if written.save_plan is not None:
        echo(f"Wrote the plan to {written.save_plan}.")
    for command in written.next_commands(result):
        echo(f"To carry it out (without --execute it shows the steps): {command}")


def written_json(written: WrittenFiles, result: PlanResult) -> dict[str, Any]:
    """Return the commands that carry out what was written as keys of the JSON object."""
    return {"next_commands": written.next_commands(result)}


def write_result(file: Path, result: Mapping[str, Any]) -> None:
    """Write the result to a file, as ``--format json`` prints it.

    Raises:
        HeadroomError: the file cannot be written, or another kind of file exists there.
    """
    write_own(file, f"{json_text(result)}\n", _is_result, "the result of a plan")


def _is_result(content: bytes) -> bool:
    return is_object_with(content, ("batches", "rollback", "fingerprint"))

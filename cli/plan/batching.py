"""Options of ``headroom plan`` that cut a plan into batches."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import click

from headroom.cli.common.options import option_group
from headroom.cli.common.parameters import Quantity, Rate, WholeNumber, WindowOfDay
from headroom.operations.plans.estimating import AUTO, BatchingRequest
from headroom.schemas.quantities import QuantityError


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
class BatchingOptions(BatchingRequest):
    """Values of the options; None where one was not given.

    Attributes:
        batches_dir: folder for the files.
    """

    batches_dir: Path | None = None

    @property
    def is_given(self) -> bool:
        """Whether any of them was given."""
        return any(value is not None for value in (self.batches, self.max_throttle, self.window, self.batches_dir))


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

"""``headroom maintain --repair``: repair of tables with damaged files, and of checkpoints."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass

from headroom.cli.common.output import echo, print_table
from headroom.schemas.config import StoreSettings
from headroom.schemas.errors import HeadroomError
from headroom.schemas.tables import ALL_TABLES
from headroom.streaming.delta.damage import UNKNOWN, UNREADABLE_REMEDY, damages
from headroom.streaming.delta.query import table_url
from headroom.streaming.durability.checkpoint import Checkpoint
from headroom.streaming.durability.mend import mend
from headroom.streaming.durability.query_checkpoints import checkpoints_of
from headroom.streaming.store.single_instance import exclusive_jobs

# Begins the names of checkpoints in the output.
_CHECKPOINTS = "_checkpoints/"
# A job that has just started repairs its checkpoints itself: on a busy machine within some two minutes.
_JOB_REPAIRS_S = 120.0
_POLL_S = 0.5


@dataclass(frozen=True)
class Repair:
    """Repair of one damaged file.

    Attributes:
        table: path of the table below ``store.path``, or ``_checkpoints/`` and the name of a query.
        file: path of the file below the table.
        fault: description of the damage.
        lost: rows or metadata that are lost with the file.
        mended: whether the table is readable without the file.
        error: why it could not be repaired; None if it was, or if a job uses it.
        remedy: what to do then.
    """

    table: str
    file: str
    fault: str
    lost: str
    mended: bool
    error: str | None = None
    remedy: str | None = None


def repair_store(store: StoreSettings) -> list[Repair]:
    """Repair all tables, then the checkpoints, and return one entry per damaged file.

    Args:
        store: section ``[store]``.
    """
    return [*_repair_tables(store.path), *_repair_checkpoints(store)]


def _repair_checkpoints(store: StoreSettings) -> list[Repair]:
    repairs, until_s = [], time.monotonic() + _JOB_REPAIRS_S
    for name, job, checkpoint in checkpoints_of(store):
        damage = checkpoint.damage()
        if damage is None:
            continue
        place = f"{_CHECKPOINTS}{name}"
        if not damage.can_be_mended:
            repairs.append(
                Repair(place, damage.file, damage.fault, damage.lost, False, damage.fault, UNREADABLE_REMEDY)
            )
            continue
        try:
            # A query that runs would go on with the files that are moved aside.
            with exclusive_jobs(store, [job]):
                checkpoint.mend()
                mended = True
        except HeadroomError:
            echo(f"headroom: checkpoint {name} is in use. Waiting for its job to repair it.", err=True)
            mended = _is_repaired_by_job(checkpoint, until_s)
        repairs.append(Repair(place, damage.file, damage.fault, damage.lost, mended))
    return repairs


def _is_repaired_by_job(checkpoint: Checkpoint, until_s: float) -> bool:
    """Wait for the job of a checkpoint to repair it, and return whether it has. A query does so when it starts."""
    while checkpoint.damage() is not None:
        if time.monotonic() >= until_s:
            return False
        time.sleep(_POLL_S)
    return True


def _repair_tables(store_path: str) -> list[Repair]:
    repairs: list[Repair] = []
    for table in ALL_TABLES:
        location = table_url(store_path, table.path)
        before = damages(location, thorough=True)
        try:
            mended = mend(location) if before else []
        except HeadroomError as error:
            # Texts of faults may differ from reading to reading.
            left = {one.file for one in damages(location, thorough=True)}
            repairs += [
                Repair(table.path, one.file, one.fault, one.lost, True)
                if one.file not in left
                else Repair(table.path, one.file, one.fault, one.lost, False, error.rule, error.remedy)
                for one in before
            ]
        else:
            repairs += [Repair(table.path, one.file, one.fault, one.lost, True) for one in mended]
    return repairs


def print_repairs(repairs: Sequence[Repair]) -> None:
    """Print one row per damaged file."""
    if repairs:
        columns = ("table", "file", "fault", "lost", "mended")
        print_table("", columns, [(o.table, o.file, o.fault, o.lost, "yes" if o.mended else "no") for o in repairs])
    else:
        echo("No table and no checkpoint is damaged.")


def print_failed(repairs: Sequence[Repair]) -> None:
    """Print the tables that could not be repaired, on standard error."""
    failed = {one.table: one for one in repairs if not one.mended}
    for table, repair in sorted(failed.items()):
        if repair.lost == UNKNOWN:
            text = f"is not checked: {repair.file} {repair.fault}. {UNREADABLE_REMEDY}"
        elif table.startswith(_CHECKPOINTS):
            text = "is in use and still damaged: a query repairs its checkpoint when it starts. Restart that process."
        else:
            text = f"cannot be repaired: {repair.error}. {repair.remedy}"
        echo(f"headroom: {table} {text}", err=True)

"""``headroom maintain --repair``: repair of tables with damaged files, and of checkpoints."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from cli.common.output import echo, print_table
from cli.watch.single_instance import exclusive_jobs
from schemas.config import StoreSettings
from schemas.errors import HeadroomError
from schemas.tables import ALL_TABLES
from streaming.delta.damage import damages
from streaming.delta.query import table_url
from streaming.durability.mend import mend
from streaming.durability.query_checkpoints import checkpoints_of

# Begins the names of checkpoints in the output.
_CHECKPOINTS = "_checkpoints/"


@dataclass(frozen=True)
class Repair:
    """Repair of one damaged file.

    Attributes:
        table: path of the table below ``store.path``, or ``_checkpoints/`` and the name of a query.
        file: path of the file below the table.
        fault: description of the damage.
        lost: rows or metadata that are lost with the file.
        mended: whether the table is readable without the file.
    """

    table: str
    file: str
    fault: str
    lost: str
    mended: bool


def repair_store(store: StoreSettings) -> list[Repair]:
    """Repair all tables, then the checkpoints, and return one entry per damaged file.

    Args:
        store: section ``[store]``.
    """
    return [*_repair_tables(store.path), *_repair_checkpoints(store)]


def _repair_checkpoints(store: StoreSettings) -> list[Repair]:
    repairs = []
    for name, job, checkpoint in checkpoints_of(store):
        damage = checkpoint.damage()
        if damage is None:
            continue
        try:
            # A query that uses it repairs it itself when it starts again.
            with exclusive_jobs(store, [job]):
                checkpoint.mend()
                mended = True
        except HeadroomError:
            mended = False
        repairs.append(Repair(f"{_CHECKPOINTS}{name}", damage.file, damage.fault, damage.lost, mended))
    return repairs


def _repair_tables(store_path: str) -> list[Repair]:
    repairs: list[Repair] = []
    for table in ALL_TABLES:
        location = table_url(store_path, table.path)
        before = damages(location, thorough=True)
        try:
            found = mend(location) if before else []
        except HeadroomError:
            left = damages(location)
            repairs += [Repair(table.path, one.file, one.fault, one.lost, one not in left) for one in before]
        else:
            repairs += [Repair(table.path, one.file, one.fault, one.lost, True) for one in found]
    return repairs


def print_repairs(repairs: Sequence[Repair]) -> None:
    """Print one row per damaged file."""
    if repairs:
        columns = ("table", "file", "fault", "lost", "mended")
        print_table("", columns, [(o.table, o.file, o.fault, o.lost, "yes" if o.mended else "no") for o in repairs])
    else:
        echo("No table and no checkpoint is damaged.")


def print_failed(repairs: Sequence[Repair]) -> bool:
    """Print the tables that could not be repaired, on standard error, and return whether there are any."""
    failed = sorted({one.table for one in repairs if not one.mended})
    for table in failed:
        if table.startswith(_CHECKPOINTS):
            remedy = "is in use: its query repairs it at its next start. Restart that process"
        else:
            remedy = "cannot be repaired: move its folder away, and an empty table is created"
        echo(f"headroom: {table} {remedy}.", err=True)
    return bool(failed)

"""``headroom maintain --repair``: repair of tables with damaged files."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from cli.common.output import echo, print_table
from schemas.errors import HeadroomError
from schemas.tables import TABLES
from streaming.delta.damage import damages, mend
from streaming.delta.query import table_url


@dataclass(frozen=True)
class Repair:
    """Repair of one damaged file.

    Attributes:
        table: path of the table below ``store.path``.
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


def repair_tables(store_path: str) -> list[Repair]:
    """Repair all tables, and return one entry per damaged file.

    Args:
        store_path: ``store.path``, a folder or URL.
    """
    repairs: list[Repair] = []
    for table in TABLES:
        location = table_url(store_path, table.path)
        before = damages(location)
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
        echo("No table is damaged.")


def print_failed(repairs: Sequence[Repair]) -> bool:
    """Print the tables that could not be repaired, on standard error, and return whether there are any."""
    failed = sorted({one.table for one in repairs if not one.mended})
    for table in failed:
        echo(f"headroom: {table} cannot be repaired: move its folder away, and an empty table is created.", err=True)
    return bool(failed)

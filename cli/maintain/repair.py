"""``headroom maintain --repair``: repair of tables with damaged files."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass

from cli.common.output import echo, print_json_line, print_table
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


def show_repairs(repairs: Sequence[Repair], output_format: str) -> int:
    """Print repairs, and return the exit code: 1 if a file could not be repaired."""
    failed = [one for one in repairs if not one.mended]
    if output_format == "json":
        print_json_line([asdict(one) for one in repairs])
    elif repairs:
        columns = ("table", "file", "fault", "lost", "mended")
        print_table("", columns, [(o.table, o.file, o.fault, o.lost, "yes" if o.mended else "no") for o in repairs])
    else:
        echo("No table is damaged.")
    for table in sorted({one.table for one in failed}):
        echo(f"headroom: {table} cannot be repaired: move its folder away, and an empty table is created.", err=True)
    return 1 if failed else 0

"""``headroom maintain --repair``: tables that a disk has damaged, made whole."""

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
    """What was done about one damaged file.

    Attributes:
        table: path of the table below ``store.path``.
        file: path of the file below the table.
        fault: what was wrong with it.
        lost: what is lost with it.
        mended: whether the table is whole without it.
    """

    table: str
    file: str
    fault: str
    lost: str
    mended: bool


def repair_tables(store_path: str) -> list[Repair]:
    """Return what was damaged of all tables, and mend what can be mended.

    Args:
        store_path: ``store.path``: a folder or URL.
    """
    done: list[Repair] = []
    for table in TABLES:
        location = table_url(store_path, table.path)
        before = damages(location)
        try:
            found = mend(location) if before else []
        except HeadroomError:
            left = damages(location)
            done += [Repair(table.path, one.file, one.fault, one.lost, one not in left) for one in before]
        else:
            done += [Repair(table.path, one.file, one.fault, one.lost, True) for one in found]
    return done


def show_repairs(done: Sequence[Repair], output_format: str) -> int:
    """Show repairs, and return the exit code: 1 if something could not be mended."""
    hopeless = [one for one in done if not one.mended]
    if output_format == "json":
        print_json_line([asdict(one) for one in done])
    elif done:
        columns = ("table", "file", "fault", "lost", "mended")
        print_table("", columns, [(o.table, o.file, o.fault, o.lost, "yes" if o.mended else "no") for o in done])
    else:
        echo("No table is damaged.")
    for table in sorted({one.table for one in hopeless}):
        echo(f"headroom: {table} cannot be mended: move its folder away, and an empty table is made.", err=True)
    return 1 if hopeless else 0

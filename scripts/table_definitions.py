"""Adds today's definitions of the tables to the record of every set that ever was, from which tests upgrade tables.

Run it when the definitions have changed: ``python scripts/table_definitions.py``. A table on somebody's disk may have
been made by any set of the record.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable, Sequence
from datetime import date
from pathlib import Path
from typing import Any

_REPOSITORY = Path(__file__).resolve().parent.parent
# As a script, only its own folder is on the path.
sys.path.insert(0, str(_REPOSITORY))

from headroom.schemas.tables import ALL_TABLES, Column, Table  # noqa: E402

RECORD = _REPOSITORY / "tests" / "table_definitions.json"


def definitions(record: Path = RECORD) -> dict[str, list[Table]]:
    """Return all distinct definitions of each table, the newest last, by path of the table."""
    return {path: [_table(path, one) for one in recorded] for path, recorded in _read(record)["definitions"].items()}


def sets(record: Path = RECORD) -> list[list[Table]]:
    """Return the distinct sets of tables that a version had, the newest last."""
    tables = definitions(record)
    return [[tables[path][number] for path, number in one["tables"].items()] for one in _read(record)["sets"]]


def add(tables: Iterable[Table], landed: str, record: Path = RECORD) -> bool:
    """Add a set of definitions to the record, unless it is its last; return whether it was added.

    Args:
        tables: all tables of one version.
        landed: its day, as ``2026-11-21``.
        record: file of the record.
    """
    content = _read(record) if record.exists() else {"sets": [], "definitions": {}}
    numbers = {}
    for table in sorted(tables, key=lambda one: one.path):
        known = content["definitions"].setdefault(table.path, [])
        definition = _definition(table)
        if definition not in known:
            known.append(definition)
        numbers[table.path] = known.index(definition)
    if content["sets"] and content["sets"][-1]["tables"] == numbers:
        return False
    content["sets"].append({"landed": landed, "tables": numbers})
    record.write_text(_text(content), encoding="utf-8")
    return True


def _read(record: Path) -> dict[str, Any]:
    content: dict[str, Any] = json.loads(record.read_text(encoding="utf-8"))
    return content


def _definition(table: Table) -> dict[str, Any]:
    columns = [[column.name, column.type, column.meaning] for column in table.columns]
    keys, partition_by = list(table.keys), list(table.partition_by)
    return {"grain": table.grain, "keys": keys, "partition_by": partition_by, "columns": columns}


def _table(path: str, definition: dict[str, Any]) -> Table:
    columns = tuple(Column(*column) for column in definition["columns"])
    return Table(path, definition["grain"], tuple(definition["keys"]), tuple(definition["partition_by"]), columns)


def _text(content: dict[str, Any]) -> str:
    """Return the record as JSON, with one set or definition a line."""
    of_tables = [
        f"  {json.dumps(path)}: {_lines(texts, '    ')}" for path, texts in sorted(content["definitions"].items())
    ]
    joined = ",\n".join(of_tables)
    return f'{{\n"sets": {_lines(content["sets"], "  ")},\n"definitions": {{\n{joined}\n}}\n}}\n'


def _lines(values: Sequence[Any], indent: str) -> str:
    joined = ",\n".join(f"{indent}{json.dumps(value)}" for value in values)
    return f"[\n{joined}\n{indent[2:]}]"


def main() -> int:
    """Add today's set, and say whether it is new."""
    added = add(ALL_TABLES, date.today().isoformat())
    print(f"{RECORD.relative_to(_REPOSITORY)}: {'a set was added' if added else 'its last set is that of today'}")
    return 0


if __name__ == "__main__":
    sys.exit(main())

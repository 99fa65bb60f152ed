"""The Delta tables told to people, from ``schemas/tables.py`` alone: docs/tables.md."""

from __future__ import annotations

from schemas import tables
from schemas.tables import Table

_INTRODUCTION = """# Tables

All are Delta tables under `store.path`. Any Delta reader takes them; without Spark, for example:

```python
from deltalake import DeltaTable, QueryBuilder

table = DeltaTable("headroom-data/gold/throttle_headroom")
sql = "SELECT tick_ms, broker, role, verdict, headroom_bytes_per_s FROM t ORDER BY tick_ms DESC LIMIT 20"
print(QueryBuilder().register("t", table).execute(sql).read_all())
```

Times are epoch milliseconds in UTC, rates bytes per second. A null says that something is not known or not there; it
never stands for zero. `date` is the folder of a table's files: old days can be deleted by it.

This page is written by `python -m cli.tables_docs > docs/tables.md` from `schemas/tables.py`.
"""


def all_tables() -> list[Table]:
    """Return every table, bronze first, alerts last."""
    return [value for value in vars(tables).values() if isinstance(value, Table)]


def markdown() -> str:
    """Return docs/tables.md: of every table the grain, the key, and each column with its type and meaning."""
    lines = [_INTRODUCTION, "| table | one row is |", "|---|---|"]
    lines += [f"| [`{table.path}`](#{_anchor(table)}) | {table.grain} |" for table in all_tables()]
    for table in all_tables():
        lines += ["", f"## {table.path}", "", f"One row: {table.grain}. Key: {_codes(table.keys)}."]
        if table.partition_by:
            lines[-1] += f" Folders: {_codes(table.partition_by)}."
        lines += ["", "| column | type | meaning |", "|---|---|---|"]
        lines += [f"| `{c.name}` | {_type(c.type)} | {c.meaning} |" for c in table.columns]
    return "\n".join(lines) + "\n"


def _anchor(table: Table) -> str:
    return table.path.replace("/", "")


def _codes(names: tuple[str, ...]) -> str:
    return ", ".join(f"`{name}`" for name in names)


def _type(name: str) -> str:
    return name.replace("<", "&lt;").replace(">", "&gt;")


if __name__ == "__main__":
    print(markdown(), end="")

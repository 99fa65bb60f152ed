"""The Delta tables told to people, from ``schemas/tables/catalogue.py`` alone: docs/tables.md."""

from __future__ import annotations

from schemas.config import StoreSettings
from schemas.tables import Table
from schemas.tables import catalogue as tables
from streaming.delta.properties import properties

_INTRODUCTION = """# Tables

All are Delta tables under `store.path`. Any Delta reader can read them; without Spark, for example:

```python
from deltalake import DeltaTable, QueryBuilder

table = DeltaTable("headroom-data/gold/throttle_headroom")
sql = "SELECT tick_ms, broker, role, verdict, headroom_bytes_per_s FROM t ORDER BY tick_ms DESC LIMIT 20"
print(QueryBuilder().register("t", table).execute(sql).read_all())
```

Times are epoch milliseconds in UTC, rates are bytes per second. A null means that something is not known or not there,
never zero. `date` is the folder of a table's files.

[One example by hand](throttle_headroom.md) follows the columns of `gold/throttle_headroom` that decide a verdict.

This page is written by `python -m scripts.docs.tables > docs/tables.md` from `schemas/tables/catalogue.py`.
"""

_MAINTENANCE = """## Kept fast

**Folders.** A day (`date`, of `tick_ms` in UTC) is a folder, in every table but those of alerts, which are small. So a
day that is no longer kept goes as a whole, and nothing is rewritten for it. Clusters share the files of a day: a folder
for each would multiply the small files of every commit.

**Asking for a part.** The log says of every file which days, clusters and ticks it holds ({skip_by}), but nothing of
other columns. So name `tick_ms` in a query, and `cluster` if there are several; files, and pages of files, with other
rows are then not read:

```sql
SELECT tick_ms, broker, role, verdict, headroom_bytes_per_s
FROM t WHERE cluster = 'orders' AND tick_ms >= 1800000000000 ORDER BY tick_ms
```

**Maintenance** runs beside the record job every `store.maintain_every_s` ({every_s:.0f} s by default), and at once by
`headroom maintain`. For each table but `alerts/marks`, which the commands that write it keep small, it

1. drops the days that are no longer kept: {kept}; `store.bronze_keep_days`, `store.silver_keep_days` and
   `store.gold_keep_days` change that, and 0 keeps all;
2. compacts: every commit leaves small files; those of a day that are below 64 MB are merged into files of up to 128 MB;
3. removes the files that a compaction or a dropped day has left behind, once they are old enough for nobody to be
   reading them: {deleted}, in bronze {bronze_deleted}, for the silver job reads bronze as a stream.

Maintenance and jobs do not disturb each other: jobs append rows without looking at what is there, and compaction
changes no row. If two maintenances run at once, they conflict, and the later one tries again.

**The log** of a table (`_delta_log`) is kept for {log}, in bronze {bronze_log}, and back to the midnight before that;
every {checkpoint}th commit has a checkpoint. Time travel goes back no further.

**Tables of an older version** get the columns, the fields of structs and the properties that are new when a job that
writes them starts; in older rows the new ones are null. A difference that cannot be added (other folders, other types,
or another table at the same place) stops the job with a message that names it. Columns that a newer version has added
are left as they are.
"""


def all_tables() -> list[Table]:
    """Return every table, bronze first, alerts last."""
    return [value for value in vars(tables).values() if isinstance(value, Table)]


def markdown() -> str:
    """Return docs/tables.md: of every table the grain, the key, and each column with its type and meaning."""
    lines = [_INTRODUCTION, "| table | one row is |", "|---|---|"]
    lines += [f"| [`{table.path}`](#{_anchor(table)}) | {table.grain} |" for table in all_tables()]
    lines += ["", _maintenance().rstrip()]
    for table in all_tables():
        lines += ["", f"## {table.path}", "", f"One row: {table.grain}. Key: {_codes(table.keys)}."]
        if table.partition_by:
            lines[-1] += f" Folders: {_codes(table.partition_by)}. Kept: {_days(table)}."
        lines += ["", "| column | type | meaning |", "|---|---|---|"]
        lines += [f"| `{c.name}` | {_type(c.type)} | {c.meaning} |" for c in table.columns]
    return "\n".join(lines) + "\n"


def _maintenance() -> str:
    """Return how the tables are kept fast, with what is in force by default."""
    gold, bronze = (
        {key: value.removeprefix("interval ") for key, value in properties(table).items()}
        for table in (tables.THROTTLE_HEADROOM, tables.BRONZE_TICKS)
    )
    return _MAINTENANCE.format(
        skip_by=_codes((*tables.THROTTLE_HEADROOM.partition_by, *tables.THROTTLE_HEADROOM.skip_by)),
        every_s=StoreSettings().maintain_every_s,
        kept=", ".join(f"{layer} {StoreSettings().keep_days(layer)} days" for layer in ("bronze", "silver", "gold")),
        deleted=gold["delta.deletedFileRetentionDuration"],
        bronze_deleted=bronze["delta.deletedFileRetentionDuration"],
        log=gold["delta.logRetentionDuration"],
        bronze_log=bronze["delta.logRetentionDuration"],
        checkpoint=gold["delta.checkpointInterval"],
    )


def _days(table: Table) -> str:
    return f"{StoreSettings().keep_days(table.path)} days by default"


def _anchor(table: Table) -> str:
    return table.path.replace("/", "")


def _codes(names: tuple[str, ...]) -> str:
    return ", ".join(f"`{name}`" for name in names)


def _type(name: str) -> str:
    return name.replace("<", "&lt;").replace(">", "&gt;")


if __name__ == "__main__":
    print(markdown(), end="")

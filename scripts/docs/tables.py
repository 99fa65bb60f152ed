"""Generates docs/tables.md from ``schemas/tables/catalogue.py``."""

from __future__ import annotations

from headroom.schemas.config import StoreSettings
from headroom.schemas.tables import ALL_TABLES, BRONZE_TICKS, THROTTLE_HEADROOM, Table
from headroom.streaming.delta.properties import properties

_INTRODUCTION = """# Tables

All are Delta tables under `store.path`. Any Delta reader can read them; without Spark, for example:

```python
from deltalake import DeltaTable, QueryBuilder

table = DeltaTable("headroom-data/gold/throttle_headroom")
sql = "SELECT tick_ms, broker, role, verdict, headroom_bytes_per_s FROM t ORDER BY tick_ms DESC LIMIT 20"
print(QueryBuilder().register("t", table).execute(sql).read_all())
```

Times are epoch milliseconds in UTC, rates are bytes per second. Null means unknown or not applicable, never zero.
`date` is the partition column, a folder of the table's files.

[One example by hand](throttle_headroom.md) follows the columns of `gold/throttle_headroom` that decide a verdict.

This page is written by `python -m scripts.docs.tables > docs/tables.md` from `schemas/tables/catalogue.py`.
"""

_MAINTENANCE = """## Maintenance and fast queries

**Folders.** Each day (`date`, from `tick_ms` in UTC) is a folder, except in the small tables of alerts. An expired day
is therefore deleted as a whole, without rewriting files. Clusters share the files of a day, because a folder per
cluster would multiply the small files of every commit.

**Fast queries.** For every file the transaction log has statistics of {skip_by}, and of no other
column. Filter by `tick_ms`, and by `cluster` if there are several, so that files and pages with other rows are skipped:

```sql
SELECT tick_ms, broker, role, verdict, headroom_bytes_per_s
FROM t WHERE cluster = 'orders' AND tick_ms >= 1800000000000 ORDER BY tick_ms
```

**Age.** On a local disk the rows of a tick with a move are in `gold/throttle_headroom` about a second after its
verdict, and those in `gold/reassignment_progress` and `gold/partition_write_rate` too. Ticks in which nothing moves
follow within 20 s, tables at a URL and ticks that a busy machine had no time for within half a minute.

Rows of `gold/partition_load` have no tick: filter them by `hour_ms`, of which the log has statistics too. The folder of
a row of `silver/migration_syncs` is the day of `written_ms`.

**Maintenance** runs in the record job every `store.maintain_every_s` ({every_s:.0f} s by default), or at once with
`headroom maintain`. It covers every table except `alerts/marks`, `actions/journal`, `gold/balance_proposal` and
`gold/balance_action`, which the commands that write them keep small:

1. It deletes expired days. Retention: {kept} (`store.bronze_keep_days`,
   `store.silver_keep_days`, `store.gold_keep_days`; 0 keeps everything), `gold/partition_load` {load_days} days
   (`store.partition_load_keep_days`), `gold/broker_load` {broker_days} days (`store.broker_load_keep_days`),
   `silver/migration_syncs` {sync_days} days (`store.migration_syncs_keep_days`).
2. It compacts small files, which every commit adds: files of a day below 64 MB are merged into files of up to 128 MB.
3. It removes files that a compaction or an expired day left behind, once no reader can need them: after {deleted}, in
   bronze after {bronze_deleted}, because the silver job reads bronze as a stream.

Maintenance and jobs do not conflict: jobs append rows without reading the table, and compaction changes no row. Two
maintenances at the same time do conflict; the later one retries.

**Load by hour.** Before each maintenance, the same process writes the complete hours of `gold/partition_load`, each
hour of a cluster in one commit that replaces its earlier rows. An hour is written again when more of its messages have
arrived in silver, until 48 hours after it. A write rate is measured from the first tick of one 5 minutes to that of the
next ones. A missing reading in between is bridged; longer gaps are not part of `observed_ratio`. The rates of a
reassignment are `reassign.rate_percentile` of `mean_write_bytes_per_s` over the last `reassign.rate_hours` hours, of
hours with an `observed_ratio` of at least 0.5. The reasons are in
[decisions.md](decisions.md#load-by-hour).

**The transaction log** of a table (`_delta_log`) is kept for {log}, in bronze {bronze_log}, back to the preceding
midnight. Every {checkpoint}th commit has a checkpoint. Time travel is limited to this time.

**After a power cut** no row of `alerts/*` and `actions/journal` is missing: these are synced to a local disk, file and
folder, before the step that they record. Newest rows of the other tables may be damaged: `headroom maintain --repair`
lists and removes damaged files. Jobs move damaged checkpoints aside by themselves, and read again what is missing in
their tables.

**Tables of an older version** get new columns, new struct fields and new properties when a job that writes them starts;
they are null in older rows. Reworded comments are replaced too where the table is written without Spark. A difference
that cannot be added (other folders, other types, or another table at the same location) stops the job with an error
that names it. Columns of a newer version are left unchanged, and are null in new rows.
"""


def markdown() -> str:
    """Return the text of docs/tables.md: grain, key and columns of every table."""
    lines = [_INTRODUCTION, "| table | one row is |", "|---|---|"]
    lines += [f"| [`{table.path}`](#{_anchor(table)}) | {table.grain} |" for table in ALL_TABLES]
    lines += ["", _maintenance().rstrip()]
    for table in ALL_TABLES:
        lines += ["", f"## {table.path}", "", f"One row: {table.grain}. Key: {_codes(table.keys)}."]
        if table.partition_by:
            lines[-1] += f" Folders: {_codes(table.partition_by)}. Kept: {_days(table)}."
        lines += ["", "| column | type | meaning |", "|---|---|---|"]
        lines += [f"| `{c.name}` | {_type(c.type)} | {c.meaning} |" for c in table.columns]
    return "\n".join(lines) + "\n"


def _maintenance() -> str:
    """Return the section about maintenance, with the default retention and intervals."""
    gold, bronze = (
        {key: value.removeprefix("interval ") for key, value in properties(table).items()}
        for table in (THROTTLE_HEADROOM, BRONZE_TICKS)
    )
    return _MAINTENANCE.format(
        skip_by=_codes((*THROTTLE_HEADROOM.partition_by, *THROTTLE_HEADROOM.skip_by)),
        every_s=StoreSettings().maintain_every_s,
        kept=", ".join(f"{layer} {StoreSettings().keep_days(layer)} days" for layer in ("bronze", "silver", "gold")),
        load_days=StoreSettings().partition_load_keep_days,
        broker_days=StoreSettings().broker_load_keep_days,
        sync_days=StoreSettings().migration_syncs_keep_days,
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

"""Rows of the gold tables of migrations, from the messages of complete ticks.

They are evaluated in Python, on the driver. The rules are those of the command that shows the status of a migration,
and they read a partition with all of its groups: as SQL they would stand twice. A message is passed through Spark as
text, and only ticks that have one cost a job. The alert path evaluates a tick once: alerts, metrics and gold rows have
the same objects.
"""

from __future__ import annotations

import gc
import json
import logging
from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from pyspark.sql import DataFrame, Row

from headroom.planning.migration.progress.judgement import migration_progress
from headroom.planning.migration.progress.message_row import readings_of_rows
from headroom.planning.migration.progress.progress import MigrationProgress
from headroom.schemas.keys import Tick
from headroom.schemas.tables import MIGRATION_GROUPS, MIGRATION_PROGRESS, Table
from headroom.streaming.transforms.decode import MIGRATIONS
from headroom.streaming.transforms.tick_status import ExtraTickColumn

log = logging.getLogger(__name__)
# In the order of writing: the last one shows which ticks are written.
MIGRATION_TABLES = (MIGRATION_GROUPS, MIGRATION_PROGRESS)
# Further columns of ``tick_status`` for ``ticks_with_migrations``.
MIGRATION_COLUMNS = (
    ExtraTickColumn("migrations", "count_if(kind = 'migrations')"),
    # Null if the collector did not know.
    ExtraTickColumn("sent_migrations", "max(sent_messages['migrations'])"),
)
# Of the value, compared with the key.
_ENVELOPE = ("cluster", "tick_ms", "kind", "row_count")
_GROUP = [name for name in MIGRATION_GROUPS.names() if name not in ("cluster", "tick_ms", "date", "topic", "partition")]
_PROGRESS = [name for name in MIGRATION_PROGRESS.names() if name not in ("cluster", "tick_ms", "date")]
TickProgress = Mapping[Tick, Sequence[MigrationProgress]]


def ticks_with_migrations(status: Sequence[Row]) -> list[Tick]:
    """Return the ticks that have rows of migrations, and all of their messages.

    Args:
        status: rows of ``tick_status`` with ``MIGRATION_COLUMNS``, one per tick.
    """
    return [
        (row["cluster"], row["tick_ms"])
        for row in status
        if row["migrations"] and row["migrations"] == row["sent_migrations"]
    ]


def ticks_without_migrations(status: Sequence[Row]) -> list[Tick]:
    """Return the ticks whose collector knew that no migration is agreed about.

    Args:
        status: rows of ``tick_status`` with ``MIGRATION_COLUMNS``, one per tick.
    """
    return [(row["cluster"], row["tick_ms"]) for row in status if row["sent_migrations"] == 0]


def evaluated_migrations(messages: DataFrame, ticks: Collection[Tick]) -> TickProgress:
    """Return the progress of the migrations in some ticks; ticks in which none can be read are missing.

    Args:
        messages: of ``streaming.transforms.tick_status.complete_ticks``.
        ticks: of ``ticks_with_migrations``. Without any, Spark is not asked.
    """
    if not ticks:
        return {}
    found: dict[Tick, list[MigrationProgress]] = {tick: [] for tick in ticks}
    rows = messages.where("payload IS NOT NULL").select("cluster", "tick_ms", "payload").collect()
    with paused_garbage_collection():
        for row in rows:
            tick = row["cluster"], row["tick_ms"]
            if tick in found:
                found[tick] += _evaluate_message(tick, row["payload"])
    return {tick: progress for tick, progress in found.items() if progress}


@contextmanager
def paused_garbage_collection() -> Iterator[None]:
    """Pause Python's search for cycles of objects, if it was on, until the block ends.

    A tick of a large migration makes millions of objects without a cycle. The search goes through all of them again and
    again, and takes a sixth of the time.
    """
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()


def _evaluate_message(tick: Tick, payload: str) -> list[MigrationProgress]:
    """Return the progress of each partition in a message; of one that cannot be read none, and a line in the log."""
    try:
        message = json.loads(payload)
        if [message[name] for name in _ENVELOPE] != [*tick, MIGRATIONS, len(message["rows"])]:
            raise ValueError("the key and the value name different messages")
        readings = readings_of_rows(message["rows"], tick[1])
        return [migration_progress(reading) for reading in readings if reading is not None]
    except (ArithmeticError, AttributeError, KeyError, TypeError, ValueError) as error:
        # Silver has it in quarantine. What is missing has no verdict, and other clusters keep theirs.
        log.warning("migrations of tick %s of cluster %s cannot be read: %s", tick[1], tick[0], error)
        return []


def migration_rows(progress: TickProgress) -> dict[Table, dict[Tick, list[dict[str, Any]]]]:
    """Return the rows of the gold tables by table and tick, without ``date``; ticks without rows are missing.

    Args:
        progress: progress of all partitions by tick.
    """
    by_table: dict[Table, dict[Tick, list[dict[str, Any]]]] = {table: defaultdict(list) for table in MIGRATION_TABLES}
    for tick, partitions in progress.items():
        keys = dict(zip(("cluster", "tick_ms"), tick, strict=True))
        for one in partitions:
            own = keys | {name: getattr(one, name) for name in _PROGRESS}
            by_table[MIGRATION_PROGRESS][tick].append(
                own | {"verdict": one.verdict.value, "missing_routers": list(one.missing_routers)}
            )
            name = {"topic": one.topic, "partition": one.partition}
            by_table[MIGRATION_GROUPS][tick] += [
                keys | name | {column: getattr(group, column) for column in _GROUP} for group in one.groups or ()
            ]
    return {table: {tick: rows for tick, rows in ticks.items() if rows} for table, ticks in by_table.items()}

"""Gold job: from the alert partition to the gold tables, with several ticks per commit.

On a local disk the alert path writes most ticks itself (``streaming.jobs.alert_path_gold``). This job comes later, and
writes the others: those of a backlog, and those that a crash or a busy disk has left.
"""

from __future__ import annotations

from collections.abc import Collection
from functools import cached_property

from deltalake import CommitProperties, DeltaTable
from deltalake.transaction import AddAction
from pyspark.sql import DataFrame

from headroom.schemas.keys import Tick
from headroom.schemas.tables import (
    MIGRATION_PROGRESS,
    PARTITION_WRITE_RATE,
    REASSIGNMENT_PROGRESS,
    THROTTLE_HEADROOM,
    Table,
)
from headroom.streaming.delta.locations import local_path
from headroom.streaming.delta.tick_table import TickTable
from headroom.streaming.queries.caching import checkpointed_frames
from headroom.streaming.queries.tick_query import TickQuery
from headroom.streaming.queries.whole_ticks import CompleteTicks
from headroom.streaming.store.low_latency_table import dict_rows
from headroom.streaming.store.staged_files import StagedFiles
from headroom.streaming.transforms.gold import MOVE_ROW_COLUMNS, GoldQueries, move_row_counts
from headroom.streaming.transforms.migrations import (
    MIGRATION_COLUMNS,
    MIGRATION_TABLES,
    evaluated_migrations,
    migration_rows,
    ticks_with_migrations,
)
from headroom.streaming.transforms.prepared import Prepared
from headroom.streaming.transforms.tick_status import ended_ticks, in_ticks

# In the order of writing: the last one shows which ticks are written.
TABLES = (REASSIGNMENT_PROGRESS, PARTITION_WRITE_RATE, THROTTLE_HEADROOM)

# Time for the alert path to write the ticks of a batch, seconds: if it left rows of a move in the last batch, and
# otherwise. While nothing moves it holds rows back (``streaming.store.tick_row_queue``), for less than the longer time.
_PAUSE_S, _LONG_PAUSE_S = 3.0, 30.0


class GoldJob(TickQuery):
    """One streaming query over the alert partition that writes the gold tables; arguments as of ``TickQuery``."""

    name = "gold"
    tables = TABLES
    # About a thousand small ticks.
    max_offsets = 3000
    extra_columns = (*MOVE_ROW_COLUMNS, *MIGRATION_COLUMNS)

    # The first batch comes seconds after the alert path's first one.
    _pause_s = 0.0

    @cached_property
    def _ended_ticks(self) -> Prepared:
        return Prepared(ended_ticks)

    @cached_property
    def _queries(self) -> GoldQueries:
        return GoldQueries()

    @cached_property
    def _shared(self) -> dict[Table, SharedTable]:
        """Tables that the alert path writes too; none at a URL."""
        paths = {table: local_path(self._store.location(table)) for table in TABLES}
        return {table: SharedTable(path, table, self.name) for table, path in paths.items() if path is not None}

    @cached_property
    def _migrations(self) -> dict[Table, TickTable]:
        """Tables of migrations on a local disk; none at a URL."""
        paths = {table: local_path(self._store.location(table)) for table in MIGRATION_TABLES}
        return {table: TickTable(path, table) for table, path in paths.items() if path is not None}

    def prepare(self) -> None:
        """Create missing tables; at a URL also read which ticks the existing ones have."""
        self._store.ensure(*MIGRATION_TABLES)
        if not self._shared:
            super().prepare()
            return
        self._store.ensure(*TABLES)
        for table in self._shared.values():
            table.clear()

    def pause_s(self) -> float:
        """Return the time that the alert path needs for the ticks of a batch, seconds."""
        return self._pause_s

    def write(self, batch: DataFrame, batch_id: int) -> None:
        """Write the ticks of a micro-batch that the tables do not have; if they have all, read only the keys."""
        if not self._shared or not self._is_written(batch):
            super().write(batch, batch_id)

    def _is_written(self, batch: DataFrame) -> bool:
        """Return whether the tables have all ticks that end in a batch, and then set what follows from that."""
        ended = self._ended_ticks.on(batch.coalesce(1)).collect()
        ticks = [(row["cluster"], row["tick_ms"]) for row in ended]
        with_moves = [tick for tick, row in zip(ticks, ended, strict=True) if row["may_move"]]
        for table, shared in self._shared.items():
            if shared.ticks.missing(ticks if table is THROTTLE_HEADROOM else with_moves):
                return False
        migrating = [tick for tick, row in zip(ticks, ended, strict=True) if row["may_migrate"]]
        if self._migrations[MIGRATION_PROGRESS].missing(migrating):
            return False
        self.end_offset = max((row["end_offset"] + 1 for row in ended), default=None)
        if ended:
            self._pause_s = _LONG_PAUSE_S
        return True

    def _write(self, complete: CompleteTicks) -> None:
        # Before the tables that show which ticks are written.
        self._write_migrations(complete)
        if self._shared:
            self._write_missing(complete)
        else:
            self._write_all(complete)

    def _write_all(self, complete: CompleteTicks) -> None:
        since_ms = self._written_since(complete.ticks)
        with checkpointed_frames() as cache:
            rows = self._queries.rows(complete.messages, cache)
            for table in TABLES if complete.any_moves else (THROTTLE_HEADROOM,):
                self._append(rows.of(table), table, since_ms)

    def _write_migrations(self, complete: CompleteTicks) -> None:
        """Write the rows of migrations that no process has written yet; without a migration nothing is done."""
        ticks = ticks_with_migrations(complete.status)
        if self._migrations:
            ticks = sorted(self._migrations[MIGRATION_PROGRESS].missing(ticks))
        rows = migration_rows(evaluated_migrations(complete.messages, ticks))
        since_ms = self._written_since(ticks) if ticks else None
        for table, by_tick in rows.items():
            if self._migrations:
                self._migrations[table].append(by_tick)
            elif by_tick:
                of_table = [row for of_tick in by_tick.values() for row in of_tick]
                self._append(dict_rows(self._spark, of_table, table), table, since_ms)

    def _write_missing(self, complete: CompleteTicks) -> None:
        """Write the rows that no process has written yet."""
        with_rows: dict[Table, Collection[Tick]] = {THROTTLE_HEADROOM: complete.ticks}
        with_rows |= {table: counts.keys() for table, counts in move_row_counts(complete.status).items()}
        missing = {table: ticks for table in TABLES if (ticks := self._shared[table].ticks.missing(with_rows[table]))}
        self._pause_s = _PAUSE_S if missing and complete.any_moves else _LONG_PAUSE_S
        if not missing:
            return
        ticks = frozenset[Tick]().union(*missing.values())
        messages = complete.messages if len(ticks) == len(complete.ticks) else _of_ticks(complete.messages, ticks)
        with checkpointed_frames() as cache:
            rows = self._queries.rows(messages, cache)
            for table, of_table in missing.items():
                self._shared[table].append(rows.of(table), ticks, of_table)


class SharedTable:
    """A gold table on a local disk, with the files that Spark writes for it.

    Args:
        path: folder of the table.
        table: definition of the table.
        writer: name of the job that appends to it.

    Attributes:
        ticks: the table, as all its writers append to it.
    """

    def __init__(self, path: str, table: Table, writer: str) -> None:
        self.ticks = TickTable(path, table)
        self._files = StagedFiles(path, writer)
        self._partition_by = list(table.partition_by)

    def clear(self) -> None:
        """Remove files that an earlier process has not finished."""
        self._files.clear()

    def append(self, frame: DataFrame, in_frame: frozenset[Tick], ticks: frozenset[Tick]) -> None:
        """Append the rows of the ticks that the table still does not have at the commit.

        Args:
            frame: rows in the table's columns.
            in_frame: ticks of the frame.
            ticks: ticks to append.
        """
        written: dict[frozenset[Tick], list[AddAction]] = {}

        def write(opened: DeltaTable, new: frozenset[Tick], once: CommitProperties) -> None:
            if new not in written:
                written[new] = self._files.write(frame if new == in_frame else _of_ticks(frame, new), new)
            if written[new]:
                opened.create_write_transaction(
                    [*written[new]], "append", opened.schema(), self._partition_by, commit_properties=once
                )

        # Maintenance removes the files of a commit that failed. Here nobody can be sure that it did.
        self.ticks.commit(ticks, write)


def _of_ticks(rows: DataFrame, ticks: frozenset[Tick]) -> DataFrame:
    return rows.where(in_ticks(sorted(ticks)))

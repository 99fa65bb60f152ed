"""Gold rows of the alert path: the rows that it has evaluated go into the gold tables, and are not computed again.

The gold job would commit them half a minute later. It still writes the ticks of a backlog, and those that could not be
written here.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from typing import Any

from pyspark.sql import DataFrame, Row, SparkSession

from headroom.schemas.keys import Tick
from headroom.schemas.tables import PARTITION_WRITE_RATE, REASSIGNMENT_PROGRESS, THROTTLE_HEADROOM, Table
from headroom.streaming.delta.tick_table import TickTable
from headroom.streaming.jobs.gold import TABLES, SharedTable
from headroom.streaming.queries.caching import Cache, cached_frames
from headroom.streaming.queries.whole_ticks import CompleteTicks
from headroom.streaming.store.store import Store
from headroom.streaming.store.tick_row_queue import TickRowQueue, TickRows
from headroom.streaming.transforms.gold import MOVE_ROW_COLUMNS, Gold, GoldQueries, move_row_counts
from headroom.streaming.transforms.migrations import MIGRATION_TABLES, TickProgress, migration_rows

# Most rows of moves that are sent to Python, whose Delta library commits small files sooner than Spark. More of them
# are written by Spark.
_MOST_SENT_ROWS = 2000
# Share of the interval of its ticks that a batch may take. If it takes longer, as in a JVM that has just started, rows
# of moves are not computed beside the next tick.
_SPARE_RATIO = 0.5
# Fields of the frame ``Gold.moves``.
_FIELDS = {"progress": REASSIGNMENT_PROGRESS, "write_rate": PARTITION_WRITE_RATE}
_NAME = "alert_path"


@dataclass(frozen=True)
class Evaluated:
    """Evaluated ticks of a batch.

    Attributes:
        complete: ticks of the batch.
        headroom: rows of ``gold/throttle_headroom`` of each new tick, with or without ``date``.
        large: their gold rows, if they are many.
        took_s: duration of the batch until now, seconds; None if unknown.
        held: frees the frames.
        migrations: progress of migrations, of the ticks that have any.
    """

    complete: CompleteTicks
    headroom: Mapping[Tick, Sequence[Mapping[str, Any]]]
    large: Gold | None
    took_s: float | None
    held: ExitStack
    migrations: TickProgress = field(default_factory=dict)


class AlertPathGold:
    """Writer of the gold rows of the alert path, for tables on a local disk.

    Args:
        spark: session.
        store: tables.
        interval_s: interval of ticks, seconds.

    Attributes:
        extra_columns: columns of ``tick_status`` that it needs.
    """

    extra_columns = MOVE_ROW_COLUMNS

    def __init__(self, spark: SparkSession, store: Store, interval_s: float) -> None:
        self._spark = spark
        self._store = store
        self._spare_s = interval_s * _SPARE_RATIO
        self._queue = TickRowQueue(self._open_tables)
        self._tables: Mapping[Table, SharedTable] = {}
        self._queries = GoldQueries()

    def large(self, messages: DataFrame, new: Sequence[Row], cache: Cache) -> Gold | None:
        """Return the gold rows of ticks with many rows of moves, to be computed once for verdicts and tables.

        Args:
            messages: messages of a batch.
            new: status of its new ticks, with ``extra_columns``.
            cache: keeps a frame until the rows are written.
        """
        counts = move_row_counts(new).values()
        is_large = sum(sum(of_table.values()) for of_table in counts) > _MOST_SENT_ROWS
        return self._queries.rows(messages, cache) if is_large else None

    def write(self, evaluated: Evaluated) -> None:
        """Queue the rows of evaluated ticks, after their events are durable; free their frames once these are written.

        Args:
            evaluated: the ticks.
        """
        self._put_migrations(evaluated.migrations)
        ticks = evaluated.headroom.keys()
        any_moves = {(row["cluster"], row["tick_ms"]): row["any_moves"] for row in evaluated.complete.status}
        rows = [TickRows(THROTTLE_HEADROOM, tick, own, any_moves[tick]) for tick, own in evaluated.headroom.items()]
        has_time = (evaluated.took_s or 0.0) <= self._spare_s * len(ticks)
        counts = move_row_counts(evaluated.complete.status)
        if not has_time or not any(ticks & of_table.keys() for of_table in counts.values()):
            evaluated.held.close()
            self._queue.put(rows)
            return
        write = self._sent_rows if evaluated.large is None else self._write_large
        self._queue.put(rows, _RowsOfMoves(lambda: write(evaluated), evaluated.held.close))

    def stop(self) -> None:
        """Write what waits, and end."""
        self._queue.stop()

    def _put_migrations(self, migrations: TickProgress) -> None:
        """Queue rows of migrations by themselves: if they find no room, those of throttles still do."""
        for table, by_tick in migration_rows(migrations).items():
            self._queue.put([TickRows(table, tick, rows, urgent=True) for tick, rows in by_tick.items()])

    def _sent_rows(self, evaluated: Evaluated) -> list[TickRows]:
        """Return the rows of moves of some ticks, sent to Python in one job."""
        self._set_pool()
        by_tick: dict[tuple[Table, Tick], list[Mapping[str, Any]]] = defaultdict(list)
        with cached_frames() as cache:
            rows = self._queries.rows(evaluated.complete.messages, cache).moves.collect()
        for row in rows:
            for name, table in _FIELDS.items():
                if row[name] is not None:
                    values = row[name].asDict(recursive=True)
                    by_tick[table, (values["cluster"], values["tick_ms"])].append(values)
        return [TickRows(*key, rows, urgent=True) for key, rows in by_tick.items() if key[1] in evaluated.headroom]

    def _write_large(self, evaluated: Evaluated) -> list[TickRows]:
        """Let Spark write the rows of moves of some ticks, and commit them; no row is left to append."""
        self._set_pool()
        assert evaluated.large is not None
        for table, counts in move_row_counts(evaluated.complete.status).items():
            ticks = frozenset(counts.keys() & evaluated.headroom.keys())
            self._tables[table].append(evaluated.large.of(table), frozenset(counts), ticks)
        return []

    def _set_pool(self) -> None:
        # Other jobs of this process have their own pools.
        self._spark.sparkContext.setLocalProperty("spark.scheduler.pool", "gold rows")

    def _open_tables(self) -> Mapping[Table, TickTable]:
        self._store.ensure(*TABLES, *MIGRATION_TABLES)
        self._tables = {table: SharedTable(self._store.location(table), table, _NAME) for table in TABLES}
        for table in self._tables.values():
            table.clear()
        migrations = {table: TickTable(self._store.location(table), table) for table in MIGRATION_TABLES}
        return {table: shared.ticks for table, shared in self._tables.items()} | migrations


@dataclass(frozen=True)
class _RowsOfMoves:
    """Rows of moves that the thread of the queue computes.

    Attributes:
        rows: returns the rows.
        close: frees the frames that they are computed from.
    """

    rows: Callable[[], Sequence[TickRows]]
    close: Callable[[], None]

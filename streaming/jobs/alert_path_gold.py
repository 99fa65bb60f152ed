"""Gold rows of the alert path: the rows that it has evaluated go into the gold tables as they are, without Spark.

The gold job would compute them again, and commit them half a minute later. It still writes the ticks with many rows of
moves, those of a backlog, and those that could not be written here.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

from pyspark.sql import DataFrame, SparkSession

from schemas.keys import Tick
from schemas.tables import PARTITION_WRITE_RATE, REASSIGNMENT_PROGRESS, THROTTLE_HEADROOM, Table
from streaming.delta.tick_table import TickTable
from streaming.jobs.gold import TABLES
from streaming.queries.caching import cached_frames
from streaming.queries.whole_ticks import CompleteTicks
from streaming.store.store import Store
from streaming.store.tick_row_queue import TickRowQueue, TickRows
from streaming.transforms.gold import MOVE_ROW_COLUMNS, MoveQueries, move_row_counts

# Most rows of moves in a batch. Computing more of them, and sending them to Python, would take time from the next tick.
_MOST_MOVE_ROWS = 2000
# Share of the interval of ticks that a batch may take. If it takes longer, as in a JVM that has just started, rows of
# moves are not computed beside the next tick.
_SPARE_RATIO = 0.5
# Fields of the frame of ``MoveQueries``.
_FIELDS = {"progress": REASSIGNMENT_PROGRESS, "write_rate": PARTITION_WRITE_RATE}


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
        self._queries = MoveQueries()

    def write(
        self, complete: CompleteTicks, headroom: Mapping[Tick, Sequence[Mapping[str, Any]]], took_s: float | None
    ) -> None:
        """Queue the rows of evaluated ticks, after their events are durable.

        Args:
            complete: ticks of the batch.
            headroom: rows of ``gold/throttle_headroom`` of each new tick, without ``date``.
            took_s: duration of the batch until now, seconds; None if unknown.
        """
        new = {tick: row for row in complete.status if (tick := (row["cluster"], row["tick_ms"])) in headroom}
        rows = [TickRows(THROTTLE_HEADROOM, tick, rows, new[tick]["any_moves"]) for tick, rows in headroom.items()]
        counts = move_row_counts(list(new.values()))
        count = sum(sum(of_table.values()) for of_table in counts.values())
        has_time = (took_s or 0.0) <= self._spare_s
        compute = partial(self._rows_of_moves, complete.messages, frozenset(headroom))
        self._queue.put(rows, compute if has_time and 0 < count <= _MOST_MOVE_ROWS else None)

    def stop(self) -> None:
        """Write what waits, and end."""
        self._queue.stop()

    def _rows_of_moves(self, messages: DataFrame, ticks: frozenset[Tick]) -> list[TickRows]:
        """Return the rows of moves of some ticks.

        Args:
            messages: messages of these ticks, and perhaps of others. They are read again if they are cached no more.
            ticks: the ticks.
        """
        # Other jobs of this process have their own pools.
        self._spark.sparkContext.setLocalProperty("spark.scheduler.pool", "gold rows")
        found: dict[tuple[Table, Tick], list[Mapping[str, Any]]] = defaultdict(list)
        with cached_frames() as cache:
            rows = self._queries.rows(messages, cache).collect()
        for row in rows:
            for field, table in _FIELDS.items():
                if row[field] is not None:
                    values = row[field].asDict(recursive=True)
                    found[table, (values["cluster"], values["tick_ms"])].append(values)
        return [TickRows(*key, of_tick, urgent=True) for key, of_tick in found.items() if key[1] in ticks]

    def _open_tables(self) -> Mapping[Table, TickTable]:
        self._store.ensure(*TABLES)
        return {table: TickTable(self._store.location(table), table) for table in TABLES}

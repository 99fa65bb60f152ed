"""Gold rows of the alert path: the rows that it has evaluated go into the gold tables as they are, without Spark.

The gold job would compute them again, and commit them half a minute later. It still writes the ticks with many rows of
moves, those of a backlog, and those that could not be written here.
"""

from __future__ import annotations

import logging
from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from typing import Any

from alerts.faults import Faults
from schemas.tables import PARTITION_WRITE_RATE, REASSIGNMENT_PROGRESS, THROTTLE_HEADROOM, Table
from streaming.delta.tick_table import TickTable
from streaming.queries.whole_ticks import CompleteTicks
from streaming.store.store import Store
from streaming.store.tick_row_queue import TickRowQueue, TickRows
from streaming.transforms.gold import MOVE_ROW_COLUMNS, move_row_counts, move_rows
from streaming.transforms.prepared import Prepared
from streaming.transforms.tick_status import Tick

_TABLES = (THROTTLE_HEADROOM, REASSIGNMENT_PROGRESS, PARTITION_WRITE_RATE)
# Most rows of moves in a batch. Beyond it, computing them would delay the next tick, and sending them to Python too.
_MOST_MOVE_ROWS = 2000
# Share of the interval of ticks that a batch may have taken before the rows of moves are computed. Later, the next tick
# would have to wait for them.
_SPARE_RATIO = 0.5
# Fields of the frame of ``move_rows``.
_FIELDS = {"progress": REASSIGNMENT_PROGRESS, "write_rate": PARTITION_WRITE_RATE}

log = logging.getLogger(__name__)


class AlertPathGold:
    """Writer of the gold rows of the alert path, for tables on a local disk.

    Args:
        store: tables.
        interval_s: interval of ticks, seconds.

    Attributes:
        extra_columns: columns of ``tick_status`` that it needs.
    """

    extra_columns = MOVE_ROW_COLUMNS

    def __init__(self, store: Store, interval_s: float) -> None:
        self._store = store
        self._spare_s = interval_s * _SPARE_RATIO
        self._queue = TickRowQueue(self._open_tables)
        self._moves = Prepared(move_rows)
        self._faults = Faults(log)

    def write(
        self, complete: CompleteTicks, headroom: Mapping[Tick, Sequence[Mapping[str, Any]]], took_s: float | None
    ) -> None:
        """Write the rows of evaluated ticks, after their events are durable; errors are logged.

        Args:
            complete: ticks of the batch.
            headroom: rows of ``gold/throttle_headroom`` of each new tick, without ``date``.
            took_s: duration of the batch until now, seconds; None if unknown.
        """
        urgent = {(row["cluster"], row["tick_ms"]): row["any_moves"] for row in complete.status}
        self._queue.put([TickRows(THROTTLE_HEADROOM, tick, rows, urgent[tick]) for tick, rows in headroom.items()])
        try:
            if any(urgent[tick] for tick in headroom) and (took_s or 0.0) <= self._spare_s:
                self._write_moves(complete, headroom.keys())
        except Exception as error:
            # The gold job writes them.
            self._faults.report("moves", "rows of moves are left to the gold job", error)

    def stop(self) -> None:
        """Write what waits, and end."""
        self._queue.stop()

    def _write_moves(self, complete: CompleteTicks, ticks: Collection[Tick]) -> None:
        counts = move_row_counts([row for row in complete.status if (row["cluster"], row["tick_ms"]) in ticks])
        if not 0 < sum(sum(of_table.values()) for of_table in counts.values()) <= _MOST_MOVE_ROWS:
            return
        found: dict[tuple[Table, Tick], list[Mapping[str, Any]]] = defaultdict(list)
        for row in self._moves.on(complete.messages).collect():
            for field, table in _FIELDS.items():
                if row[field] is not None:
                    values = row[field].asDict(recursive=True)
                    found[table, (values["cluster"], values["tick_ms"])].append(values)
        self._queue.put([TickRows(*key, rows, urgent=True) for key, rows in found.items() if key[1] in ticks])

    def _open_tables(self) -> Mapping[Table, TickTable]:
        self._store.ensure(*_TABLES)
        return {table: TickTable(self._store.location(table), table) for table in _TABLES}

"""Ticks that the tables of a job have."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Sequence

from headroom.schemas.keys import Tick
from headroom.schemas.tables import Table
from headroom.streaming.durability.checkpoint import Checkpoint
from headroom.streaming.store.store import Store


class Written:
    """Progress of a job: the newest written tick of each cluster.

    Attributes:
        first_batch: whether the next batch may be one that an earlier process has written in part.
        any_earlier: whether an earlier process may have written to the tables.
        last_tick: newest written tick, epoch milliseconds, by cluster.
    """

    def __init__(self) -> None:
        self.first_batch = self.any_earlier = True
        self.last_tick: dict[str, int] = {}
        # For clusters without recent ticks in the table: any of their ticks may be written already.
        self._unknown_ms = sys.maxsize
        # Newest tick in any of the tables before a checkpoint that reads again, by cluster.
        self._until: dict[str, int] = {}

    def load(self, store: Store, tables: Sequence[Table], checkpoint: Checkpoint | None = None) -> None:
        """Create missing tables, and read the newest ticks of the existing ones.

        Args:
            store: tables.
            tables: tables that the job writes. The last one is written last and shows which ticks are written.
            checkpoint: checkpoint of the query, which records whether it began with rows in the tables; None: each
                batch is one commit, or is compared with the tables while ``any_earlier``.
        """
        if store.ensure(*tables):
            self.first_batch = self.any_earlier = False
            self.last_tick, self._unknown_ms, self._until = {}, 0, {}
            return
        # A query that starts again may repeat a batch that was written in part.
        self.first_batch = self.any_earlier = True
        self.last_tick = store.last_ticks(tables[-1])
        if checkpoint is not None and checkpoint.is_new and self.last_tick:
            checkpoint.begin({})
        # The checkpoint is younger than the oldest rows of the tables, so that batches repeat.
        repeats = checkpoint is not None and checkpoint.begun() is not None
        again = [table for table in tables if "tick_ms" in table.names()] if repeats else []
        self._until = _newest([store.last_ticks(table) for table in again])

    def may_be_in_part(self, ticks: Iterable[Tick]) -> bool:
        """Return whether the next batch may be one that an earlier process has written in part.

        Args:
            ticks: oldest tick of each cluster in the batch, or all.
        """
        if self.first_batch:
            return True
        return any(tick_ms <= self._until.get(cluster, -1) for cluster, tick_ms in ticks)

    def may_have(self, ticks: Iterable[Tick]) -> bool:
        """Return whether one of some ticks may be written: it may be delivered twice, or a batch may repeat."""
        return any(tick_ms <= self.last_tick.get(cluster, self._unknown_ms) for cluster, tick_ms in ticks)

    def add(self, ticks: Iterable[Tick]) -> None:
        """Record that a batch with these ticks is written."""
        self.first_batch = False
        for cluster, tick_ms in ticks:
            self.last_tick[cluster] = max(tick_ms, self.last_tick.get(cluster, 0))


def _newest(of_tables: Iterable[dict[str, int]]) -> dict[str, int]:
    """Return the newest tick of each cluster in any table, epoch milliseconds."""
    newest: dict[str, int] = {}
    for ticks in of_tables:
        newest |= {cluster: max(tick_ms, newest.get(cluster, 0)) for cluster, tick_ms in ticks.items()}
    return newest

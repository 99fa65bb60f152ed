"""Ticks that the tables of a job have."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Sequence

from schemas.keys import Tick
from schemas.tables import Table
from streaming.store.store import Store


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

    def load(self, store: Store, tables: Sequence[Table]) -> None:
        """Create missing tables, and read the newest ticks of the existing ones.

        Args:
            store: tables.
            tables: tables that the job writes. The last one is written last and shows which ticks are written.
        """
        if store.ensure(*tables):
            self.first_batch, self.any_earlier, self.last_tick, self._unknown_ms = False, False, {}, 0
        else:
            # A query that starts again may repeat a batch that was written in part.
            self.first_batch = self.any_earlier = True
            self.last_tick = store.last_ticks(tables[-1])

    def may_have(self, ticks: Iterable[Tick]) -> bool:
        """Return whether one of some ticks may be written: it may be delivered twice, or a batch may repeat."""
        return any(tick_ms <= self.last_tick.get(cluster, self._unknown_ms) for cluster, tick_ms in ticks)

    def add(self, ticks: Iterable[Tick]) -> None:
        """Record that a batch with these ticks is written."""
        self.first_batch = False
        for cluster, tick_ms in ticks:
            self.last_tick[cluster] = max(tick_ms, self.last_tick.get(cluster, 0))

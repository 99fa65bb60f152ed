"""What a job knows of the ticks that its tables have."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Sequence

from schemas.tables import Table
from streaming.delta.store import Store
from streaming.transforms.tick_status import Tick


class Written:
    """How far the ticks of each cluster are written.

    Attributes:
        first_batch: whether the next batch may be one that an earlier process has written in part.
        last_tick: newest tick that is written, epoch milliseconds, by cluster.
    """

    def __init__(self) -> None:
        self.first_batch = True
        self.last_tick: dict[str, int] = {}
        # Of a cluster that was not heard of lately: nobody knows how far its ticks are written.
        self._unheard_ms = sys.maxsize

    def learn(self, store: Store, tables: Sequence[Table]) -> None:
        """Make the tables where they are not there yet, and learn what is written.

        Args:
            store: tables.
            tables: what the job writes; the last one says which ticks are written.
        """
        if store.ensure(*tables):
            self.first_batch, self.last_tick, self._unheard_ms = False, {}, 0
        else:
            # A query that starts once more may repeat a batch that was written in part.
            self.first_batch = True
            self.last_tick = store.last_ticks(tables[-1])

    def may_have(self, ticks: Iterable[Tick]) -> bool:
        """Return whether one of some ticks may be written already: a tick may be delivered again."""
        return any(tick_ms <= self.last_tick.get(cluster, self._unheard_ms) for cluster, tick_ms in ticks)

    def add(self, ticks: Iterable[Tick]) -> None:
        """Note that a batch with these ticks is written."""
        self.first_batch = False
        for cluster, tick_ms in ticks:
            self.last_tick[cluster] = max(tick_ms, self.last_tick.get(cluster, 0))

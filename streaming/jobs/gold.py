"""Gold job: from the alert partition to the gold tables, with several ticks per commit."""

from __future__ import annotations

from pyspark.sql import SparkSession

from schemas.tables import PARTITION_WRITE_RATE, REASSIGNMENT_PROGRESS, THROTTLE_HEADROOM
from streaming.queries.caching import checkpointed_frames
from streaming.queries.idle_pace import IdlePace
from streaming.queries.tick_query import TickQuery
from streaming.queries.whole_ticks import CompleteTicks
from streaming.sources.ticks_topic import TicksTopic
from streaming.store.store import Store
from streaming.transforms.gold import GoldQueries

# In the order of writing: the last one shows which ticks are written.
TABLES = (REASSIGNMENT_PROGRESS, PARTITION_WRITE_RATE, THROTTLE_HEADROOM)


class GoldJob(TickQuery):
    """One streaming query over the alert partition that writes the gold tables; arguments as of ``TickQuery``."""

    name = "gold"
    tables = TABLES
    # About a thousand small ticks.
    max_offsets = 3000

    def __init__(
        self,
        spark: SparkSession,
        topic: TicksTopic,
        store: Store,
        checkpoint: str,
        trigger_s: float,
        pace: IdlePace | None = None,
    ) -> None:
        super().__init__(spark, topic, store, checkpoint, trigger_s, pace)
        self._queries = GoldQueries()

    def _write(self, complete: CompleteTicks) -> None:
        since_ms = self._written_since(complete.ticks)
        with checkpointed_frames() as cache:
            rows = self._queries.rows(complete.messages, cache)
            frames = {REASSIGNMENT_PROGRESS: rows.progress, PARTITION_WRITE_RATE: rows.write_rate}
            frames = (frames if complete.any_moves else {}) | {THROTTLE_HEADROOM: rows.headroom}
            for table, frame in frames.items():
                self._append(frame, table, since_ms)

"""The gold job: from the alert lane to the gold tables, several ticks in one commit."""

from __future__ import annotations

from pyspark.sql import SparkSession

from schemas.tables import PARTITION_WRITE_RATE, REASSIGNMENT_PROGRESS, THROTTLE_HEADROOM
from streaming.delta.store import Store
from streaming.queries.caching import computing
from streaming.queries.tick_query import TickQuery
from streaming.queries.whole_ticks import CompleteTicks
from streaming.sources.ticks_topic import TicksTopic
from streaming.transforms.gold import GoldQueries

TABLES = (REASSIGNMENT_PROGRESS, PARTITION_WRITE_RATE, THROTTLE_HEADROOM)


class GoldJob(TickQuery):
    """One streaming query over the alert lane that writes the gold tables; its arguments are those of ``TickQuery``."""

    name = "gold"
    tables = TABLES
    # A thousand small ticks.
    max_offsets = 3000

    def __init__(self, spark: SparkSession, topic: TicksTopic, store: Store, checkpoint: str, trigger_s: float) -> None:
        super().__init__(spark, topic, store, checkpoint, trigger_s)
        self._queries = GoldQueries()

    def _write(self, whole: CompleteTicks) -> None:
        since_ms = self._written_since(whole.ticks)
        with computing() as compute:
            rows = self._queries.rows(whole.messages, compute)
            frames = {REASSIGNMENT_PROGRESS: rows.progress, PARTITION_WRITE_RATE: rows.write_rate}
            frames = (frames if whole.any_moves else {}) | {THROTTLE_HEADROOM: rows.headroom}
            for table, frame in frames.items():
                self._append(frame, table, since_ms)

"""The gold job: from the alert lane to the gold tables, several ticks in one commit."""

from __future__ import annotations

import sys

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from schemas.tables import PARTITION_WRITE_RATE, REASSIGNMENT_PROGRESS, THROTTLE_HEADROOM
from streaming.jobs.gate import Gate
from streaming.jobs.held import holding
from streaming.jobs.lane import WholeTicks, whole_batch
from streaming.sinks import Store
from streaming.sources import TicksTopic
from streaming.transforms.gold import gold

# In the order of writing. The headroom table comes last, for its ticks are what says that a tick is written.
TABLES = (REASSIGNMENT_PROGRESS, PARTITION_WRITE_RATE, THROTTLE_HEADROOM)


class GoldJob:
    """One streaming query over the alert lane that writes the gold tables.

    Args:
        spark: session.
        topic: ticks.
        store: tables.
        checkpoint: folder or URL of this query's checkpoint.
        trigger_s: least time between two commits.
        max_offsets: most records in one micro-batch, a thousand small ticks.
    """

    name = "gold"

    def __init__(
        self,
        spark: SparkSession,
        topic: TicksTopic,
        store: Store,
        checkpoint: str,
        trigger_s: float,
        max_offsets: int = 3000,
    ) -> None:
        self._spark = spark
        self._topic = topic
        self._store = store
        self._checkpoint = checkpoint
        self._trigger_s = trigger_s
        self._max_offsets = max_offsets
        self.gate = Gate()
        self._last_tick: dict[str, int] = {}
        self._first_batch = True

    def prepare(self) -> None:
        """Make the tables where they are not there yet, and learn what is written."""
        self._store.ensure(*TABLES)
        self._last_tick = self._store.last_ticks(THROTTLE_HEADROOM)

    def start(self) -> StreamingQuery:
        """Start; the running query is returned. A new checkpoint begins with the oldest tick there is."""
        # Before the preparations, which on one core would else stand before the first verdict, in the same queue.
        self._spark.sparkContext.setLocalProperty("spark.scheduler.pool", self.name)
        self.prepare()
        stream = self._topic.lane_stream("earliest", self._max_offsets)
        writer = stream.writeStream.queryName(self.name).option("checkpointLocation", self._checkpoint)
        paced = writer.trigger(processingTime=f"{round(self._trigger_s * 1000)} milliseconds")
        return paced.foreachBatch(self.gate.through(self.write)).start()

    def write(self, batch: DataFrame, batch_id: int) -> None:
        """Write the whole ticks of a micro-batch of the alert lane; those that are written already are passed over."""
        with whole_batch(batch, self._topic) as whole:
            if not whole.ticks:
                return
            # A tick may be delivered again; and after a crash the batch runs again that was written in part. Of a
            # cluster that was not heard of lately nobody knows.
            again = any(tick_ms <= self._last_tick.get(cluster, sys.maxsize) for cluster, tick_ms in whole.ticks)
            self._append(whole, ask=again or self._first_batch)
        self._first_batch = False
        for cluster, tick_ms in whole.ticks:
            self._last_tick[cluster] = max(tick_ms, self._last_tick.get(cluster, 0))

    def _append(self, whole: WholeTicks, ask: bool) -> None:
        """Append the rows of the ticks; ``ask``: of those only that a table does not have yet."""
        oldest_ms = min(tick_ms for _, tick_ms in whole.ticks)
        with holding() as hold:
            rows = gold(whole.messages, hold)
            frames = {REASSIGNMENT_PROGRESS: rows.progress, PARTITION_WRITE_RATE: rows.write_rate}
            frames = (frames if whole.any_moves else {}) | {THROTTLE_HEADROOM: rows.headroom}
            for table, frame in frames.items():
                self._store.append(self._store.unwritten(frame, table, oldest_ms) if ask else frame, table)

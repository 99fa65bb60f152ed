"""A job that writes whole ticks of the alert lane to tables, each once."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import ClassVar

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from schemas.tables import Table
from streaming.delta.store import Store
from streaming.queries.batch_gate import BatchGate
from streaming.queries.whole_ticks import CompleteTicks, CompleteTicksReader
from streaming.queries.written import Written
from streaming.sources.ticks_topic import TicksTopic
from streaming.transforms.tick_status import NOTHING_BESIDES, Tick


class TickQuery(ABC):
    """One streaming query over the alert lane, several ticks in one commit.

    Args:
        spark: session.
        topic: ticks.
        store: tables.
        checkpoint: folder or URL of this query's checkpoint.
        trigger_s: least time between two commits.
    """

    name: ClassVar[str]
    # What it writes; of the last one every tick has rows, and they are written last: they say that a tick is written.
    tables: ClassVar[tuple[Table, ...]]
    # Most records of the lane in one micro-batch.
    max_offsets: ClassVar[int]
    # What it has to know of a tick besides, as ``tick_status`` takes it.
    besides: ClassVar[Mapping[str, str]] = NOTHING_BESIDES

    def __init__(self, spark: SparkSession, topic: TicksTopic, store: Store, checkpoint: str, trigger_s: float) -> None:
        self._spark = spark
        self._topic = topic
        self._lane = CompleteTicksReader(topic, self.besides)
        self._store = store
        self._checkpoint = checkpoint
        self._trigger_s = trigger_s
        self.gate = BatchGate()
        self.written = Written()

    def prepare(self) -> None:
        """Make the tables where they are not there yet, and learn what is written."""
        self.written.learn(self._store, self.tables)

    def start(self) -> StreamingQuery:
        """Start; the running query is returned. A new checkpoint begins with the oldest tick there is."""
        # Before the preparations, which on one core would else stand before the first verdict, in the same queue.
        self._spark.sparkContext.setLocalProperty("spark.scheduler.pool", self.name)
        self.prepare()
        stream = self._topic.alert_stream("earliest", self.max_offsets)
        writer = stream.writeStream.queryName(self.name).option("checkpointLocation", self._checkpoint)
        paced = writer.trigger(processingTime=f"{round(self._trigger_s * 1000)} milliseconds")
        return paced.foreachBatch(self.gate.through(self.write)).start()

    def write(self, batch: DataFrame, batch_id: int) -> None:
        """Write the whole ticks of a micro-batch of the alert lane; those that are written already are passed over."""
        with self._lane.whole(batch) as whole:
            if not whole.ticks:
                return
            self._write(whole)
        self.written.add(whole.ticks)

    @abstractmethod
    def _write(self, whole: CompleteTicks) -> None:
        """Write some whole ticks."""

    def _written_since(self, ticks: Sequence[Tick]) -> int | None:
        """Return the first of some ticks if one of them may be written already, epoch milliseconds; None: none is.

        A tick may be delivered again; and after a crash the batch runs again that was written in part. In tables that
        were just made nothing is.
        """
        again = self.written.first_batch or self.written.may_have(ticks)
        return min(tick_ms for _, tick_ms in ticks) if again else None

    def _append(self, rows: DataFrame, table: Table, written_since_ms: int | None) -> None:
        """Append the rows of some ticks; ``written_since_ms``: only of those that the table does not have."""
        some = rows if written_since_ms is None else self._store.unwritten(rows, table, written_since_ms)
        self._store.append(some, table)

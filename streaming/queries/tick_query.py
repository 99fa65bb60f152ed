"""Base of the queries that write complete ticks of the alert partition to tables, each tick once."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import ClassVar

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from schemas.tables import Table
from streaming.queries.batch_gate import BatchGate
from streaming.queries.whole_ticks import CompleteTicks, CompleteTicksReader
from streaming.queries.written import Written
from streaming.sources.ticks_topic import TicksTopic
from streaming.store.store import Store
from streaming.transforms.tick_status import ExtraTickColumn, Tick


class TickQuery(ABC):
    """One streaming query over the alert partition, with several ticks per commit.

    Args:
        spark: session.
        topic: ticks.
        store: tables.
        checkpoint: folder or URL of this query's checkpoint.
        trigger_s: least time between two commits, seconds.

    Attributes:
        gate: admits its batches.
        written: which ticks its tables have.
    """

    name: ClassVar[str]
    # Tables that it writes, in order. Every tick has rows in the last one, which shows that the tick is written.
    tables: ClassVar[tuple[Table, ...]]
    # Most records of the alert partition in one micro-batch.
    max_offsets: ClassVar[int]
    # Further columns of ``tick_status`` that it needs.
    extra_columns: ClassVar[Sequence[ExtraTickColumn]] = ()

    def __init__(self, spark: SparkSession, topic: TicksTopic, store: Store, checkpoint: str, trigger_s: float) -> None:
        self._spark = spark
        self._topic = topic
        self._reader = CompleteTicksReader(topic, self.extra_columns)
        self._store = store
        self._checkpoint = checkpoint
        self._trigger_s = trigger_s
        self.gate = BatchGate()
        self.written = Written()

    def prepare(self) -> None:
        """Create missing tables, and read which ticks the existing ones have."""
        self.written.load(self._store, self.tables)

    def start(self) -> StreamingQuery:
        """Start the query and return it. A new checkpoint begins with the oldest tick in the topic."""
        # Set the pool before the preparations. On one core they would otherwise delay the first verdict.
        self._spark.sparkContext.setLocalProperty("spark.scheduler.pool", self.name)
        self.prepare()
        stream = self._topic.alert_stream("earliest", self.max_offsets)
        writer = stream.writeStream.queryName(self.name).option("checkpointLocation", self._checkpoint)
        paced = writer.trigger(processingTime=f"{round(self._trigger_s * 1000)} milliseconds")
        write = self.gate.wrap(self.write)

        def write_later(batch: DataFrame, batch_id: int) -> None:
            self.gate.pause(self.pause_s())
            write(batch, batch_id)

        return paced.foreachBatch(write_later).start()

    def pause_s(self) -> float:
        """Return the time to wait before a batch whose records are there, seconds."""
        return 0.0

    def write(self, batch: DataFrame, batch_id: int) -> None:
        """Write the complete ticks of a micro-batch of the alert partition; skip those that are written already."""
        with self._reader.read(batch) as complete:
            if not complete.ticks:
                return
            self._write(complete)
        self.written.add(complete.ticks)

    @abstractmethod
    def _write(self, complete: CompleteTicks) -> None:
        """Write the rows of some complete ticks to all tables."""

    def _written_since(self, ticks: Sequence[Tick]) -> int | None:
        """Return the earliest of some ticks if one may be written already, epoch milliseconds; None if none is.

        A tick may be delivered again, and a batch that was written in part runs again after a crash. New tables have
        nothing.
        """
        repeated = self.written.first_batch or self.written.may_have(ticks)
        return min(tick_ms for _, tick_ms in ticks) if repeated else None

    def _append(self, rows: DataFrame, table: Table, written_since_ms: int | None) -> None:
        """Append the rows of some ticks to a table.

        Args:
            rows: rows in the table's columns.
            table: table.
            written_since_ms: result of ``_written_since``; unless it is None, ticks that the table has are left out.
        """
        some = rows if written_since_ms is None else self._store.unwritten(rows, table, written_since_ms)
        self._store.append(some, table)

"""Base of the queries that write complete ticks of the alert partition to tables, each tick once."""

from __future__ import annotations

import time
from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import ClassVar

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from headroom.schemas.keys import Tick
from headroom.schemas.tables import Table
from headroom.streaming.durability.query_checkpoints import query_checkpoint
from headroom.streaming.queries.batch_gate import Batch, BatchGate
from headroom.streaming.queries.idle_pace import IdlePace
from headroom.streaming.queries.resume import prepare_start
from headroom.streaming.queries.whole_ticks import CompleteTicks, CompleteTicksReader
from headroom.streaming.queries.written import Written
from headroom.streaming.sources.ticks_topic import TicksTopic
from headroom.streaming.store.store import Store
from headroom.streaming.transforms.decode import ROW_KINDS
from headroom.streaming.transforms.tick_status import ExtraTickColumn


class TickQuery(ABC):
    """One streaming query over the alert partition, with several ticks per commit.

    Args:
        spark: session.
        topic: ticks.
        store: tables.
        checkpoint: folder or URL of this query's checkpoint.
        trigger_s: least time between two commits, seconds.
        pace: holds it back while nothing moves; None: each commit follows the trigger.

    Attributes:
        gate: admits its batches.
        written: which ticks its tables have.
        end_offset: offset after the last tick of its last batch; None if that had no complete tick.
    """

    name: ClassVar[str]
    # Tables that it writes, in order. Every tick has rows in the last one, which shows that the tick is written.
    tables: ClassVar[tuple[Table, ...]]
    # Most records of the alert partition in one micro-batch.
    max_offsets: ClassVar[int]
    # Further columns of ``tick_status`` that it needs.
    extra_columns: ClassVar[Sequence[ExtraTickColumn]] = ()
    # Kinds whose rows it needs.
    row_kinds: ClassVar[Sequence[str]] = ROW_KINDS

    def __init__(
        self,
        spark: SparkSession,
        topic: TicksTopic,
        store: Store,
        checkpoint: str,
        trigger_s: float,
        pace: IdlePace | None = None,
    ) -> None:
        self._spark = spark
        self._topic = topic
        self._reader = CompleteTicksReader(topic, self.extra_columns, self.row_kinds)
        self._store = store
        self._checkpoint = checkpoint
        self._own_checkpoint = query_checkpoint(checkpoint, store.location)
        self._trigger_s = trigger_s
        self._pace = pace
        self.gate = BatchGate()
        self.written = Written()
        self.end_offset: int | None = None

    def prepare(self) -> None:
        """Create missing tables, and read which ticks the existing ones have."""
        self.written.load(self._store, self.tables, self._own_checkpoint)

    def start(self) -> StreamingQuery:
        """Start the query and return it. A new checkpoint begins with the oldest tick in the topic."""
        # Set the pool before the preparations. On one core they would otherwise delay the first verdict.
        self._spark.sparkContext.setLocalProperty("spark.scheduler.pool", self.name)
        self._own_checkpoint.mend()
        self.prepare()
        # A new checkpoint begins with the first record: ticks that are written are left out anyway.
        prepare_start(self._spark, self._topic, self._checkpoint, self.name, all_partitions=False)
        stream = self._topic.alert_stream("earliest", self.max_offsets)
        writer = stream.writeStream.queryName(self.name).option("checkpointLocation", self._checkpoint)
        paced = writer.trigger(processingTime=f"{round(self._trigger_s * 1000)} milliseconds")
        return paced.foreachBatch(self._with_pace(self.gate.wrap(self.write))).start()

    def _with_pace(self, batch: Batch) -> Batch:
        """Return a batch function that returns when the next batch may begin; its rows are written before that.

        A crash meanwhile repeats the batch, whose ticks are then found in the tables.
        """

        def run(rows: DataFrame, batch_id: int) -> None:
            began_s = time.monotonic()
            self.gate.pause(self.pause_s())
            batch(rows, batch_id)
            # After half a tick the other half has to follow at once.
            if self._pace is not None and self.end_offset is not None and self._is_settled():
                self._pace.hold(began_s, self.end_offset, self.max_offsets, self.gate)

        return run

    def pause_s(self) -> float:
        """Return the time to wait before a batch whose records are there, seconds."""
        return 0.0

    def _is_settled(self) -> bool:
        """Return whether the rows of the last tick give no reason to expect others soon."""
        return True

    def write(self, batch: DataFrame, batch_id: int) -> None:
        """Write the complete ticks of a micro-batch of the alert partition; skip those that are written already."""
        self.end_offset = None
        with self._reader.read(batch) as complete:
            if not complete.ticks:
                return
            self._write(complete)
        self.written.add(complete.ticks)
        self.end_offset = complete.last_offsets[1]

    @abstractmethod
    def _write(self, complete: CompleteTicks) -> None:
        """Write the rows of some complete ticks to all tables."""

    def _written_since(self, ticks: Sequence[Tick]) -> int | None:
        """Return the earliest of some ticks if one may be written already, epoch milliseconds; None if none is.

        A tick may be delivered again, and a batch that was written in part runs again after a crash. New tables have
        nothing.
        """
        repeated = self.written.may_be_in_part(ticks) or self.written.may_have(ticks)
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

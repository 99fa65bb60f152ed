"""Query of the record job that copies the ticks topic to bronze, each record once."""

from __future__ import annotations

import logging
from collections.abc import Mapping

from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.streaming.query import StreamingQuery
from pyspark.sql.streaming.readwriter import DataStreamWriter

from headroom.schemas.tables import BRONZE_TICKS
from headroom.streaming.delta.locations import local_path
from headroom.streaming.durability.bronze_start import BronzeStart, read_bronze_start
from headroom.streaming.durability.query_checkpoints import query_checkpoint
from headroom.streaming.queries.resume import Start, prepare_start
from headroom.streaming.sources.ticks_topic import TicksTopic
from headroom.streaming.store.store import Store
from headroom.streaming.supervision.failure import cause_of

log = logging.getLogger(__name__)

# With the largest messages (10,000 rows) 1 GB as text, and 200 MB in files. A backlog is processed in such batches.
_MOST_OFFSETS = 2000
# Fewer messages than this wait for the idle interval: a commit to all tables costs as much for one message as for
# hundreds. A small cluster sends a dozen a tick, one of 20,000 partitions some fifty.
_FEW_OFFSETS = 200
# Longest time for a batch that a start has to finish first.
_LONGEST_BATCH_S = 300


class BronzeQuery:
    """Streaming query from the ticks topic to bronze. Records that expire unread stop it; the next start names them.

    Args:
        spark: session.
        topic: ticks.
        store: tables.
        checkpoint: folder or URL of its checkpoint.
        trigger_s: least time between two commits, seconds.
        idle_s: longest time between two commits while few messages arrive, seconds; ``trigger_s`` if it is less.

    Attributes:
        state: its checkpoint, as far as it may be damaged.
    """

    name = "bronze"

    def __init__(
        self, spark: SparkSession, topic: TicksTopic, store: Store, checkpoint: str, trigger_s: float, idle_s: float
    ) -> None:
        self._spark = spark
        self._topic = topic
        self._store = store
        self._checkpoint = checkpoint
        self.state = query_checkpoint(checkpoint, store.location)
        self._trigger_s = trigger_s
        # Spark compares the age at each trigger. A little less than a whole number of them loses none to rounding.
        self._oldest_s = max(0.0, idle_s - trigger_s / 2)

    def start(self) -> StreamingQuery:
        """Start the query and return it."""
        start = self._prepare()
        if start.has_gap:
            self._finish_batch()
            start = self._prepare()
        writer = self._writer(start.offsets).trigger(processingTime=milliseconds(self._trigger_s))
        return writer.start(self._store.location(BRONZE_TICKS))

    def _prepare(self) -> Start:
        return prepare_start(self._spark, self._topic, self._checkpoint, self.name, all_partitions=True)

    def _finish_batch(self) -> None:
        """Finish the planned batch without the records that expired."""
        query = self._writer(lost_fail=False).trigger(once=True).start(self._store.location(BRONZE_TICKS))
        try:
            query.awaitTermination(_LONGEST_BATCH_S)
        except PySparkException as error:
            # The usual start meets the same error, and is tried again.
            log.debug("the unfinished batch of bronze failed: %s", cause_of(error))
        finally:
            query.stop()

    def _writer(self, starts: Mapping[int, int] | None = None, *, lost_fail: bool = True) -> DataStreamWriter:
        """Return the writer of bronze, without a trigger.

        Args:
            starts: partition to first offset for a new checkpoint; None: the first record that is there.
            lost_fail: whether records that expired unread fail the query.
        """
        begin = self._begin() if starts is None else None
        since_ms = None if begin is None else begin.since_ms
        records = self._topic.stream(
            _MOST_OFFSETS, _FEW_OFFSETS, self._oldest_s, starts, since_ms=since_ms, lost_fail=lost_fail
        )
        rows = bronze(records if begin is None else records.where(begin.condition()))
        writer = rows.writeStream.format("delta").queryName(self.name)
        return writer.option("checkpointLocation", self._checkpoint).partitionBy(*BRONZE_TICKS.partition_by)

    def _begin(self) -> BronzeStart | None:
        """Return where the checkpoint began; None if it did with an empty table, whose first record is the topic's."""
        path = local_path(self._store.location(BRONZE_TICKS))
        if path is not None and self.state.is_new:
            begin = read_bronze_start(path, self._topic.name)
            if begin is not None:
                self.state.begin(begin.as_json())
        return BronzeStart.of_json(self.state.begun() or {})


def milliseconds(seconds: float) -> str:
    """Return an interval as a trigger takes it."""
    return f"{round(seconds * 1000)} milliseconds"


def bronze(records: DataFrame) -> DataFrame:
    """Return the rows of ``bronze/ticks`` from Kafka records."""
    dated = records.withColumn("date", F.to_date("timestamp"))
    return dated.select(*[F.col(c.name).cast(c.type).alias(c.name) for c in BRONZE_TICKS.columns])

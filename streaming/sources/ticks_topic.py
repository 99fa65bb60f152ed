"""The ticks topic as a source of Spark queries: as a stream, or a range of offsets."""

from __future__ import annotations

import json
import uuid
from collections.abc import Callable, Mapping

from pyspark.sql import DataFrame, SparkSession

from headroom.schemas.tick_messages import ALERT_PARTITION
from headroom.streaming.sources.kafka_options import offset_options
from headroom.streaming.sources.topic_position import PartitionOffsets
from headroom.streaming.sources.topic_reader import partition_states
from headroom.streaming.sources.trust import ANY, Trust

Options = dict[str, str]
# For the alert partition: a cluster elects new leaders for a dead broker's partitions within some ten seconds. The
# first tick after that must be read before missing ticks raise an alert.
_ALERT_ATTEMPT_MS = 3_000
# Kafka's clients ask any broker for metadata. One that hangs must not use up the attempt, so a second one is asked.
_ALERT_REQUEST_MS = 1_500


class TicksTopic:
    """Reader of the ticks topic.

    Args:
        spark: session.
        topic: name of the topic.
        options: result of ``kafka_options``, or a function that returns it. It is called for each stream and range,
            because the password may have been changed.
        trust: conditions of trusted ticks.

    Attributes:
        name: name of the topic.
        trust: conditions of trusted ticks. The reader does not apply them.
    """

    def __init__(
        self, spark: SparkSession, topic: str, options: Options | Callable[[], Options], trust: Trust = ANY
    ) -> None:
        self.trust = trust
        self.name = topic
        self._spark = spark
        self._options = options if callable(options) else lambda: options
        # By default Spark invents a group name per range, and keeps the consumers of a group for minutes with all
        # fetched records. Nothing joins a group of this name.
        self._range_group = f"headroom-ranges-{uuid.uuid4()}"

    def _alert_options(self) -> Options:
        options = self._options()
        attempt_ms = min(_ALERT_ATTEMPT_MS, int(options["kafka.request.timeout.ms"]))
        return options | offset_options(attempt_ms, min(_ALERT_REQUEST_MS, attempt_ms))

    def alert_stream(self, starting: str, max_offsets: int | None = None) -> DataFrame:
        """Return the alert partition as a stream of Kafka records.

        Args:
            starting: start of a new checkpoint: latest, earliest, or the result of ``starting_at``.
            max_offsets: most records in one micro-batch; None if there is no limit.
        """
        reader = self._spark.readStream.format("kafka").options(**self._alert_options())
        reader = reader.option("assign", json.dumps({self.name: [ALERT_PARTITION]})).option("startingOffsets", starting)
        # Alerts are about the present: records that retention deleted meanwhile must not stop the query.
        reader = reader.option("failOnDataLoss", "false")
        if max_offsets:
            reader = reader.option("maxOffsetsPerTrigger", max_offsets)
        return reader.load()

    def starting_at(self, offset: int) -> str:
        """Return an offset of the alert partition as a start of a new checkpoint."""
        return json.dumps({self.name: {ALERT_PARTITION: offset}})

    def states(self, offsets: Mapping[int, int], *, all_partitions: bool) -> dict[int, PartitionOffsets] | None:
        """Return what the partitions have now; None if unknown.

        Args:
            offsets: partition to the position of a query.
            all_partitions: whether to read all partitions, or only those of ``offsets``.
        """
        return partition_states(self._spark, self.name, self._options(), offsets, () if all_partitions else offsets)

    def stream(
        self,
        max_offsets: int,
        min_offsets: int,
        oldest_s: float,
        starts: Mapping[int, int] | None = None,
        *,
        since_ms: int | None = None,
        lost_fail: bool = True,
    ) -> DataFrame:
        """Return the whole topic as a stream of Kafka records.

        Args:
            max_offsets: most records in one micro-batch.
            min_offsets: fewer records wait for more.
            oldest_s: longest such wait since the last micro-batch, seconds.
            starts: partition to first offset for a new checkpoint; None: its first record.
            since_ms: without ``starts`` a new checkpoint begins with the first record of this time or later, epoch
                milliseconds; None: with the first record.
            lost_fail: whether records that expired unread fail the query. If not, it skips them.
        """
        reader = self._spark.readStream.format("kafka").options(**self._options())
        reader = reader.option("subscribe", self.name).option("maxOffsetsPerTrigger", max_offsets)
        reader = reader.option("minOffsetsPerTrigger", min_offsets)
        reader = reader.option("failOnDataLoss", str(lost_fail).lower())
        reader = reader.option("maxTriggerDelay", f"{round(oldest_s * 1000)}ms")
        if starts is None and since_ms is not None:
            # A partition without such a record has nothing to read yet.
            reader = reader.option("startingTimestamp", since_ms)
            reader = reader.option("startingOffsetsByTimestampStrategy", "latest")
        starting = "earliest" if starts is None else json.dumps({self.name: starts})
        return reader.option("startingOffsets", starting).load()

    def alert_messages_since(self, first: int) -> DataFrame:
        """Return the present records of the alert partition from offset ``first`` on."""
        return self._from({ALERT_PARTITION: first}, "latest", self._alert_options())

    def alert_range(self, first: int, end: int) -> DataFrame:
        """Return the records of the alert partition from offset ``first`` up to, not including, ``end``."""
        return self._range({ALERT_PARTITION: (first, end)}, self._alert_options())

    def ranges(self, offsets: Mapping[int, tuple[int, int]]) -> DataFrame:
        """Return the records of some partitions, each from its first offset up to, not including, its end.

        Unlike reads of the alert partition alone, they wait for a slow broker as long as ``request_timeout_ms`` says.

        Args:
            offsets: partition to first offset and end (exclusive); at least one.
        """
        return self._range(offsets, self._options())

    def _range(self, offsets: Mapping[int, tuple[int, int]], options: Options) -> DataFrame:
        first, end = ({partition: span[n] for partition, span in offsets.items()} for n in (0, 1))
        return self._from(first, json.dumps({self.name: end}), options)

    def _from(self, first: Mapping[int, int], end: str, options: Options) -> DataFrame:
        """Return the records of some partitions, each from its first offset on.

        Args:
            first: partition to first offset.
            end: Spark's option endingOffsets: latest, or JSON.
            options: result of ``kafka_options``.
        """
        reader = self._spark.read.format("kafka").options(**options)
        return (
            reader.option("assign", json.dumps({self.name: list(first)}))
            .option("startingOffsets", json.dumps({self.name: first}))
            .option("endingOffsets", end)
            .option("failOnDataLoss", "false")
            .option("kafka.group.id", self._range_group)
            .load()
        )

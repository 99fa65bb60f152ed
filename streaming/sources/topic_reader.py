"""Offsets of a topic's partitions now, read by the Kafka client in Spark's JVM with the options of Spark's queries."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from contextlib import closing
from typing import Any

from py4j.protocol import Py4JJavaError
from pyspark.sql import SparkSession

from headroom.streaming.sources.topic_position import PartitionOffsets

_PREFIX = "kafka."
_BYTES = "org.apache.kafka.common.serialization.ByteArrayDeserializer"
_CLIENT = {
    "key.deserializer": _BYTES,
    "value.deserializer": _BYTES,
    "enable.auto.commit": "false",
    "auto.offset.reset": "none",
    "allow.auto.create.topics": "false",
    # One record of each partition is read. The first batch of a partition comes whole, however large it is.
    "max.partition.fetch.bytes": "1",
    "max.poll.records": "1",
}
# Longest wait for the records, and for one of them.
_RECORDS_MS, _POLL_MS = 10_000, 500


def partition_states(
    spark: SparkSession, topic: str, options: Mapping[str, str], offsets: Mapping[int, int], only: Collection[int] = ()
) -> dict[int, PartitionOffsets] | None:
    """Return what the partitions of a topic have now; None if they cannot be read.

    Args:
        spark: session.
        topic: name of the topic.
        options: options of Spark's connector.
        offsets: partition to the position of the query, whose records before it are looked at.
        only: partitions to read; empty: all.
    """
    jvm: Any = spark.sparkContext._jvm
    properties = jvm.java.util.Properties()
    for name, value in options.items():
        if name.startswith(_PREFIX):
            properties.put(name.removeprefix(_PREFIX), value)
    for name, value in _CLIENT.items():
        properties.put(name, value)
    try:
        with closing(_Partitions(jvm, jvm.org.apache.kafka.clients.consumer.KafkaConsumer(properties), topic)) as read:
            return read.states(offsets, only)
    except Py4JJavaError:
        return None


class _Partitions:
    """The partitions of a topic, by a client that is closed after use."""

    def __init__(self, jvm: Any, client: Any, topic: str) -> None:
        self._jvm = jvm
        self._client = client
        self._topic = topic

    def close(self) -> None:
        """Close the client."""
        self._client.close()

    def states(self, offsets: Mapping[int, int], only: Collection[int]) -> dict[int, PartitionOffsets]:
        """Return the state of all partitions, or of some."""
        numbers = [int(info.partition()) for info in self._client.partitionsFor(self._topic)]
        partitions = [self._of(number) for number in sorted(numbers) if not only or number in only]
        earliest = {p.partition(): offset for p, offset in self._client.beginningOffsets(partitions).items()}
        end = {p.partition(): offset for p, offset in self._client.endOffsets(partitions).items()}
        last_read = {p: min(offset, end[p]) - 1 for p, offset in offsets.items() if p in end}
        times_ms = self._times_ms({p: offset for p, offset in last_read.items() if offset >= earliest[p]})
        return {p: PartitionOffsets(earliest[p], end[p], times_ms.get(p)) for p in end}

    def _times_ms(self, offsets: Mapping[int, int]) -> dict[int, int]:
        """Return the timestamps of one record of each partition, epoch milliseconds; none of those not answered."""
        times_ms: dict[int, int] = {}
        for number, offset in offsets.items():
            partition = self._of(number)
            self._client.assign([partition])
            self._client.seek(partition, offset)
            for _ in range(_RECORDS_MS // _POLL_MS):
                records = self._client.poll(self._jvm.java.time.Duration.ofMillis(_POLL_MS)).records(partition)
                if len(records):
                    if records[0].offset() == offset:
                        times_ms[number] = int(records[0].timestamp())
                    break
        return times_ms

    def _of(self, partition: int) -> Any:
        return self._jvm.org.apache.kafka.common.TopicPartition(self._topic, partition)

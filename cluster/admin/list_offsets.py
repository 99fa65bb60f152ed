"""Offsets of partitions from the leader of each: log start, log end, last stable offset, and offsets by time."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from typing import Any, NamedTuple

from kafka.protocol.consumer import ListOffsetsRequest

from headroom.cluster.connection.admin_connection import AdminConnection
from headroom.schemas.keys import TopicPartition

# Timestamps that stand for an offset (``ListOffsetsRequest``). The one of the first offset to upload (-6) has no answer
# where all is uploaded.
END, START, NEWEST, FIRST_LOCAL, LAST_UPLOADED = -1, -2, -3, -4, -5
# First version of the request with isolation levels, with ``NEWEST``, and with all of these timestamps.
WITH_ISOLATION, WITH_NEWEST, WITH_ALL = 2, 7, 9
_READ_COMMITTED = 1
_Topic = ListOffsetsRequest.ListOffsetsTopic


class ListedOffset(NamedTuple):
    """An offset of a partition.

    Attributes:
        offset: the offset; -1 if the partition has none.
        timestamp_ms: timestamp of the record there, epoch milliseconds; None if the request is not about a record.
    """

    offset: int
    timestamp_ms: int | None


def list_offsets(
    connection: AdminConnection,
    leader: int,
    times: Mapping[TopicPartition, int],
    timeout_s: float,
    *,
    committed: bool = False,
    min_version: int = WITH_ISOLATION,
) -> dict[TopicPartition, ListedOffset]:
    """Return an offset of each partition; those that the broker does not lead are missing.

    Args:
        connection: the admin connection.
        leader: broker that leads the partitions.
        times: by partition, a timestamp in epoch milliseconds, for the first record from then on, or one that stands
            for an offset.
        timeout_s: longest wait for the answer, seconds.
        committed: whether an open transaction ends the log, so that its end is the last stable offset.
        min_version: first version of the request that the broker has to know.

    Raises:
        KafkaError: the broker did not answer, or does not know that version.
    """
    by_topic: dict[str, list[Any]] = defaultdict(list)
    for (topic, partition), timestamp in times.items():
        by_topic[topic].append(_Topic.ListOffsetsPartition(partition_index=partition, timestamp=timestamp))
    topics = [_Topic(name=topic, partitions=partitions) for topic, partitions in by_topic.items()]
    request = ListOffsetsRequest(
        isolation_level=_READ_COMMITTED if committed else 0, topics=topics, min_version=min_version
    )
    return {
        TopicPartition(topic.name, p.partition_index): ListedOffset(p.offset, p.timestamp if p.timestamp >= 0 else None)
        for topic in connection.send(request, leader, timeout_s).topics
        for p in topic.partitions
        if not p.error_code
    }

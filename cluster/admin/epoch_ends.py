"""Where leader epochs end in the log of the present leader of each partition."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from typing import Any

from kafka.protocol.consumer import OffsetForLeaderEpochRequest

from headroom.cluster.connection.admin_connection import AdminConnection
from headroom.schemas.keys import TopicPartition

_Topic = OffsetForLeaderEpochRequest.OffsetForLeaderTopic
# A consumer's request, for which DESCRIBE on the topic is enough (from version 3 on).
_CONSUMER, _MIN_VERSION = -1, 3


def epoch_ends(
    connection: AdminConnection,
    leader: int,
    epochs: Mapping[TopicPartition, int],
    timeout_s: float,
    *,
    newest: bool = False,
) -> dict[TopicPartition, int]:
    """Return the offset after the last record of an epoch of each partition; those that are unknown are missing.

    For the newest epoch this is the log end of the leader, with what no other replica has yet. For an earlier one it is
    where the next epoch begins in the leader's log. What that epoch had beyond it is gone.

    Args:
        connection: the admin connection.
        leader: broker that leads the partitions.
        epochs: epoch by partition.
        timeout_s: longest wait for the answer, seconds.
        newest: whether only a leader of that very epoch is to answer, so that the offset is its log end.

    Raises:
        KafkaError: the broker did not answer, or does not know that version.

    Source: Kafka 4.0, ``LeaderEpochFileCache.endOffsetFor``.
    """
    by_topic: dict[str, list[Any]] = defaultdict(list)
    for (topic, partition), epoch in epochs.items():
        # A leader of another epoch refuses, as it would refuse to be fetched from.
        current = epoch if newest else -1
        asked = _Topic.OffsetForLeaderPartition(partition=partition, current_leader_epoch=current, leader_epoch=epoch)
        by_topic[topic].append(asked)
    topics = [_Topic(topic=topic, partitions=partitions) for topic, partitions in by_topic.items()]
    request = OffsetForLeaderEpochRequest(replica_id=_CONSUMER, topics=topics, min_version=_MIN_VERSION)
    return {
        TopicPartition(topic.topic, p.partition): p.end_offset
        for topic in connection.send(request, leader, timeout_s).topics
        for p in topic.partitions
        if not p.error_code and p.end_offset >= 0
    }

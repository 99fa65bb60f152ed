"""Cache of topic metadata: partitions, time of the last read, and topics that may be stale."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from kafka.errors import TopicAuthorizationFailedError, UnknownTopicOrPartitionError

from headroom.cluster.model import Partition
from headroom.schemas.keys import TopicPartition

# A topic that changed, or may have, is read this many times again, because changes rarely come alone.
_STALE_READINGS = 3
# Error codes of topics that were deleted, or that this user may no longer describe.
_GONE = {UnknownTopicOrPartitionError.errno, TopicAuthorizationFailedError.errno}
_NEVER = float("-inf")
# Brokers before Kafka 2.8 report no topic ids: a recreated topic cannot be distinguished from the old one.
_NO_IDS = {"None", "00000000-0000-0000-0000-000000000000"}


@dataclass(slots=True)
class _Topic:
    topic_id: str
    partitions: dict[TopicPartition, Partition]
    last_read_s: float


class TopicCache:
    """The topics as last read; times are monotonic seconds."""

    def __init__(self) -> None:
        self._topics: dict[str, _Topic] = {}
        self._stale: dict[str, int] = {}
        self._all: dict[TopicPartition, Partition] | None = None

    def __contains__(self, topic: object) -> bool:
        return topic in self._topics

    def put_topic(self, topic: Any, read_s: float) -> bool:
        """Store a broker's answer about one topic and return whether all of it was up to date.

        A topic that the broker could not describe, or a partition with an older leader epoch, keeps its cached state
        and its age grows.
        """
        if topic.error_code in _GONE:
            self.forget([topic.name])
        elif not topic.error_code:
            return self._store(topic, read_s)
        return True

    def put_range(self, first: str, end: str | None, topics: Collection[Any], read_s: float) -> bool:
        """Store all topics from the name ``first`` up to, but not including, ``end`` (None: up to the last).

        Cached topics in this range that are not among ``topics`` were deleted and are dropped.

        Returns:
            Whether all of the answer was up to date.
        """
        names = {topic.name for topic in topics}
        self.forget([t for t in self._topics if t not in names and first <= t and (end is None or t < end)])
        current = [self.put_topic(topic, read_s) for topic in topics]
        return all(current)

    def _store(self, topic: Any, read_s: float) -> bool:
        topic_id = str(topic.topic_id)
        known = self._topics.get(topic.name)
        if known is not None and known.topic_id != topic_id:
            # Deleted and recreated: nothing of the old topic is valid.
            known = None
        before = known.partitions if known is not None else {}
        partitions = dict(_partitions_of(topic, before))
        newer = _newer_cached(before, partitions) if partitions != before and topic_id not in _NO_IDS else {}
        stale_reads = self._stale.pop(topic.name, 0) - 1
        if known is not None and partitions == before:
            known.last_read_s = read_s
        else:
            # The age of a topic is that of the oldest of its partitions.
            age_s = known.last_read_s if known is not None and newer else read_s
            self._topics[topic.name] = _Topic(topic_id, partitions | newer, age_s)
            self._all, stale_reads = None, _STALE_READINGS
        if stale_reads > 0:
            self._stale[topic.name] = stale_reads
        return not newer

    def forget(self, topics: Iterable[str]) -> None:
        """Drop deleted topics."""
        for topic in topics:
            self._stale.pop(topic, None)
            if self._topics.pop(topic, None) is not None:
                self._all = None

    def mark_stale(self, topics: Iterable[str]) -> None:
        """Mark topics that may have changed, cached or not, as stale for the next reads."""
        self._stale |= dict.fromkeys(topics, _STALE_READINGS)

    def clear_stale(self) -> None:
        """Mark every topic as up to date."""
        self._stale.clear()

    def stale_topics(self) -> list[str]:
        """Return the stale topics, the least recently read first."""
        return sorted(self._stale, key=self.last_read_s)

    def topics_on(self, brokers: Collection[int]) -> set[str]:
        """Return the topics with a replica on one of the brokers."""
        return {name.topic for name, p in self.partitions().items() if not set(p.replicas).isdisjoint(brokers)}

    def partitions(self) -> Mapping[TopicPartition, Partition]:
        """Return every partition, without reassignments."""
        if self._all is None:
            self._all = {}
            for topic in self._topics.values():
                self._all.update(topic.partitions)
        return self._all

    def count(self, topic: str) -> int:
        """Return the number of partitions of a topic; 1 if the topic is not cached."""
        known = self._topics.get(topic)
        return len(known.partitions) if known is not None else 1

    def last_read_s(self, topic: str) -> float:
        """Return when a topic was last read; negative infinity if it is not cached."""
        known = self._topics.get(topic)
        return known.last_read_s if known is not None else _NEVER

    def oldest_s(self) -> float:
        """Return the oldest read time of all topics; negative infinity without topics."""
        return min((topic.last_read_s for topic in self._topics.values()), default=_NEVER)

    def ages_ms(self, at_s: float) -> dict[str, int]:
        """Return the age of each topic at ``at_s``, milliseconds; 0 for a topic that was read later."""
        return {name: max(0, round((at_s - topic.last_read_s) * 1000)) for name, topic in self._topics.items()}

    def ids(self) -> dict[str, str]:
        """Return the id of every topic."""
        return {name: topic.topic_id for name, topic in self._topics.items()}


def _partitions_of(
    topic: Any, before: Mapping[TopicPartition, Partition]
) -> Iterator[tuple[TopicPartition, Partition]]:
    """Return the partitions of an answer by name; unchanged partitions reuse the cached object to save memory."""
    for p in topic.partitions:
        name = TopicPartition(topic.name, p.partition_index)
        now = Partition(
            topic=topic.name,
            partition=p.partition_index,
            leader=p.leader_id if p.leader_id >= 0 else None,
            leader_epoch=p.leader_epoch if p.leader_epoch >= 0 else None,
            replicas=tuple(p.replica_nodes),
            isr=tuple(p.isr_nodes),
            offline=tuple(p.offline_replicas),
        )
        known = before.get(name)
        yield name, known if known == now else now


def _newer_cached(
    known: Mapping[TopicPartition, Partition], answered: Mapping[TopicPartition, Partition]
) -> dict[TopicPartition, Partition]:
    """Return the cached partitions of a topic that are newer than those of an answer.

    They are kept completely, because replicas and ISR of an older epoch are old too. A leader epoch only rises, and no
    topic loses partitions.

    Source: ``org.apache.kafka.clients.Metadata.updateLatestMetadata``, which also skips an older epoch.
    """
    return {
        name: partition for name, partition in known.items() if _is_older(answered.get(name), partition.leader_epoch)
    }


def _is_older(partition: Partition | None, known_epoch: int | None) -> bool:
    if partition is None:
        return True
    return partition.leader_epoch is not None and known_epoch is not None and partition.leader_epoch < known_epoch

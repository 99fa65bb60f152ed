"""What is known of every topic: its partitions, when they were read, and whether they change just now."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from kafka.errors import TopicAuthorizationFailedError, UnknownTopicOrPartitionError

from cluster.model import Partition, TopicPartition

# A topic that changed, or may have, is read again at the next chances, so many times: few changes come alone.
_STALE_READINGS = 3
_GONE = {UnknownTopicOrPartitionError.errno, TopicAuthorizationFailedError.errno}
_NEVER = float("-inf")
# Of brokers that report no topic ids, before Kafka 2.8: a topic made again cannot be known from the one before it.
_NO_IDS = {"None", "00000000-0000-0000-0000-000000000000"}


@dataclass(slots=True)
class _Topic:
    topic_id: str
    partitions: dict[TopicPartition, Partition]
    read_s: float


class TopicCache:
    """The topics as they were when each was last read; times are monotonic seconds."""

    def __init__(self) -> None:
        self._topics: dict[str, _Topic] = {}
        self._stale: dict[str, int] = {}
        self._all: dict[TopicPartition, Partition] | None = None

    def __contains__(self, topic: object) -> bool:
        return topic in self._topics

    def put(self, topic: Any, read_s: float) -> bool:
        """Take over a broker's answer about one topic, and return whether all of it was up to date.

        A topic that it could not describe, or a partition that it shows as it was before, stays as it is known, and its
        age grows.
        """
        if topic.error_code in _GONE:
            self.forget([topic.name])
        elif not topic.error_code:
            return self._keep(topic, read_s)
        return True

    def put_range(self, first: str, end: str | None, topics: Collection[Any], read_s: float) -> bool:
        """Take over all topics from the name ``first`` up to, not including, ``end``; None: up to the last.

        One in between that is not among them is gone.

        Returns:
            Whether all of it was up to date.
        """
        told = {topic.name for topic in topics}
        self.forget([t for t in self._topics if t not in told and first <= t and (end is None or t < end)])
        current = [self.put(topic, read_s) for topic in topics]
        return all(current)

    def _keep(self, topic: Any, read_s: float) -> bool:
        topic_id = str(topic.topic_id)
        known = self._topics.get(topic.name)
        if known is not None and known.topic_id != topic_id:
            # Deleted and made again: nothing of the one before holds for it.
            known = None
        before = known.partitions if known is not None else {}
        partitions = dict(_partitions_of(topic, before))
        newer = _newer(before, partitions) if partitions != before and topic_id not in _NO_IDS else {}
        left = self._stale.pop(topic.name, 0) - 1
        if known is not None and partitions == before:
            known.read_s = read_s
        else:
            # The age of a topic is that of the oldest of its partitions.
            age_s = known.read_s if known is not None and newer else read_s
            self._topics[topic.name] = _Topic(topic_id, partitions | newer, age_s)
            self._all, left = None, _STALE_READINGS
        if left > 0:
            self._stale[topic.name] = left
        return not newer

    def forget(self, topics: Iterable[str]) -> None:
        """Drop topics that are gone."""
        for topic in topics:
            self._stale.pop(topic, None)
            if self._topics.pop(topic, None) is not None:
                self._all = None

    def mark_stale(self, topics: Iterable[str]) -> None:
        """Mark topics that may have changed, known or not: they are ``hot`` for the next readings."""
        self._stale |= dict.fromkeys(topics, _STALE_READINGS)

    def clear_stale(self) -> None:
        """Mark no topic as changing."""
        self._stale.clear()

    def stale_topics(self) -> list[str]:
        """Return the topics that change just now, the one that was read longest ago first."""
        return sorted(self._stale, key=self.read_s)

    def topics_on(self, brokers: Collection[int]) -> set[str]:
        """Return the topics of which one of the brokers holds a replica."""
        return {name.topic for name, p in self.partitions().items() if not set(p.replicas).isdisjoint(brokers)}

    def partitions(self) -> Mapping[TopicPartition, Partition]:
        """Return every partition, none of them with a reassignment."""
        if self._all is None:
            self._all = {}
            for topic in self._topics.values():
                self._all.update(topic.partitions)
        return self._all

    def count(self, topic: str) -> int:
        """Return how many partitions a topic has; 1 of one that is not known."""
        known = self._topics.get(topic)
        return len(known.partitions) if known is not None else 1

    def read_s(self, topic: str) -> float:
        """Return when a topic was read; never, if it is not known."""
        known = self._topics.get(topic)
        return known.read_s if known is not None else _NEVER

    def oldest_s(self) -> float:
        """Return when the topic was read that was read longest ago; without any topic, never."""
        return min((topic.read_s for topic in self._topics.values()), default=_NEVER)

    def ages_ms(self, at_s: float) -> dict[str, int]:
        """Return how long before ``at_s`` each topic was read, milliseconds; 0 for one read since."""
        return {name: max(0, round((at_s - topic.read_s) * 1000)) for name, topic in self._topics.items()}

    def ids(self) -> dict[str, str]:
        """Return the id of every topic."""
        return {name: topic.topic_id for name, topic in self._topics.items()}


def _partitions_of(
    topic: Any, before: Mapping[TopicPartition, Partition]
) -> Iterator[tuple[TopicPartition, Partition]]:
    """Return the partitions of an answer by name; one that is as before is the same object: there are many."""
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


def _newer(
    known: Mapping[TopicPartition, Partition], answer: Mapping[TopicPartition, Partition]
) -> dict[TopicPartition, Partition]:
    """Return the known partitions of a topic that an answer about the same topic shows as they were before.

    They stay whole: with an older leader its replicas and ISR are of that time too. The epoch of a leader only rises,
    and no topic loses partitions.

    Source: ``org.apache.kafka.clients.Metadata.updateLatestMetadata``, which passes over an older epoch likewise.
    """
    return {name: partition for name, partition in known.items() if _is_older(answer.get(name), partition.leader_epoch)}


def _is_older(partition: Partition | None, known_epoch: int | None) -> bool:
    if partition is None:
        return True
    return partition.leader_epoch is not None and known_epoch is not None and partition.leader_epoch < known_epoch

"""Producers and consumers of kafka-python on clusters in memory: a test decides when a record arrives, and its fate."""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from kafka import OffsetAndMetadata, TopicPartition
from kafka.consumer.fetcher import ConsumerRecord
from kafka.errors import KafkaTimeoutError, ProducerFencedError
from kafka.future import Future
from kafka.partitioner import DefaultPartitioner
from kafka.producer.future import RecordMetadata


@dataclass
class Stored:
    """One record of a log; one without a key and a value is the end of a transaction."""

    key: bytes | None
    value: bytes | None
    timestamp: int = 0

    @property
    def is_control(self) -> bool:
        return self.key is None and self.value is None


@dataclass
class FakeCluster:
    """Logs of partitions, offsets of groups, and leader epochs; the metadata of its clients too."""

    cluster_id: str
    topics_: Mapping[str, int]
    logs: dict[TopicPartition, list[Stored]] = field(default_factory=lambda: defaultdict(list))
    committed: dict[TopicPartition, int] = field(default_factory=dict)
    epochs: dict[TopicPartition, int] = field(default_factory=lambda: defaultdict(int))
    # Leaders that stay through epochs; otherwise each epoch has one of its own.
    leaders: dict[TopicPartition, int] = field(default_factory=dict)
    topic_ids: dict[str, str] = field(default_factory=dict)
    # High watermarks of partitions whose follower hangs. Consumers get nothing beyond, and leaders acknowledge.
    watermarks: dict[TopicPartition, int] = field(default_factory=dict)
    # Producer with each transactional id that is not fenced.
    writers: dict[str, FakeProducer] = field(default_factory=dict)
    # Answers a request for newer metadata.
    refresh: Callable[[], Future] = lambda: Future().success(None)

    def topics(self) -> set[str]:
        return set(self.topics_)

    def partitions_for_topic(self, topic: str) -> set[int] | None:
        return set(range(self.topics_[topic])) if topic in self.topics_ else None

    def topic_id(self, topic: str) -> str | None:
        return self.topic_ids.get(topic)

    def request_update(self) -> Future:
        return self.refresh()

    available_partitions_for_topic = partitions_for_topic

    def leader_epoch_for_partition(self, partition: TopicPartition) -> int:
        return self.epochs[partition]

    def leader_for_partition(self, partition: TopicPartition) -> int:
        return self.leaders.get(partition, self.epochs[partition])

    def watermark(self, partition: TopicPartition) -> int:
        return self.watermarks.get(partition, len(self.logs[partition]))

    def values(self, topic: str, partition: int = 0) -> list[bytes | None]:
        return [stored.value for stored in self.logs[TopicPartition(topic, partition)]]


@dataclass
class FakeProduceFuture:
    """What kafka-python's future of a record knows of its batch."""

    topic_partition: TopicPartition


class FakeFuture(Future):
    """Future of a sent record; nothing comes while a test waits, so that ``get`` does not wait either."""

    def __init__(self, batch: FakeProduceFuture) -> None:
        super().__init__()
        self._produce_future = batch

    def get(self, timeout: float | None = None) -> Any:
        if not self.is_done:
            raise KafkaTimeoutError("no answer")
        if self.exception is not None:
            raise self.exception
        return self.value


@dataclass
class InFlight:
    """A record that the producer has taken and the cluster has not answered."""

    partition: TopicPartition
    stored: Stored
    future: FakeFuture

    def acknowledge(self, offset: int) -> None:
        size = len(self.stored.value or b"")
        self.future.success(RecordMetadata(*self.partition, self.partition, offset, 0, None, 0, size, -1))


class FakeProducer:
    """Producer whose batches are answered one by one, in their order by partition.

    A batch has one record unless a test sets ``batch_records``.
    """

    def __init__(self, cluster: FakeCluster, instant: bool = False, **config: Any) -> None:
        self.config: dict[str, Any] = {
            "acks": -1,
            "transactional_id": None,
            "key_serializer": None,
            "value_serializer": None,
            "partitioner": DefaultPartitioner(),
            "max_block_ms": 1000,
            **config,
        }
        self._cluster = self._metadata = cluster
        self._instant = instant
        self.instant_topics: set[str] = set()
        self._open: list[InFlight] | None = None
        self.waiting: dict[TopicPartition, deque[InFlight]] = defaultdict(deque)
        self.batch_records = 1
        self.closed = False
        # Called once a record was taken.
        self.after_send: Callable[[], object] = lambda: None

    def send(
        self,
        topic: str,
        value: bytes | None = None,
        key: bytes | None = None,
        headers: list[tuple[str, bytes]] | None = None,
        partition: int | None = None,
        timestamp_ms: int | None = None,
    ) -> FakeFuture:
        assert not self.closed
        if partition is None:
            partition = self.config["partitioner"].partition(topic, key, key, value, value, self._cluster)
        if partition not in (self._cluster.partitions_for_topic(topic) or ()):
            raise ValueError(f"Unrecognized partition {partition} for topic {topic}")
        name = TopicPartition(topic, partition)
        sent = InFlight(name, Stored(key, value, timestamp_ms or 0), FakeFuture(self._batch(name)))
        if self._open is not None:
            self._open.append(sent)
            return sent.future
        self.waiting[sent.partition].append(sent)
        if self._instant or topic in self.instant_topics:
            self.answer(sent.partition)
        self.after_send()
        return sent.future

    def answer(self, partition: TopicPartition) -> bool:
        """Store the next batch and acknowledge its records; return whether there was one."""
        batch = self._taken(partition)
        log = self._cluster.logs[partition]
        first = len(log)
        log += [sent.stored for sent in batch]
        for offset, sent in enumerate(batch, first):
            sent.acknowledge(offset)
        return bool(batch)

    def lose(self, partition: TopicPartition, stored: bool) -> bool:
        """Let the producer give the next batch up; it may be stored."""
        batch = self._taken(partition)
        if stored:
            self._cluster.logs[partition] += [sent.stored for sent in batch]
        for sent in batch:
            sent.future.failure(KafkaTimeoutError("delivery timeout"))
        return bool(batch)

    def split(self, partition: TopicPartition, size: int) -> None:
        """Send the next batch as two, the first one of this size, as if it were too large for the broker."""
        batch = self.waiting[partition][0].future._produce_future
        sent = [one for one in self.waiting[partition] if one.future._produce_future is batch]
        for part in (sent[:size], sent[size:]):
            new = FakeProduceFuture(partition)
            for one in part:
                one.future._produce_future = new

    def _batch(self, partition: TopicPartition) -> FakeProduceFuture:
        """Return the batch that the next record belongs to."""
        waiting = [sent.future._produce_future for sent in self.waiting[partition]]
        if waiting and sum(batch is waiting[-1] for batch in waiting) < self.batch_records:
            return waiting[-1]
        return FakeProduceFuture(partition)

    def _taken(self, partition: TopicPartition) -> list[InFlight]:
        waiting = self.waiting[partition]
        batch = [waiting.popleft()] if waiting else []
        while waiting and waiting[0].future._produce_future is batch[0].future._produce_future:
            batch.append(waiting.popleft())
        return batch

    def _store(self, sent: InFlight) -> None:
        log = self._cluster.logs[sent.partition]
        log.append(sent.stored)
        sent.acknowledge(len(log) - 1)

    def partitions_for(self, topic: str) -> set[int] | None:
        return self._cluster.partitions_for_topic(topic)

    def flush(self, timeout: float | None = None) -> None:
        for partition in list(self.waiting):
            while self.answer(partition):
                pass
        if self._open is not None:
            for sent in self._open:
                self._check_not_fenced()
                self._store(sent)
            self._open = []

    def close(self, timeout: float | None = None) -> None:
        self.closed = True

    def init_transactions(self) -> None:
        self._cluster.writers[self.config["transactional_id"]] = self

    def begin_transaction(self) -> None:
        self._check_not_fenced()
        self._open = []

    def commit_transaction(self) -> None:
        self.flush()
        self._open = None
        self._cluster.logs[TopicPartition("headroom.migrations", 0)].append(Stored(None, None))

    def abort_transaction(self) -> None:
        self._open = None

    def _check_not_fenced(self) -> None:
        if self._cluster.writers.get(self.config["transactional_id"]) is not self:
            raise ProducerFencedError


class FakeConsumer:
    """Consumer of one cluster; the partitions of its group are what a test sets by ``give``."""

    def __init__(self, cluster: FakeCluster, **config: Any) -> None:
        self.config: dict[str, Any] = {
            "isolation_level": "read_committed",
            "enable_auto_commit": False,
            "group_id": None,
            "auto_offset_reset": "earliest",
            "max_poll_records": 500,
            **config,
        }
        self.cluster = self._cluster = cluster
        self._positions: dict[TopicPartition, int] = {}
        self._assigned: set[TopicPartition] = set()
        self._paused: set[TopicPartition] = set()
        self._listener: Any = None
        self.fails: Exception | None = None

    def topics(self) -> set[str]:
        self._check()
        return self.cluster.topics()

    def partitions_for_topic(self, topic: str) -> set[int] | None:
        return self.cluster.partitions_for_topic(topic)

    def subscribe(self, topics: Collection[str], listener: Any = None) -> None:
        self._listener = listener

    def give(self, partitions: Iterable[TopicPartition]) -> None:
        """Give the group member these partitions."""
        given = set(partitions)
        revoked, new = self._assigned - given, given - self._assigned
        self._listener.on_partitions_revoked(list(revoked))
        self.assign(given)
        self._listener.on_partitions_assigned(list(new))

    def assign(self, partitions: Iterable[TopicPartition]) -> None:
        self._assigned = set(partitions)
        self._positions = {p: offset for p, offset in self._positions.items() if p in self._assigned}
        self._paused &= self._assigned

    def assignment(self) -> set[TopicPartition]:
        return set(self._assigned)

    def pause(self, *partitions: TopicPartition) -> None:
        self._paused.update(partitions)

    def resume(self, *partitions: TopicPartition) -> None:
        self._paused.difference_update(partitions)

    def seek(self, partition: TopicPartition, offset: int) -> None:
        assert partition in self._assigned
        self._positions[partition] = offset

    def seek_to_beginning(self, *partitions: TopicPartition) -> None:
        for partition in partitions:
            self.seek(partition, 0)

    def beginning_offsets(self, partitions: Iterable[TopicPartition]) -> dict[TopicPartition, int]:
        self._check()
        return dict.fromkeys(partitions, 0)

    def end_offsets(self, partitions: Iterable[TopicPartition]) -> dict[TopicPartition, int]:
        self._check()
        return {partition: self.cluster.watermark(partition) for partition in partitions}

    def highwater(self, partition: TopicPartition) -> int | None:
        return self.cluster.watermark(partition)

    def position(self, partition: TopicPartition, timeout_ms: int | None = None) -> int:
        return self._positions.get(partition, 0)

    def committed(self, partition: TopicPartition, timeout_ms: int | None = None) -> int | None:
        self._check()
        return self.cluster.committed.get(partition)

    def commit(self, offsets: Mapping[TopicPartition, OffsetAndMetadata], timeout_ms: int | None = None) -> None:
        self._check()
        self.cluster.committed.update({partition: offset.offset for partition, offset in offsets.items()})

    def poll(self, timeout_ms: int = 0, max_records: int | None = None) -> dict[TopicPartition, list[ConsumerRecord]]:
        self._check()
        left = max_records or self.config["max_poll_records"]
        found: dict[TopicPartition, list[ConsumerRecord]] = {}
        for partition in sorted(self._assigned - self._paused):
            start = self._positions.setdefault(partition, 0)
            end = min(start + left, self.cluster.watermark(partition))
            stored = self.cluster.logs[partition][start:end]
            records = [
                ConsumerRecord(*partition, 0, offset, kept.timestamp, 0, kept.key, kept.value, [], None, 0, 0, 0)
                for offset, kept in enumerate(stored, start)
                if not kept.is_control
            ]
            self._positions[partition] = start + len(stored)
            left -= len(stored)
            if records:
                found[partition] = records
        return found

    def close(self, autocommit: bool = True) -> None:
        return

    def _check(self) -> None:
        if self.fails is not None:
            raise self.fails

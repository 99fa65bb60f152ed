"""Records of a partition, and offset syncs among them, as a consumer returns them."""

from __future__ import annotations

import struct
from types import SimpleNamespace
from typing import Any

import pytest
from kafka import TopicPartition as KafkaPartition
from kafka.errors import KafkaTimeoutError, OffsetOutOfRangeError

from headroom.cluster.migration.records import RecordReader
from headroom.cluster.migration.sync_topic import read_syncs
from headroom.planning.migration.mirrors.record_digest import record_digest
from headroom.planning.migration.mirrors.sync_record import SyncRecord
from headroom.schemas.errors import HeadroomError
from headroom.schemas.keys import TopicPartition
from tests.unit.fakes.admin_connection import Clock

NAME = TopicPartition("orders", 0)


def consumed(offset: int, key: bytes | None = None, value: bytes | None = b"v") -> Any:
    return SimpleNamespace(offset=offset, key=key, value=value, headers=[("h", b"1")], timestamp=1_000 + offset)


class FakeConsumer:
    """A consumer of one partition; each poll returns one batch, or moves over offsets that have no record.

    Attributes:
        batches: records by poll; a number: the position after a poll without records.
        failure: what a poll raises after the batches.
        poll_s: time that a poll without records takes.
    """

    def __init__(self, clock: Clock, *batches: list[Any] | int) -> None:
        self.clock = clock
        self.batches = list(batches)
        self.failure: Exception | None = None
        self.poll_s = 0.5
        self.polls = 0
        self.at = -1
        self.assigned: list[Any] = []

    def assign(self, names: list[Any]) -> None:
        self.assigned = names

    def seek(self, name: Any, offset: int) -> None:
        assert isinstance(name, KafkaPartition)
        assert self.assigned == [name]
        self.at = offset

    def position(self, name: Any, timeout_ms: int) -> int:
        assert isinstance(name, KafkaPartition)
        return self.at

    def poll(self, timeout_ms: int, max_records: int) -> dict[Any, list[Any]]:
        self.polls += 1
        batch = self.batches.pop(0) if self.batches else []
        if not batch and not self.batches and self.failure is not None:
            raise self.failure
        if isinstance(batch, int) or not batch:
            self.clock.now_s += self.poll_s
            self.at = batch if isinstance(batch, int) else self.at
            return {}
        self.at = batch[-1].offset + 1
        return {NAME: batch}


@pytest.fixture
def clock() -> Clock:
    return Clock()


def offsets(consumer: FakeConsumer, begin: int, end: int) -> list[int]:
    reader = RecordReader(consumer, "cluster old", 10.0, consumer.clock)
    return [record.offset for record in reader.read(NAME, begin, end)]


def test_records_are_read_in_order_and_up_to_the_end(clock: Clock) -> None:
    consumer = FakeConsumer(clock, [consumed(5), consumed(6)], [consumed(7), consumed(8), consumed(9)])
    assert offsets(consumer, 5, 9) == [5, 6, 7, 8]
    assert consumer.polls == 2


def test_nothing_is_read_of_an_empty_range(clock: Clock) -> None:
    consumer = FakeConsumer(clock)
    assert offsets(consumer, 9, 9) == []
    assert consumer.polls == 0


def test_offsets_without_a_record_are_passed_over_also_at_the_end(clock: Clock) -> None:
    """Markers of transactions: the consumer's position moves without a record."""
    consumer = FakeConsumer(clock, [consumed(5)], 8, [consumed(8)], 10)
    assert offsets(consumer, 5, 10) == [5, 8]


def test_a_record_has_its_parts_and_their_digest(clock: Clock) -> None:
    reader = RecordReader(FakeConsumer(clock, [consumed(5, b"k", None)]), "cluster old", 10.0, clock)
    (record,) = reader.read(NAME, 5, 6)
    assert (record.offset, record.key, record.value, record.timestamp_ms) == (5, b"k", None, 1_005)
    assert record.digest == record_digest(b"k", None, [("h", b"1")], 1_005)


def test_a_partition_that_gives_no_record_is_an_error_after_a_while(clock: Clock) -> None:
    consumer = FakeConsumer(clock, [consumed(5)])
    with pytest.raises(HeadroomError, match="orders-0 on cluster old: no record after offset 6 came within 10 s"):
        offsets(consumer, 5, 9)
    # Every record gives it time again: 21 polls of 0.5 s.
    assert consumer.polls == 1 + 21


@pytest.mark.parametrize("failure", [OffsetOutOfRangeError("deleted"), KafkaTimeoutError("no answer")])
def test_an_error_of_the_client_names_partition_and_cluster(clock: Clock, failure: Exception) -> None:
    consumer = FakeConsumer(clock, [consumed(5)])
    consumer.failure = failure
    with pytest.raises(HeadroomError, match=rf"orders-0 on cluster old: cannot be read \({type(failure).__name__}\)"):
        offsets(consumer, 5, 9)


def test_syncs_are_those_of_the_partitions_in_the_order_of_their_topic(clock: Clock) -> None:
    def sync(offset: int, partition: int, origin: int, target: int) -> Any:
        key = struct.pack(">h", 6) + b"orders" + struct.pack(">i", partition)
        return consumed(offset, key, struct.pack(">qq", origin, target))

    records = [sync(0, 0, 5, 6), sync(1, 1, 7, 8), sync(3, 0, 2, 9), sync(4, 2, 1, 1)]
    reader = RecordReader(FakeConsumer(clock, records), "cluster old", 10.0, clock)
    wanted = {TopicPartition("orders", p) for p in (0, 1, 3)}
    first, second = TopicPartition("orders", 0), TopicPartition("orders", 1)
    assert read_syncs(reader, NAME, 0, 5, wanted) == {
        first: [SyncRecord(0, first, 5, 6, 1_000), SyncRecord(3, first, 2, 9, 1_003)],
        second: [SyncRecord(1, second, 7, 8, 1_001)],
    }
    reader = RecordReader(FakeConsumer(clock, [sync(0, 0, 5, 6), consumed(1)]), "cluster old", 10.0, clock)
    with pytest.raises(
        HeadroomError, match="orders: its record at offset 1 is not an offset sync: it has no key or no val"
    ):
        read_syncs(reader, NAME, 0, 5, wanted)

"""The agreement topic: read to its end and followed, written by one writer."""

from __future__ import annotations

import pytest
from kafka import TopicPartition
from kafka.errors import KafkaConnectionError

from headroom.routing.agreement import AgreementReader, AgreementWriter, MigrationFencedError, reader_options
from headroom.schemas.errors import HeadroomError
from headroom.schemas.keys import TopicPartition as Name
from headroom.schemas.migrations import MIGRATIONS_TOPIC, RouterReport
from tests.unit.builders.agreements import agreement
from tests.unit.fakes.kafka_clients import FakeCluster, FakeConsumer, FakeProducer, Stored

LOG = TopicPartition(MIGRATIONS_TOPIC, 0)
KEY = ("old", Name("orders", 0))


def target() -> FakeCluster:
    return FakeCluster("new", {MIGRATIONS_TOPIC: 1, "orders": 1})


def reader(cluster: FakeCluster) -> AgreementReader:
    return AgreementReader(FakeConsumer(cluster))


def writer(cluster: FakeCluster, migration: str = "move") -> AgreementWriter:
    opened = AgreementWriter(migration, FakeProducer(cluster, transactional_id=migration), reader(cluster))
    opened.open(1.0)
    return opened


def test_what_is_written_is_read_and_followed() -> None:
    cluster = target()
    writes, reads = writer(cluster), reader(cluster)
    reads.read_to_end(1.0)
    assert reads.agreements == {}
    writes.write([agreement()])
    assert reads.poll()
    assert reads.agreements == {KEY: agreement()}
    writes.write([agreement(status="migrating")])
    reads.read_to_end(1.0)
    assert reads.agreements[KEY].status == "migrating"
    assert not reads.poll()


def test_a_withdrawn_partition_is_gone() -> None:
    cluster = target()
    writes, reads = writer(cluster), reader(cluster)
    writes.write([agreement()])
    writes.write([], withdrawn=[agreement()])
    reads.read_to_end(1.0)
    assert reads.agreements == {}


def test_a_report_is_kept_until_it_is_removed() -> None:
    cluster = target()
    report = RouterReport("writer", "a1", "producer", agreed={"move": 1})
    cluster.logs[LOG].append(Stored(report.key(), report.value()))
    reads = reader(cluster)
    reads.read_to_end(1.0)
    assert reads.reports == {"writer": report}
    cluster.logs[LOG].append(Stored(report.key(), None))
    reads.poll()
    assert reads.reports == {}


def test_the_end_is_not_reached_without_reading() -> None:
    cluster = target()
    reads = reader(cluster)
    assert not reads.at_end
    with pytest.raises(HeadroomError, match="not read to its end"):
        reads.poll()
    reads.read_to_end(1.0)
    assert reads.at_end


def test_an_end_that_is_not_reached_in_time_is_an_error() -> None:
    cluster = target()
    writer(cluster).write([agreement()])
    with pytest.raises(HeadroomError, match="not read to its end"):
        reader(cluster).read_to_end(0.0)


def test_a_cluster_without_the_topic_or_without_an_answer_is_an_error() -> None:
    with pytest.raises(HeadroomError, match="does not exist"):
        reader(FakeCluster("new", {"orders": 1})).read_to_end(1.0)
    consumer = FakeConsumer(target())
    consumer.fails = KafkaConnectionError()
    with pytest.raises(HeadroomError, match="KafkaConnectionError"):
        AgreementReader(consumer).read_to_end(1.0)


def test_nothing_is_read_past_a_foreign_record() -> None:
    cluster = target()
    cluster.logs[LOG].append(Stored(b"key", b"value"))
    writer_of_it = AgreementWriter("move", FakeProducer(cluster, transactional_id="move"), reader(cluster))
    with pytest.raises(HeadroomError, match="offset 0"):
        writer_of_it.open(1.0)
    reads = reader(cluster)
    for _ in range(2):
        with pytest.raises(HeadroomError, match="offset 0"):
            reads.read_to_end(1.0)
        assert not reads.at_end


def test_a_consumer_that_would_read_open_transactions_is_refused() -> None:
    with pytest.raises(HeadroomError, match="isolation_level"):
        AgreementReader(FakeConsumer(target(), isolation_level="read_uncommitted"))


def test_a_second_writer_fences_the_first() -> None:
    cluster = target()
    first = writer(cluster)
    first.write([agreement()])
    second = writer(cluster)
    with pytest.raises(HeadroomError, match="another writer"):
        first.write([agreement(status="migrating")])
    second.write([agreement(number=2, end_offset=20)])
    reads = reader(cluster)
    reads.read_to_end(1.0)
    assert reads.agreements == {KEY: agreement(number=2, end_offset=20)}


def test_a_change_that_is_not_allowed_is_not_written_nor_are_the_others() -> None:
    cluster = target()
    writes = writer(cluster)
    writes.write([agreement()])
    size = len(cluster.logs[LOG])
    with pytest.raises(HeadroomError, match="end offset"):
        writes.write([agreement(partition=1), agreement(end_offset=11)])
    with pytest.raises(HeadroomError, match="of the migration other"):
        writes.write([agreement(migration="other")])
    assert len(cluster.logs[LOG]) == size


def test_what_another_migration_has_agreed_meanwhile_is_not_overwritten() -> None:
    """Two writers of other names do not fence each other. The second one knows nothing of the first one's start."""
    cluster = target()
    first, second = writer(cluster), writer(cluster, "other")
    first.write([agreement()])
    first.write([agreement(status="migrating")])
    with pytest.raises(MigrationFencedError, match="another writer has changed orders-0 meanwhile"):
        second.write([agreement(migration="other")])
    with pytest.raises(HeadroomError, match="migration move"):
        second.write([agreement(migration="other")])
    assert read(cluster).agreements == {KEY: agreement(status="migrating")}


def test_a_change_waits_until_the_one_before_can_be_read(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its transaction ends a moment after the answer: what is read then is older than what was written."""
    cluster = target()
    writes = writer(cluster)
    writes.write([agreement()])
    size = len(cluster.logs[LOG])
    writes.write([agreement(status="migrating")])
    monkeypatch.setattr("headroom.routing.agreement.writer._READ_S", 0.05)
    writes._reader._consumer.end_offsets = lambda partitions: {LOG: size}  # type: ignore[method-assign]
    with pytest.raises(HeadroomError, match="its last change cannot be read yet"):
        writes.write([agreement(status="migrated")])


def test_the_highest_number_is_known_after_its_partition_was_withdrawn() -> None:
    cluster = target()
    writes = writer(cluster)
    writes.write([agreement(number=4)])
    writes.write([agreement(number=2, partition=1)], withdrawn=[agreement(number=4)])
    assert read(cluster).highest == {"move": 4}


def test_a_topic_that_was_recreated_is_not_read_on() -> None:
    """Its offsets are of other records, so that agreements would be passed over."""
    cluster = target()
    cluster.topic_ids[MIGRATIONS_TOPIC] = "first"
    writer(cluster).write([agreement()])
    reads = read(cluster)
    assert "auto_offset_reset" in reader_options({})
    cluster.logs[LOG].clear()
    with pytest.raises(HeadroomError, match="ends at offset 0, and was read up to 2"):
        reads.read_to_end(1.0)
    # A leader that was behind.
    assert (reads.failure, reads.at_end) == (None, False)
    cluster.topic_ids[MIGRATIONS_TOPIC] = "second"
    for _ in range(2):
        with pytest.raises(HeadroomError, match="was recreated: its id is second, not first"):
            reads.read_to_end(1.0)
    assert reads.failure is not None


def test_a_topic_with_several_partitions_is_refused() -> None:
    with pytest.raises(HeadroomError, match="has 3 partitions"):
        read(FakeCluster("new", {MIGRATIONS_TOPIC: 3}))


def read(cluster: FakeCluster) -> AgreementReader:
    reads = reader(cluster)
    reads.read_to_end(1.0)
    return reads

"""The agreement topic: read to its end and followed, written by one writer."""

from __future__ import annotations

import pytest
from kafka import TopicPartition
from kafka.errors import KafkaConnectionError

from headroom.routing.agreement import AgreementReader, AgreementWriter
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


def writer(cluster: FakeCluster) -> AgreementWriter:
    opened = AgreementWriter("move", FakeProducer(cluster, transactional_id="move"), reader(cluster))
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

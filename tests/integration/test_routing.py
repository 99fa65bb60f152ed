"""Routed clients on two real clusters: they pass a switch without losing, doubling or reordering a record."""

from __future__ import annotations

from collections import Counter
from contextlib import closing, suppress
from dataclasses import replace

from kafka import KafkaAdminClient, KafkaConsumer, KafkaProducer, TopicPartition
from kafka.admin import NewTopic
from kafka.errors import KafkaError

from benchmarks.fixtures.migrations.clients import agreement_writer, routed_consumer, routed_producer
from headroom.cluster.embedded import EmbeddedCluster
from headroom.planning.migration.agreement import NextStep, readiness
from headroom.routing import RoutedConsumer
from headroom.routing.agreement import (
    create_migrations_topic,
)
from headroom.schemas.migrations import PartitionAgreement
from tests.integration.conftest import StartCluster
from tests.support.migrations import agreement_reader_of
from tests.support.waiting import until

TOPIC = "orders"
PARTITION = TopicPartition(TOPIC, 0)
BEFORE, END, AFTER = 500, 700, 1_500


def create_topics(origin: EmbeddedCluster, target: EmbeddedCluster, partitions: int = 1) -> None:
    for cluster in (origin, target):
        with closing(KafkaAdminClient(bootstrap_servers=cluster.bootstrap_servers)) as admin:
            admin.create_topics([NewTopic(TOPIC, num_partitions=partitions, replication_factor=1)])
            if cluster is target:
                create_migrations_topic(admin, 1)


def cluster_id_of(cluster: EmbeddedCluster) -> str:
    with closing(KafkaAdminClient(bootstrap_servers=cluster.bootstrap_servers)) as admin:
        return str(admin.describe_cluster()["cluster_id"])


def end_of(cluster: EmbeddedCluster) -> int:
    with closing(KafkaConsumer(bootstrap_servers=cluster.bootstrap_servers, group_id=None)) as consumer:
        return int(consumer.end_offsets([PARTITION])[PARTITION])


def test_a_producer_and_a_consumer_pass_a_switch(start_cluster: StartCluster) -> None:
    origin, target = start_cluster(1), start_cluster(1)
    create_topics(origin, target)
    servers = origin.bootstrap_servers, target.bootstrap_servers
    reports = KafkaProducer(bootstrap_servers=target.bootstrap_servers)
    with (
        closing(reports),
        agreement_writer(target.bootstrap_servers, "move") as writer,
        routed_producer(*servers, "writer") as producer,
        routed_consumer(*servers, "readers", "reader", reports) as consumer,
    ):
        consumer.subscribe([TOPIC])
        sent = [producer.send(TOPIC, b"%d" % n, partition=0) for n in range(BEFORE)]
        producer.flush(30)
        planned = PartitionAgreement(
            migration="move",
            number=1,
            origin_cluster_id=cluster_id_of(origin),
            target_cluster_id=cluster_id_of(target),
            topic=TOPIC,
            partition=0,
            end_offset=END,
            routers=("writer", "reader"),
        )
        writer.write([planned])
        found: list[tuple[int, bytes]] = []

        def read() -> None:
            for records in consumer.poll(timeout_ms=100).values():
                found.extend((record.offset, record.value) for record in records)

        states = agreement_reader_of(target)

        def is_ready() -> bool:
            read()
            states.read_to_end(10)
            agreed = {name: report.agreed.get("move", 0) for name, report in states.reports.items()}
            return readiness(planned, agreed, end_of(origin)).step == NextStep.START

        until(is_ready, lambda: states.reports, deadline_s=60)
        writer.write([replace(planned, target_base_offset=end_of(target), status="migrating")])
        sent += [producer.send(TOPIC, b"%d" % n, partition=0) for n in range(BEFORE, AFTER)]
        producer.flush(60)

        def is_read() -> bool:
            read()
            return len(found) >= AFTER

        until(is_read, lambda: len(found), deadline_s=60)
        consumer.commit()
        states.close()
        # Client offsets have no gap at the switch.
        assert [future.get(0).offset for future in sent] == list(range(AFTER))
        assert [value for _, value in found] == [b"%d" % n for n in range(AFTER)]
        assert Counter(offset for offset, _ in found) == Counter(range(AFTER))
    assert end_of(target) == AFTER - END


def test_two_consumers_share_the_partitions_while_they_read_the_origin(start_cluster: StartCluster) -> None:
    origin, target = start_cluster(1), start_cluster(1)
    create_topics(origin, target, partitions=2)
    servers = origin.bootstrap_servers, target.bootstrap_servers
    reports = KafkaProducer(bootstrap_servers=target.bootstrap_servers)
    with (
        closing(reports),
        closing(KafkaProducer(bootstrap_servers=origin.bootstrap_servers)) as producer,
        routed_consumer(*servers, "readers", "first", reports) as first,
        routed_consumer(*servers, "readers", "second", reports) as second,
    ):
        read: dict[int, list[bytes]] = {0: [], 1: []}

        def poll(*consumers: RoutedConsumer) -> None:
            for consumer in consumers:
                for name, records in consumer.poll(timeout_ms=100).items():
                    read[name.partition].extend(record.value for record in records)
                consumer.commit()

        def has_read(count: int, *consumers: RoutedConsumer) -> bool:
            poll(*consumers)
            return min(map(len, read.values())) >= count

        def write(numbers: range) -> None:
            for number in numbers:
                for partition in read:
                    producer.send(TOPIC, b"%d" % number, partition=partition)
            producer.flush(60)

        first.subscribe([TOPIC])
        write(range(100))
        until(lambda: has_read(100, first), lambda: read, deadline_s=60)
        # It reads the origin, so its polls of the target, which assigns the partitions, do not wait.
        second.subscribe([TOPIC])

        def is_shared() -> bool:
            with suppress(KafkaError):
                # A commit is refused in the middle of a rebalance.
                poll(first, second)
            return [len(one.assignment()) for one in (first, second)] == [1, 1]

        until(is_shared, lambda: [one.assignment() for one in (first, second)], deadline_s=60)
        write(range(100, 200))
        until(lambda: has_read(200, first, second), lambda: {p: len(own) for p, own in read.items()}, deadline_s=60)
    # What was read and not committed before the rebalance may have been read again.
    assert {partition: sorted(set(map(int, own))) for partition, own in read.items()} == {
        partition: list(range(200)) for partition in read
    }

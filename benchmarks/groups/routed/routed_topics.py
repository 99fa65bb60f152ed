"""Two clusters, topics that are on both, and clients of the routing library that keep to what is agreed about them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass, replace
from typing import Any

from kafka import KafkaAdminClient, KafkaProducer, TopicPartition
from kafka.admin import NewTopic

from benchmarks.fixtures.bench_cluster import BenchCluster, await_true
from benchmarks.fixtures.migrations.brokers import BROKERS, OPTIONS
from benchmarks.fixtures.migrations.clients import (
    agreement_reader,
    agreement_writer,
    end_offsets,
    routed_consumer,
    routed_producer,
)
from headroom.planning.migration.agreement import NextStep, readiness
from headroom.routing import RoutedConsumer, RoutedProducer
from headroom.routing.agreement import (
    AgreementReader,
    AgreementWriter,
    create_migrations_topic,
)
from headroom.schemas.migrations import MigrationStatus, PartitionAgreement

_MIGRATION = "benchmark"
_READ_S, _AGREED_S = 30.0, 60.0
PARTITIONS = 4
_IN_SYNC = {"min.insync.replicas": "2"}


@dataclass(frozen=True)
class RoutedTopics:
    """Two connected clusters of three brokers.

    Attributes:
        origin: brokers of the origin.
        target: brokers of the target.
        clusters: ids of origin and target.
        writer: the only writer of agreements.
    """

    origin: str
    target: str
    clusters: tuple[str, str]
    writer: AgreementWriter

    def create(self, topic: str) -> None:
        """Create a topic on both clusters."""
        new = NewTopic(topic, num_partitions=PARTITIONS, replication_factor=BROKERS, topic_configs=_IN_SYNC)
        for servers in (self.origin, self.target):
            with closing(KafkaAdminClient(bootstrap_servers=servers)) as admin:
                admin.create_topics([new])
                admin.wait_for_topics([topic])

    def plan(self, topic: str, ends: Mapping[int, int], routers: tuple[str, ...] = ()) -> list[PartitionAgreement]:
        """Agree on end offsets of a topic, and return what is agreed about each partition.

        Args:
            topic: name of the topic.
            ends: end offset of each partition.
            routers: names of the routers that have to agree.
        """
        origin_id, target_id = self.clusters
        planned = [
            PartitionAgreement(_MIGRATION, 1, origin_id, target_id, topic, number, end_offset=end, routers=routers)
            for number, end in ends.items()
        ]
        self.writer.write(planned)
        return planned

    def start(self, planned: list[PartitionAgreement]) -> None:
        """Start once all routers have agreed: from now on the target is in use, from offset 0.

        Raises:
            HeadroomError: they did not agree in time, or the origin is beyond an end offset.
        """
        with closing(self.reader()) as states:

            def is_ready() -> bool:
                states.read_to_end(_READ_S)
                agreed = {name: report.agreed.get(_MIGRATION, 0) for name, report in states.reports.items()}
                positions = end_offsets(self.origin, planned[0].topic)
                steps = {readiness(one, agreed, positions[one.partition]).step for one in planned}
                return steps == {NextStep.START}

            await_true(is_ready, _AGREED_S, f"all routers have agreed about {planned[0].topic}")
        self.writer.write(
            [replace(one, target_base_offset=0, status=MigrationStatus.MIGRATING.value) for one in planned]
        )

    def reader(self) -> AgreementReader:
        """Return a new reader of the agreement topic."""
        return agreement_reader(self.target)

    def producer(self, name: str, **options: Any) -> RoutedProducer:
        """Return a routed producer; the options are those of ``KafkaProducer``."""
        return routed_producer(self.origin, self.target, name, **options)

    def consumer(self, name: str, reports: KafkaProducer) -> RoutedConsumer:
        """Return a routed consumer, whose reports go to the target by the producer."""
        return routed_consumer(self.origin, self.target, name, name, reports)


def partitions_of(topic: str) -> list[TopicPartition]:
    """Return the partitions of a topic."""
    return [TopicPartition(topic, number) for number in range(PARTITIONS)]


@contextmanager
def routed_topics() -> Iterator[RoutedTopics]:
    """Yield two clusters with an agreement topic.

    Raises:
        HeadroomError: a broker could not be started.
    """
    with ExitStack() as stack:
        servers = [stack.enter_context(BenchCluster(BROKERS, OPTIONS)).bootstrap_servers for _ in range(2)]
        clusters = []
        for one in servers:
            admin = stack.enter_context(closing(KafkaAdminClient(bootstrap_servers=one)))
            clusters.append(admin.describe_cluster()["cluster_id"])
        create_migrations_topic(admin, BROKERS)
        writer = stack.enter_context(agreement_writer(servers[1], _MIGRATION))
        yield RoutedTopics(servers[0], servers[1], (clusters[0], clusters[1]), writer)

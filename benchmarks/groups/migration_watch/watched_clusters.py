"""An origin and a target whose watch follows migrations, with topics and agreements of both."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import dataclass
from typing import Any

from kafka import KafkaConsumer, TopicPartition
from kafka.admin import NewTopic

from benchmarks.fixtures.bench_cluster import BenchCluster
from benchmarks.fixtures.migrations.clients import agreement_reader, agreement_writer, routed_producer
from headroom.cluster.embedded import BrokerOptions
from headroom.routing import RoutedProducer
from headroom.routing.agreement import (
    AgreementReader,
    AgreementWriter,
    create_migrations_topic,
)
from headroom.schemas.migrations import PartitionAgreement

# Longest time until a watch on busy cores has judged the first tick.
START_S = 300.0
_READ_S = 30.0


@dataclass(frozen=True)
class WatchedClusters:
    """Two clusters; the configuration of the target names the origin.

    Attributes:
        origin: origin.
        target: target.
        ids: ids of origin and target.
    """

    origin: BenchCluster
    target: BenchCluster
    ids: tuple[str, str]

    def create(self, topic: str, replicas: Sequence[Sequence[int]], settings: Mapping[str, str] | None = None) -> None:
        """Create a topic on both clusters; on the target with one replica.

        Args:
            topic: name of the topic.
            replicas: replicas of each partition on the origin.
            settings: settings of the topic on the origin.
        """
        on_origin, on_target = dict(enumerate(map(list, replicas))), {number: [1] for number in range(len(replicas))}
        self.origin.admin.create_topics(
            [NewTopic(topic, -1, -1, replica_assignments=on_origin, topic_configs=dict(settings or {}))]
        )
        self.target.admin.create_topics([NewTopic(topic, -1, -1, replica_assignments=on_target)])

    def agreed(self, migration: str, topic: str, ends: Mapping[int, int], **more: Any) -> list[PartitionAgreement]:
        """Return what is agreed about partitions of a topic, by their end offsets; ``more`` as in the record."""
        return [
            PartitionAgreement(migration, 1, *self.ids, topic, number, end_offset=end, **more)
            for number, end in ends.items()
        ]

    def writer(self, migration: str) -> AbstractContextManager[AgreementWriter]:
        """Return the writer of a migration's agreements, as a context."""
        return agreement_writer(self.target.bootstrap_servers, migration)

    def reader(self) -> AgreementReader:
        """Return a new reader of the agreement topic."""
        return agreement_reader(self.target.bootstrap_servers)

    def producer(self, name: str, **options: Any) -> RoutedProducer:
        """Return a routed producer; the options are those of ``KafkaProducer``."""
        return routed_producer(self.origin.bootstrap_servers, self.target.bootstrap_servers, name, **options)


@contextmanager
def watched_clusters(
    origin_brokers: int, target_brokers: int, options: BrokerOptions | None = None
) -> Iterator[WatchedClusters]:
    """Yield two clusters with an agreement topic.

    Args:
        origin_brokers: number of brokers of the origin.
        target_brokers: number of brokers of the target.
        options: settings of the origin's brokers in addition to the built-in ones.

    Raises:
        HeadroomError: a broker could not be started.
    """
    with ExitStack() as stack:
        origin = stack.enter_context(BenchCluster(origin_brokers, options))
        target = stack.enter_context(BenchCluster(target_brokers))
        ids = [cluster.admin.describe_cluster()["cluster_id"] for cluster in (origin, target)]
        create_migrations_topic(target.admin, 1)
        target.add_section("migration.origin", {"name": "old", "bootstrap_servers": origin.bootstrap_servers})
        yield WatchedClusters(origin, target, (ids[0], ids[1]))


class OriginLog:
    """Start and end of one log of the origin, read some times a second, with the times of both.

    Args:
        origin: the origin.
        partition: the partition.

    Attributes:
        readings: monotonic time, log start and log end of each reading.
    """

    _EVERY_S = 0.1

    def __init__(self, origin: BenchCluster, partition: TopicPartition) -> None:
        self.readings: list[tuple[float, int, int]] = []
        self._consumer = KafkaConsumer(bootstrap_servers=origin.bootstrap_servers, group_id=None)
        self._partition = partition
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._read, name="origin-log", daemon=True)

    def __enter__(self) -> OriginLog:
        """Start reading."""
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        """Stop reading."""
        self._ended.set()
        self._thread.join()
        self._consumer.close()

    def _read(self) -> None:
        one = [self._partition]
        while not self._ended.wait(self._EVERY_S):
            start, end = self._consumer.beginning_offsets(one), self._consumer.end_offsets(one)
            self.readings.append((time.monotonic(), start[self._partition], end[self._partition]))

"""Scenario of the migration's demo: two clusters, a topic, applications, and the requests to Kafka."""

from __future__ import annotations

from collections.abc import Mapping

from kafka import KafkaAdminClient, KafkaConsumer, TopicPartition
from kafka.admin import NewTopic

from headroom.cluster.connection.new_client import new_client
from headroom.cluster.embedded import BrokerOptions
from headroom.schemas.config import Settings

# Three brokers each: with fewer, the origin does not survive the loss of one, and neither do acknowledged records.
BROKERS = 3
ORIGIN, TARGET = "old", "new"
MIGRATION, TOPIC = "move", "orders"
WRITER, READER, GROUP = "shop-1", "billing-1", "billing"
# Records of each partition a second. Each has an end offset of its own, which it reaches at its own rate.
RECORDS_PER_S: Mapping[int, float] = {0: 100.0, 1: 150.0, 2: 200.0, 3: 250.0}
RECORD_BYTES = 200
# How far ahead the end offset is. The longest time in which clients may be restarted, and a broker replaced.
PREPARE_S = 60.0
# By default the embedded brokers keep one copy of committed offsets, which would go with the broker that is killed.
SURVIVING = BrokerOptions({"offsets.topic.replication.factor": "3", "min.insync.replicas": "2"})
_TIMEOUT_MS = 10_000


def config_sections(origin: str) -> str:
    """Return the sections of a migration's settings, as TOML.

    Args:
        origin: bootstrap servers of the origin.
    """
    return (
        f"\n[migration]\nprepare = {PREPARE_S}\n"
        f'\n[migration.origin]\nname = "{ORIGIN}"\nbootstrap_servers = "{origin}"\n'
    )


class MigrationKafka:
    """The demo's requests to both clusters.

    Args:
        settings: settings of both.
    """

    def __init__(self, settings: Settings) -> None:
        self.origin = settings.migration.origin.bootstrap_servers
        self.target = settings.cluster.bootstrap_servers
        self._admin = new_client(KafkaAdminClient, bootstrap_servers=self.origin)

    def close(self) -> None:
        """Close the connection."""
        self._admin.close()

    def create_topic(self) -> None:
        """Create the topic on the origin, with a copy on each broker."""
        settings = {"min.insync.replicas": "2"}
        self._admin.create_topics([NewTopic(TOPIC, len(RECORDS_PER_S), BROKERS, topic_configs=settings)])

    def leaders(self) -> dict[int, int]:
        """Return the leader of each partition on the origin; -1 if it has none."""
        (topic,) = self._admin.describe_topics([TOPIC])
        return {int(p["partition_index"]): int(p["leader_id"]) for p in topic["partitions"]}

    def victim(self, end_offsets: Mapping[int, int]) -> int:
        """Return the partition whose leader is to be killed: the one with the longest time left to its end offset.

        Not one that the active controller leads: first another controller would be elected, which takes as long again.

        Args:
            end_offsets: agreed end offset of each partition.
        """
        (topic,) = self._admin.describe_metadata_quorum()["topics"]
        controller, ends = int(topic["partitions"][0]["leader_id"]), self.log_ends(self.origin)
        others = [partition for partition, leader in sorted(self.leaders().items()) if leader != controller]
        return max(others, key=lambda one: (end_offsets[one] - ends[one]) / RECORDS_PER_S[one])

    def log_ends(self, servers: str) -> dict[int, int]:
        """Return the log end of each partition on the cluster with these bootstrap servers."""
        consumer = new_client(KafkaConsumer, bootstrap_servers=servers, group_id=None)
        try:
            names = [TopicPartition(TOPIC, partition) for partition in RECORDS_PER_S]
            return {name.partition: int(end) for name, end in consumer.end_offsets(names).items()}
        finally:
            consumer.close()

"""Creation of the agreement topic."""

from __future__ import annotations

from kafka import KafkaAdminClient
from kafka.admin import NewTopic
from kafka.errors import TopicAlreadyExistsError

from headroom.schemas.migrations import MIGRATIONS_TOPIC

# A record of which one copy is left must not be taken for agreed.
_SETTINGS = {"cleanup.policy": "compact", "unclean.leader.election.enable": "false"}


def create_migrations_topic(admin: KafkaAdminClient, replication_factor: int) -> None:
    """Create the agreement topic unless it exists.

    Args:
        admin: client of the target cluster.
        replication_factor: number of replicas. From 3 on, a write needs two of them.
    """
    minimum = 2 if replication_factor >= 3 else 1
    settings = {**_SETTINGS, "min.insync.replicas": str(minimum)}
    topic = NewTopic(MIGRATIONS_TOPIC, num_partitions=1, replication_factor=replication_factor, topic_configs=settings)
    try:
        admin.create_topics([topic])
    except TopicAlreadyExistsError:
        return

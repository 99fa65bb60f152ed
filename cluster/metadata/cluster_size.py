"""Size of a cluster, for choices that depend on it."""

from __future__ import annotations

import time

from kafka.errors import KafkaError
from kafka.protocol.metadata import MetadataRequest

from headroom.cluster.connection.admin_connection import AdminConnection
from headroom.cluster.connection.failover import BrokerFailover, MetadataError
from headroom.schemas.config import ClusterSettings
from headroom.schemas.errors import HeadroomError

# What depends on the size can be decided without it, too.
_LONGEST_S = 5.0


def partition_count(settings: ClusterSettings) -> int | None:
    """Return the number of a cluster's partitions; None if no broker reports it within seconds."""
    connection = AdminConnection(settings)
    try:
        brokers = BrokerFailover(connection, min(_LONGEST_S, settings.request_timeout_ms / 1000), time.monotonic)
        answer = brokers.send_to_any("topics", MetadataRequest(topics=None, allow_auto_topic_creation=False))
        return sum(len(topic.partitions) for topic in answer.topics)
    except (HeadroomError, MetadataError, KafkaError):
        return None
    finally:
        connection.close()

"""Creation of the ticks topic, and consumers of its alert partition."""

from __future__ import annotations

import contextlib
import logging
import time
from typing import Any

from kafka import KafkaAdminClient, KafkaConsumer, TopicPartition
from kafka.errors import (
    AuthorizationError,
    BrokerNotAvailableError,
    InvalidReplicationFactorError,
    KafkaError,
    TopicAlreadyExistsError,
    UnknownBrokerIdError,
)

from headroom.cluster.connection.admin_connection import AdminConnection, ticks_options
from headroom.cluster.connection.new_client import create_no_topics, new_client
from headroom.schemas.config import Settings
from headroom.schemas.errors import HeadroomError
from headroom.schemas.tick_messages import ALERT_PARTITION

log = logging.getLogger(__name__)
_MAX_REPLICAS = 3
# A broker waits 30 s (controller.socket.timeout.ms) for a controller that hangs before it uses the next one.
_RETRY_FOR_S, _RETRY_PAUSE_S = 60.0, 1.0


def ensure_topic(settings: Settings, retry_for_s: float = _RETRY_FOR_S) -> int:
    """Create the ticks topic if it does not exist, and return its number of partitions.

    Args:
        settings: all settings.
        retry_for_s: how long transient errors are retried, such as during a controller election, seconds.

    Raises:
        HeadroomError: its cluster cannot be reached, does not answer, or refuses to create it.
    """
    start_s, logged = time.monotonic(), False
    while True:
        try:
            return _ensure_once(settings)
        # kafka-python raises a bare RuntimeError if the cluster has no controller.
        except (KafkaError, RuntimeError) as error:
            tried_s = time.monotonic() - start_s
            if not _is_transient(error) or tried_s >= retry_for_s:
                raise _failure(settings, error, tried_s) from None
            if not logged:
                name, more_s = settings.ticks.topic, retry_for_s - tried_s
                log.warning("ticks topic %s: %s; tried again for %.0f s", name, type(error).__name__, more_s)
                logged = True
        time.sleep(_RETRY_PAUSE_S)


def _ensure_once(settings: Settings) -> int:
    # A new connection per attempt, so that each may reach another broker.
    kafka = settings.ticks_cluster()
    connection = AdminConnection(kafka)
    try:
        client = connection.client()
        if settings.ticks.topic not in client.list_topics():
            _create(client, settings)
        client.wait_for_topics([settings.ticks.topic], timeout_ms=kafka.request_timeout_ms)
        return len(client.describe_topics([settings.ticks.topic])[0]["partitions"])
    finally:
        connection.close()


def _is_transient(error: KafkaError | RuntimeError) -> bool:
    transient = (BrokerNotAvailableError, UnknownBrokerIdError, RuntimeError)
    return isinstance(error, transient) or bool(getattr(error, "retriable", False))


def _failure(settings: Settings, error: KafkaError | RuntimeError, tried_s: float) -> HeadroomError:
    subject, why = f"ticks.topic {settings.ticks.topic}", type(error).__name__
    if _is_transient(error):
        rule = f"its cluster did not answer, or has no controller, for {tried_s:.0f} s ({why})"
        return HeadroomError(subject, rule, "Look for a controller or broker that hangs; then start again.")
    remedy = "Create it beforehand; the controller's log has the reason."
    if isinstance(error, AuthorizationError):
        remedy = "Grant Create and Describe on it, or create it beforehand."
    elif isinstance(error, InvalidReplicationFactorError):
        remedy = "Bring the brokers up that are down, or set a smaller ticks.replication_factor."
    return HeadroomError(subject, f"could not be read or made ({why})", remedy)


def alert_partition_consumer(settings: Settings, **options: Any) -> tuple[KafkaConsumer, TopicPartition]:
    """Return a consumer that reads the alert partition from its end on, and the partition.

    Args:
        settings: all settings.
        options: further options of the consumer.

    Raises:
        KafkaError: no broker could be reached.
        HeadroomError: no bootstrap servers, or a password file cannot be read.
    """
    options = ticks_options(settings) | {"auto_offset_reset": "latest", "enable_auto_commit": False} | options
    consumer, partition = new_client(KafkaConsumer, **options), TopicPartition(settings.ticks.topic, ALERT_PARTITION)
    create_no_topics(consumer._client.cluster)
    consumer.assign([partition])
    consumer.seek_to_end(partition)
    return consumer, partition


def topic_configs(settings: Settings, replication_factor: int) -> dict[str, str]:
    """Return the configuration of a new ticks topic."""
    return {
        "retention.ms": str(settings.ticks.retention_ms),
        "cleanup.policy": "delete",
        # With three replicas, two must have a tick, so one broker may be down; with fewer, one must.
        "min.insync.replicas": "2" if replication_factor >= _MAX_REPLICAS else "1",
    }


def _create(client: KafkaAdminClient, settings: Settings) -> None:
    brokers = len(client.describe_cluster()["brokers"])
    replicas = settings.ticks.replication_factor or min(_MAX_REPLICAS, brokers)
    topic = {
        "num_partitions": settings.ticks.partitions,
        "replication_factor": replicas,
        "configs": topic_configs(settings, replicas),
    }
    with contextlib.suppress(TopicAlreadyExistsError):
        client.create_topics({settings.ticks.topic: topic})

"""The ticks topic: made when it is not there."""

from __future__ import annotations

import contextlib
import logging
import time

from kafka import KafkaAdminClient
from kafka.errors import (
    AuthorizationError,
    BrokerNotAvailableError,
    InvalidReplicationFactorError,
    KafkaError,
    TopicAlreadyExistsError,
    UnknownBrokerIdError,
)

from cluster.connection.admin_connection import AdminConnection
from schemas.config import KafkaSettings, Settings
from schemas.errors import HeadroomError

log = logging.getLogger(__name__)
_MOST_REPLICAS = 3
# A broker waits 30 s (controller.socket.timeout.ms) for a controller that hangs, before it turns to the next one.
_PATIENCE_S, _PAUSE_S = 60.0, 1.0


def ensure_topic(settings: Settings) -> int:
    """Return the number of partitions of the ticks topic, which is made when it is not there.

    What may pass, as while a controller is elected, is tried again for a minute.

    Raises:
        HeadroomError: its cluster is out of reach, does not answer, or refuses to make it.
    """
    start_s, told = time.monotonic(), False
    while True:
        try:
            return _ensured(settings)
        # A bare RuntimeError is kafka-python's word for a cluster without a controller.
        except (KafkaError, RuntimeError) as error:
            tried_s = time.monotonic() - start_s
            if not _may_pass(error) or tried_s >= _PATIENCE_S:
                raise _failure(settings, error, tried_s) from None
            if not told:
                name, more_s = settings.ticks.topic, _PATIENCE_S - tried_s
                log.warning("ticks topic %s: %s; tried again for %.0f s", name, type(error).__name__, more_s)
                told = True
        time.sleep(_PAUSE_S)


def _ensured(settings: Settings) -> int:
    # With a link of its own, each try may come to another broker.
    home = _home(settings)
    connection = AdminConnection(home)
    try:
        client = connection.client()
        if settings.ticks.topic not in client.list_topics():
            _create(client, settings)
        client.wait_for_topics([settings.ticks.topic], timeout_ms=home.request_timeout_ms)
        return len(client.describe_topics([settings.ticks.topic])[0]["partitions"])
    finally:
        connection.close()


def _may_pass(error: KafkaError | RuntimeError) -> bool:
    lost = (BrokerNotAvailableError, UnknownBrokerIdError, RuntimeError)
    return isinstance(error, lost) or bool(getattr(error, "retriable", False))


def _failure(settings: Settings, error: KafkaError | RuntimeError, tried_s: float) -> HeadroomError:
    subject, why = f"ticks.topic {settings.ticks.topic}", type(error).__name__
    if _may_pass(error):
        rule = f"its cluster did not answer, or has no controller, for {tried_s:.0f} s ({why})"
        return HeadroomError(subject, rule, "Look for a controller or broker that hangs; then start again.")
    remedy = "Create it beforehand; the log of the controller says what it did not like."
    if isinstance(error, AuthorizationError):
        remedy = "Grant Create and Describe on it, or create it beforehand."
    elif isinstance(error, InvalidReplicationFactorError):
        remedy = "Bring the brokers up that are down, or set a smaller ticks.replication_factor."
    return HeadroomError(subject, f"could not be read or made ({why})", remedy)


def topic_configs(settings: Settings, replication_factor: int) -> dict[str, str]:
    """Return the configuration the topic is made with."""
    return {
        "retention.ms": str(settings.ticks.retention_ms),
        "cleanup.policy": "delete",
        # Of three replicas two must have a tick, and one broker may be down; of two or one, one.
        "min.insync.replicas": "2" if replication_factor >= _MOST_REPLICAS else "1",
    }


def _home(settings: Settings) -> KafkaSettings:
    return settings.ticks if settings.ticks.bootstrap_servers.strip() else settings.cluster


def _create(client: KafkaAdminClient, settings: Settings) -> None:
    brokers = len(client.describe_cluster()["brokers"])
    replicas = settings.ticks.replication_factor or min(_MOST_REPLICAS, brokers)
    topic = {
        "num_partitions": settings.ticks.partitions,
        "replication_factor": replicas,
        "configs": topic_configs(settings, replicas),
    }
    with contextlib.suppress(TopicAlreadyExistsError):
        client.create_topics({settings.ticks.topic: topic})

"""Clients of the demo's applications: those of before the migration, and those of the routing library."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any, Protocol

from kafka import KafkaConsumer, KafkaProducer
from kafka.errors import KafkaError

from headroom.cli.demo.migration.scenario import GROUP, READER, TOPIC, WRITER
from headroom.cluster.connection.new_client import new_client
from headroom.cluster.migration.agreements import new_agreement_reader
from headroom.routing import RoutedConsumer, RoutedProducer
from headroom.routing.clients import keep_joins
from headroom.schemas.config import Settings

_CLOSE_S = 5.0


class Producer(Protocol):
    """What an application needs of a producer."""

    def send(self, topic: str, value: bytes, *, partition: int) -> Any:
        """Send a record, and return the future of its metadata."""

    def flush(self, timeout: float | None = None) -> None:
        """Wait until all records are acknowledged, or have failed."""

    def close(self, timeout: float | None = None) -> None:
        """Close its connections."""


class Consumer(Protocol):
    """What an application needs of a consumer."""

    def poll(self, timeout_ms: int = 0) -> dict[Any, list[Any]]:
        """Return new records by partition."""

    def commit(self) -> None:
        """Commit all that ``poll`` has returned."""


class ApplicationClients:
    """Connects the applications to the clusters of a migration.

    Args:
        settings: settings of both clusters.
    """

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._origin = settings.migration.origin.bootstrap_servers
        self._target = settings.cluster.bootstrap_servers

    @contextmanager
    def plain_producer(self) -> Iterator[Producer]:
        """Yield a producer of the origin."""
        with _closing(_producer(self._origin)) as producer:
            yield producer

    @contextmanager
    def routed_producer(self) -> Iterator[Producer]:
        """Yield a producer that passes the switch."""
        reader = new_agreement_reader(self._settings.cluster)
        with _closing(RoutedProducer(_producer(self._origin), _producer(self._target), reader, WRITER)) as producer:
            yield producer

    @contextmanager
    def plain_consumer(self) -> Iterator[Consumer]:
        """Yield a consumer of the origin."""
        consumer = _consumer(self._origin)
        keep_joins(consumer)
        try:
            consumer.subscribe([TOPIC])
            yield consumer
        finally:
            consumer.close(autocommit=False)

    @contextmanager
    def routed_consumer(self) -> Iterator[Consumer]:
        """Yield a consumer that passes the switch."""
        reader = new_agreement_reader(self._settings.cluster)
        consumers = _consumer(self._origin), _consumer(self._target)
        with (
            _closing(_producer(self._target)) as reports,
            RoutedConsumer(*consumers, reports, reader, READER) as consumer,
        ):
            consumer.subscribe([TOPIC])
            yield consumer


def _producer(servers: str) -> KafkaProducer:
    return KafkaProducer(bootstrap_servers=servers, acks="all", linger_ms=5)


def _consumer(servers: str) -> KafkaConsumer:
    options = {"group_id": GROUP, "enable_auto_commit": False, "auto_offset_reset": "earliest"}
    return new_client(KafkaConsumer, bootstrap_servers=servers, **options)


@contextmanager
def _closing(producer: Producer) -> Iterator[Producer]:
    try:
        yield producer
    finally:
        # After an error, records may be on their way to brokers that do not answer: they are given up.
        with suppress(KafkaError):
            producer.close(timeout=_CLOSE_S)

"""Creation of kafka-python clients that leave nothing behind if they cannot connect, and create no topic by reading."""

from __future__ import annotations

import contextlib
from typing import Any, TypeVar

from kafka import KafkaAdminClient, KafkaConsumer
from kafka.cluster import ClusterMetadata

_Client = TypeVar("_Client", KafkaAdminClient, KafkaConsumer)


def new_client(kind: type[_Client], **options: Any) -> _Client:
    """Return a new, connected client.

    Its I/O thread starts before it connects. A constructor that fails leaves that thread and its 4 descriptors, so a
    process that tries again and again would end with too many open files. A KafkaProducer starts its thread last.

    Args:
        kind: class of the client.
        options: its options.

    Raises:
        Exception: whatever its constructor raises.
    """
    client: _Client = object.__new__(kind)
    try:
        client.__init__(**options)
    except BaseException:
        _discard(client)
        raise
    return client


def create_no_topics(metadata: ClusterMetadata) -> None:
    """Let the metadata requests of a client create no topic: a broker would give it partitions and settings of its own.

    kafka-python does not pass on its option ``allow_auto_create_topics``.

    Args:
        metadata: metadata of the client, before its first topic.
    """
    metadata.config["allow_auto_create_topics"] = False


def _discard(client: KafkaAdminClient | KafkaConsumer) -> None:
    with contextlib.suppress(Exception):
        client._client.close()
    with contextlib.suppress(Exception):
        client._net.stop()

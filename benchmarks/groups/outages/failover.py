"""Kafka's failover time: from the loss of a broker until Kafka can accept ticks again."""

from __future__ import annotations

import threading
import time
from typing import Any

from kafka.errors import KafkaError
from kafka.protocol.metadata import MetadataRequest

from benchmarks.fixtures.bench_cluster import BenchCluster
from benchmarks.groups.outages.blind import Span
from headroom.cluster.connection.admin_connection import AdminConnection
from headroom.schemas.errors import HeadroomError

_EVERY_S = 0.2
_REQUEST_TIMEOUT_S = 1.0
_JOIN_S = 5.0


class Failover:
    """Reads the metadata of the ticks topic on its own thread while a broker is unavailable.

    Ticks are written with ``acks=all``. So Kafka can accept one when its metadata shows, for every partition of the
    topic, a leader and in-sync replicas that are all up. The controller changes both together. If the broker comes back
    and answers before that, the failover ends too.

    Args:
        bench: cluster with all brokers up.
        broker: broker that will be unavailable.
    """

    def __init__(self, bench: BenchCluster, broker: int) -> None:
        self._topic = bench.settings.ticks.topic
        self._broker = broker
        self._others = [one for one in bench.brokers if one != broker]
        # Connects while all brokers are up.
        self._connection = AdminConnection(bench.settings.cluster)
        self._connection.client()
        self._is_back = threading.Event()
        self._ended = threading.Event()
        self._until_s: float | None = None
        self._from_s = time.monotonic()
        self._thread = threading.Thread(target=self._run, name=f"failover-{broker}", daemon=True)

    def start(self) -> None:
        """Begin: the broker becomes unavailable now."""
        self._from_s = time.monotonic()
        self._thread.start()

    def broker_is_back(self) -> None:
        """Record that the broker runs again; it may not answer yet."""
        self._is_back.set()

    def close(self) -> None:
        """Stop reading."""
        self._ended.set()
        self._thread.join(_JOIN_S)
        self._connection.close()

    @property
    def span(self) -> Span:
        """Return the time so far in which Kafka could not accept ticks."""
        return Span(self._from_s, time.monotonic() if self._until_s is None else self._until_s)

    def _run(self) -> None:
        while not self._ended.is_set():
            if self._has_recovered():
                self._until_s = time.monotonic()
                return
            self._ended.wait(_EVERY_S)

    def _has_recovered(self) -> bool:
        for node in self._others:
            answer = self._topic_metadata(node)
            if answer is not None:
                return not depends_on(answer, self._broker) or (
                    self._is_back.is_set() and self._topic_metadata(self._broker) is not None
                )
        return False

    def _topic_metadata(self, node: int) -> Any | None:
        topics = [MetadataRequest.MetadataRequestTopic(name=self._topic)]
        try:
            answer = self._connection.send(
                MetadataRequest(topics=topics, allow_auto_topic_creation=False), node, _REQUEST_TIMEOUT_S
            )
        except (KafkaError, HeadroomError):
            return None
        return answer.topics[0] if answer.topics and not answer.topics[0].error_code else None


def depends_on(topic: Any, broker: int) -> bool:
    """Return whether a partition of a topic has a broker as leader or in-sync replica, or has no leader."""
    return any(one.leader_id in (broker, -1) or broker in one.isr_nodes or one.error_code for one in topic.partitions)

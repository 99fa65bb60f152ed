"""How long Kafka itself needs until it can take a tick again after one of its brokers is gone."""

from __future__ import annotations

import threading
import time
from typing import Any

from kafka.errors import KafkaError
from kafka.protocol.metadata import MetadataRequest

from benchmarks.fixtures.bench_cluster import BenchCluster
from benchmarks.groups.outages.watching.blind import Span
from cluster.connection.admin_connection import AdminConnection
from schemas.errors import HeadroomError

_EVERY_S = 0.2
_ASK_S = 1.0
_JOIN_S = 5.0


class Failover:
    """Watches the metadata of the ticks topic while a broker is gone, on a thread of its own.

    Kafka can take a tick again when metadata name, for every partition of the topic, a leader and in-sync replicas that
    are all up: a tick is written with ``acks=all``. Both change with the same decision of the controller. A broker that
    comes back and answers before that ends it, too.

    Args:
        bench: the brokers, all up still.
        broker: which one goes.
    """

    def __init__(self, bench: BenchCluster, broker: int) -> None:
        self._topic = bench.settings.ticks.topic
        self._broker = broker
        self._others = [one for one in bench.brokers if one != broker]
        # Connected while all are up.
        self._connection = AdminConnection(bench.settings.cluster)
        self._connection.client()
        self._is_back = threading.Event()
        self._ended = threading.Event()
        self._until_s: float | None = None
        self._from_s = time.monotonic()
        self._thread = threading.Thread(target=self._run, name=f"failover-{broker}", daemon=True)

    def start(self) -> None:
        """Begin: the broker goes now."""
        self._from_s = time.monotonic()
        self._thread.start()

    def broker_is_back(self) -> None:
        """Take note that the broker runs again; it may not answer yet."""
        self._is_back.set()

    def close(self) -> None:
        """Watch no more."""
        self._ended.set()
        self._thread.join(_JOIN_S)
        self._connection.close()

    @property
    def span(self) -> Span:
        """Return the time in which Kafka could take no tick, so far."""
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
                MetadataRequest(topics=topics, allow_auto_topic_creation=False), node, _ASK_S
            )
        except (KafkaError, HeadroomError):
            return None
        return answer.topics[0] if answer.topics and not answer.topics[0].error_code else None


def depends_on(topic: Any, broker: int) -> bool:
    """Return whether metadata of a topic name a broker as leader or in-sync replica, or no leader, of a partition."""
    return any(one.leader_id in (broker, -1) or broker in one.isr_nodes or one.error_code for one in topic.partitions)

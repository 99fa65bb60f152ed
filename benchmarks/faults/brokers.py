"""Brokers that are killed, stopped, suspended, or lose a log directory, and their repair."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any

from kafka.errors import KafkaError

from benchmarks.fixtures.bench_cluster import BenchCluster, await_true
from benchmarks.fixtures.preferred_leaders import PREFERRED, is_led

# Suffix of a removed directory, so that it can be restored.
_FAILED = "-failed"
_BACK_S = 150.0
_ELECT_EVERY_S = 0.5


class BrokerFaults:
    """Faults of brokers.

    Args:
        bench: cluster of the brokers.

    Attributes:
        down: brokers that are down.
        hanging: brokers that hang.
    """

    # Replicas by partition of the ticks topic, the leader first; as Kafka has them if None.
    _ticks_replicas: Sequence[Sequence[int]] | None = None

    def __init__(self, bench: BenchCluster) -> None:
        self.down: set[int] = set()
        self.hanging: set[int] = set()
        self._bench = bench
        self._failed: set[int] = set()

    def kill(self, broker: int) -> None:
        """Kill a broker, as in a crash."""
        self.down.add(broker)
        self._bench.kill(broker)

    def stop(self, broker: int) -> None:
        """Stop a broker with a controlled shutdown."""
        self.down.add(broker)
        self._bench.stop(broker)

    def pause(self, broker: int) -> None:
        """Suspend a broker."""
        self.hanging.add(broker)
        self._bench.pause(broker)

    def fail_second_log_dir(self, broker: int) -> None:
        """Remove the second log directory of a broker. Its next checkpoint fails.

        Source: Kafka 4.3.1, ``ReplicaManager.checkpointHighWatermarks``, run every
        ``replica.high.watermark.checkpoint.interval.ms`` (5 s): an IOException takes the directory offline.
        """
        path = self._bench.log_dir(broker, second=True)
        path.rename(path.with_name(path.name + _FAILED))
        self._failed.add(broker)

    def start(self, broker: int) -> None:
        """Start a broker with all its log directories, and return when it is ready."""
        if broker in self._failed:
            path = self._bench.log_dir(broker, second=True)
            path.with_name(path.name + _FAILED).rename(path)
            self._failed.discard(broker)
        self._bench.restart(broker)
        self.down.discard(broker)

    def resume(self, broker: int) -> None:
        """Resume a suspended broker."""
        self._bench.resume(broker)
        self.hanging.discard(broker)

    def repair(self) -> None:
        """Resume and start all brokers, and let preferred leaders of the ticks topic lead.

        Raises:
            HeadroomError: a broker does not recover.
        """
        damaged = self.down | self._failed
        if not damaged and not self.hanging:
            return
        for broker in sorted(self.hanging):
            self.resume(broker)
        for broker in sorted(damaged):
            self.start(broker)
        self._bench.reconnect()
        self.elect_preferred(self._bench.settings.ticks.topic, self._ticks_replicas)

    def elect_preferred(self, topic: str, replicas: Sequence[Sequence[int]] | None = None) -> None:
        """Let the preferred leaders of a topic lead, and return once all replicas are in sync.

        Args:
            topic: name of the topic.
            replicas: replicas of its partitions, the preferred leader first; as Kafka has them if None.

        Raises:
            HeadroomError: one of them does not lead in time.
        """
        description = f"preferred leaders of {topic}, with all replicas in sync"
        await_true(lambda: self._is_led(topic, replicas), _BACK_S, description)

    def _is_led(self, topic: str, replicas: Sequence[Sequence[int]] | None) -> bool:
        """Return whether a topic is led by its preferred leaders. If not, an election is requested."""
        try:
            partitions = self._bench.admin.describe_topics([topic])[0]["partitions"]
            if is_led(partitions, replicas or _replicas(partitions)):
                return True
            self._bench.admin.elect_leaders(PREFERRED, {topic: list(range(len(replicas or partitions)))})
        # kafka-python raises a bare RuntimeError for a cluster without a controller.
        except (KafkaError, LookupError, RuntimeError):
            with suppress(KafkaError):
                self._bench.reconnect()
        time.sleep(_ELECT_EVERY_S)
        return False


def _replicas(partitions: Sequence[Mapping[str, Any]]) -> list[Sequence[int]]:
    by_number = sorted(partitions, key=lambda one: one["partition_index"])
    return [one["replica_nodes"] for one in by_number]

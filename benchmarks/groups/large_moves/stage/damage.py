"""Damage to brokers in a scene, and its repair: kills, stops and removed log directories."""

from __future__ import annotations

from contextlib import suppress

from kafka.errors import KafkaError

from benchmarks.fixtures.bench_cluster import BenchCluster, await_true
from benchmarks.fixtures.preferred_leaders import PREFERRED, is_led

# Suffix of a removed directory, so that it can be restored.
_FAILED = "-failed"
_BACK_S = 150.0


class BrokerDamage:
    """Brokers that are down, and failed log directories.

    Args:
        bench: cluster of the scenes.

    Attributes:
        down: brokers that are down.
    """

    def __init__(self, bench: BenchCluster) -> None:
        self.down: set[int] = set()
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

    def fail_second_log_dir(self, broker: int) -> None:
        """Remove the second log directory of a broker. Its next checkpoint fails.

        Source: Kafka 4.3.1, ``ReplicaManager.checkpointHighWatermarks``, run every
        ``replica.high.watermark.checkpoint.interval.ms`` (5 s): an IOException takes the directory offline.
        """
        path = self._bench.log_dir(broker, second=True)
        path.rename(path.with_name(path.name + _FAILED))
        self._failed.add(broker)

    def start(self, broker: int) -> None:
        """Start a broker with both its log directories, and return when it is ready."""
        if broker in self._failed:
            path = self._bench.log_dir(broker, second=True)
            path.with_name(path.name + _FAILED).rename(path)
            self._failed.discard(broker)
        self._bench.restart(broker)
        self.down.discard(broker)

    def repair(self) -> None:
        """Start all brokers that are down or damaged, and let preferred leaders of the ticks topic lead."""
        damaged = sorted(self.down | self._failed)
        for broker in damaged:
            self.start(broker)
        if damaged:
            await_true(self._are_ticks_restored, _BACK_S, "preferred leaders of the ticks")

    def _are_ticks_restored(self) -> bool:
        topic = self._bench.settings.ticks.topic
        with suppress(KafkaError):
            self._bench.admin.elect_leaders(PREFERRED, [topic])
            found = self._bench.admin.describe_topics([topic])[0]["partitions"]
            by_number = sorted(found, key=lambda one: one["partition_index"])
            return is_led(found, [one["replica_nodes"] for one in by_number])
        self._bench.reconnect()
        return False

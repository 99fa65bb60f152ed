"""Faults of brokers with the failover times of Kafka, and the ticks topic with replicas where scenarios need them."""

from __future__ import annotations

import time
from contextlib import suppress

from kafka import TopicPartition
from kafka.errors import TopicAlreadyExistsError, UnknownTopicOrPartitionError

from benchmarks.faults.brokers import BrokerFaults
from benchmarks.fixtures.bench_cluster import BenchCluster, failure
from benchmarks.groups.outages.blind import Span
from benchmarks.groups.outages.failover import Failover
from headroom.cluster.collector.ticks_topic import topic_configs

# Leads partition 0 of the ticks topic, takes no part in the move, and is no controller.
TICKS_LEADER = 4
# A leader and a destination of the move without a replica of the ticks topic.
DESTINATION = 3
# Replicas by partition of the ticks topic, the leader first.
TICKS_REPLICAS = ((TICKS_LEADER, 1, 2), (1, 2, TICKS_LEADER), (2, TICKS_LEADER, 1), (TICKS_LEADER, 2, 1))
# DeleteRecords takes -1 as the high watermark.
_ALL_RECORDS = -1


class OutageBrokers(BrokerFaults):
    """Faults of brokers, each with the failover time of Kafka."""

    _ticks_replicas = TICKS_REPLICAS

    def __init__(self, bench: BenchCluster) -> None:
        super().__init__(bench)
        self._failovers: list[tuple[int, Failover]] = []

    def kill(self, broker: int) -> None:
        """Kill a broker."""
        self._begin_failover(broker)
        super().kill(broker)

    def pause(self, broker: int) -> None:
        """Suspend a broker."""
        self._begin_failover(broker)
        super().pause(broker)

    def start(self, broker: int) -> None:
        """Start a broker."""
        super().start(broker)
        self._note_back(broker)

    def resume(self, broker: int) -> None:
        """Resume a suspended broker."""
        super().resume(broker)
        self._note_back(broker)

    def controller(self) -> int:
        """Return the active controller."""
        quorum = self._bench.retry(lambda: self._bench.admin.describe_metadata_quorum())
        leader: int = quorum["topics"][0]["partitions"][0]["leader_id"]
        if leader not in self._bench.brokers:
            raise failure(f"there is no active controller, but {leader}")
        return leader

    def pop_spans(self) -> list[Span]:
        """Return the times in which Kafka could not accept ticks, and clear them."""
        failovers, self._failovers = self._failovers, []
        for _, failover in failovers:
            failover.close()
        return [failover.span for _, failover in failovers]

    def _begin_failover(self, broker: int) -> None:
        failover = Failover(self._bench, broker)
        self._failovers.append((broker, failover))
        failover.start()

    def _note_back(self, broker: int) -> None:
        for unavailable, failover in self._failovers:
            if unavailable == broker:
                failover.broker_is_back()


class ReplicatedTicksTopic:
    """The ticks topic, with replicas where scenarios need them.

    Args:
        bench: cluster of the topic.
    """

    def __init__(self, bench: BenchCluster) -> None:
        self._bench = bench
        self.name = bench.settings.ticks.topic

    def renew(self) -> Span:
        """Delete the topic if it exists, create it, and return the time without it."""
        from_s = time.monotonic()
        self._bench.retry(self._delete)
        self._bench.retry(self._make)
        return Span(from_s, time.monotonic())

    def delete_records(self) -> None:
        """Delete all records of the topic."""
        everything = {TopicPartition(self.name, n): _ALL_RECORDS for n in range(len(TICKS_REPLICAS))}
        self._bench.retry(lambda: self._bench.admin.delete_records(everything))

    def add_partitions(self, count: int) -> None:
        """Add partitions with the replicas of the existing ones."""

        def add() -> None:
            count_before = len(self._bench.admin.describe_topics([self.name])[0]["partitions"])
            replicas = [list(TICKS_REPLICAS[n % len(TICKS_REPLICAS)]) for n in range(count)]
            self._bench.admin.create_partitions({self.name: {"count": count_before + count, "assignments": replicas}})

        self._bench.retry(add)

    def _delete(self) -> None:
        with suppress(UnknownTopicOrPartitionError):
            self._bench.admin.delete_topics([self.name])

    def _make(self) -> None:
        replicas = {number: list(own) for number, own in enumerate(TICKS_REPLICAS)}
        configs = topic_configs(self._bench.settings, len(TICKS_REPLICAS[0]))
        # An earlier attempt may have created it although its response was lost.
        with suppress(TopicAlreadyExistsError):
            self._bench.admin.create_topics({self.name: {"assignments": replicas, "configs": configs}})
        self._bench.admin.wait_for_topics([self.name])

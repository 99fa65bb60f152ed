"""Faults of brokers and of the ticks topic, and their repair."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from contextlib import suppress

from kafka import TopicPartition
from kafka.errors import KafkaError, TopicAlreadyExistsError, UnknownTopicOrPartitionError

from benchmarks.fixtures.bench_cluster import await_true, failure
from benchmarks.faults.leaders_in_turn import PARTITIONS
from benchmarks.fixtures.preferred_leaders import PREFERRED, is_led
from benchmarks.groups.outages.outage_cluster import OutageCluster
from benchmarks.groups.outages.blind import Span
from benchmarks.groups.outages.failover import Failover
from cluster.collector.ticks_topic import topic_configs

# Leads partition 0 of the ticks topic, takes no part in the move, and is no controller.
TICKS_LEADER = 4
# A leader and a destination of the move without a replica of the ticks topic.
DESTINATION = 3
# Replicas by partition of the ticks topic, the leader first.
TICKS_REPLICAS = ((TICKS_LEADER, 1, 2), (1, 2, TICKS_LEADER), (2, TICKS_LEADER, 1), (TICKS_LEADER, 2, 1))
_BACK_S = 150.0
_ELECT_EVERY_S = 0.5
# DeleteRecords takes -1 as the high watermark.
_ALL_RECORDS = -1


class BrokerFaults:
    """Brokers that are down or hang, and the failover times of Kafka.

    Args:
        bench: cluster of the scenarios.
        topic: topic of the move.

    Attributes:
        down: brokers that are down.
        hanging: brokers that hang.
    """

    def __init__(self, bench: OutageCluster, topic: str) -> None:
        self.down: set[int] = set()
        self.hanging: set[int] = set()
        self._bench = bench
        self._topic = topic
        self._failovers: list[tuple[int, Failover]] = []

    def kill(self, broker: int) -> None:
        """Kill a broker."""
        self._begin(broker)
        self.down.add(broker)
        self._bench.kill(broker)

    def pause(self, broker: int) -> None:
        """Suspend a broker."""
        self._begin(broker)
        self.hanging.add(broker)
        self._bench.pause(broker)

    def controller(self) -> int:
        """Return the active controller."""
        found = self._bench.retry(lambda: self._bench.admin.describe_metadata_quorum())
        leader: int = found["topics"][0]["partitions"][0]["leader_id"]
        if leader not in self._bench.brokers:
            raise failure(f"there is no active controller, but {leader}")
        return leader

    def pop_spans(self) -> list[Span]:
        """Return the times in which Kafka could not accept ticks, and clear them."""
        failovers, self._failovers = self._failovers, []
        for _, failover in failovers:
            failover.close()
        return [failover.span for _, failover in failovers]

    def bring_back(self) -> None:
        """Start and resume all brokers, and let preferred leaders of the ticks topic lead.

        Raises:
            HeadroomError: a broker does not recover.
        """
        unavailable = self.down | self.hanging
        for broker in sorted(self.hanging):
            self._bench.resume(broker)
            self._end(broker)
            self.hanging.discard(broker)
        for broker in sorted(self.down):
            self._bench.restart(broker)
            self._end(broker)
            self.down.discard(broker)
        if unavailable:
            self._bench.reconnect()
            self._lead({self._bench.settings.ticks.topic: TICKS_REPLICAS})

    def restore_leaders(self) -> None:
        """Let the preferred leaders of the move lead. Sufficient rates must be set, so that replicas catch up.

        Raises:
            HeadroomError: one of them does not lead in time.
        """
        self._lead({self._topic: [moved.before for moved in PARTITIONS]})

    def _begin(self, broker: int) -> None:
        failover = Failover(self._bench, broker)
        self._failovers.append((broker, failover))
        failover.start()

    def _end(self, broker: int) -> None:
        for unavailable, failover in self._failovers:
            if unavailable == broker:
                failover.broker_is_back()

    def _lead(self, wanted: Mapping[str, Sequence[Sequence[int]]]) -> None:
        description = f"preferred leaders of {', '.join(wanted)}, with all replicas in sync"
        await_true(lambda: self._is_led(wanted), _BACK_S, description)

    def _is_led(self, wanted: Mapping[str, Sequence[Sequence[int]]]) -> bool:
        """Return whether topics are led by their preferred leaders. If not, an election is requested.

        Args:
            wanted: replicas of each partition by topic, the preferred leader first.
        """
        try:
            found = {topic["name"]: topic["partitions"] for topic in self._bench.admin.describe_topics(list(wanted))}
            if all(is_led(found[name], replicas) for name, replicas in wanted.items()):
                return True
            self._bench.admin.elect_leaders(PREFERRED, {name: list(range(len(of))) for name, of in wanted.items()})
        except (KafkaError, KeyError, RuntimeError):
            with suppress(KafkaError):
                self._bench.reconnect()
        time.sleep(_ELECT_EVERY_S)
        return False


class ReplicatedTicksTopic:
    """The ticks topic, with replicas where scenarios need them.

    Args:
        bench: cluster of the topic.
    """

    def __init__(self, bench: OutageCluster) -> None:
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

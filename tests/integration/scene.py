"""A scene on a real cluster: topics with traffic, throttles and moves, and their state in Kafka."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from kafka import KafkaAdminClient

from headroom.cluster.embedded import EmbeddedCluster
from headroom.cluster.embedded.paced_producer import PacedProducer
from headroom.cluster.throttles.rates import apply_rates
from headroom.cluster.throttles.replica_lists import apply_lists
from headroom.planning.throttles.replica_lists import Move, lists_of_plan
from headroom.schemas.config import Settings
from headroom.schemas.keys import TopicPartition
from tests.integration.support import wait_until

MB = 1_000_000
ROLES = ("leader", "follower")
WRITE = 1 * MB
# Of a cluster of four brokers, RF 3: both gain broker 4, and broker 2 comes first in line once they move.
SLOW_MOVES = [Move(TopicPartition("w", 0), (1, 2, 3), (2, 3, 4)), Move(TopicPartition("w", 1), (2, 3, 1), (3, 1, 4))]
_SLOW_BROKERS = (1, 2, 3, 4)


class Scene:
    """Moves and throttles, asked of a cluster and looked up there.

    Args:
        cluster: the brokers.
        settings: how to reach them.
    """

    def __init__(self, cluster: EmbeddedCluster, settings: Settings) -> None:
        self._settings = settings
        self._admin = KafkaAdminClient(bootstrap_servers=cluster.bootstrap_servers)

    def close(self) -> None:
        """Close the connection."""
        self._admin.close()

    def move(self, moves: Sequence[Move]) -> None:
        """Set the throttled replica lists as Kafka's tool does, and start the moves."""
        apply_lists(self._settings, lists_of_plan(moves))
        self._reassign({m.name: list(m.after) for m in moves})

    def start_slow_moves(self, load: PacedProducer) -> None:
        """Fill the partitions of ``SLOW_MOVES``, and put them on their way to broker 4 at 3.6 MB/s.

        Each leader requires 1 MB/s x 3 followers. Destinations get less than one partition takes: neither gets in sync,
        and the moves outlast the tests.

        Args:
            load: writes to them at eight times ``WRITE``, and at ``WRITE`` afterwards.
        """
        for move in SLOW_MOVES:
            self.await_size(*move.name, 40 * MB, 120)
            load.set_rate(*move.name, WRITE)
        self.throttle(dict.fromkeys(_SLOW_BROKERS, 3.6 * MB), "leader")
        self.throttle(dict.fromkeys(_SLOW_BROKERS, 0.8 * MB), "follower")
        self.move(SLOW_MOVES)

    def reorder(self, topic: str, replicas: Mapping[int, Sequence[int]]) -> None:
        """Put the replicas of partitions in another order, and wait until they are; leaders stay as they are."""
        self._reassign({TopicPartition(topic, partition): list(order) for partition, order in replicas.items()})
        self.await_end(topic, 30)

    def cancel(self, moves: Sequence[Move]) -> None:
        """End moves where they are; those that have ended already stay so."""
        self._admin.alter_partition_reassignments({m.name: None for m in moves})
        for topic in {m.name.topic for m in moves}:
            self.await_end(topic, 30)

    def _reassign(self, targets: Mapping[TopicPartition, list[int]]) -> None:
        refused = {k: v for k, v in self._admin.alter_partition_reassignments(targets).items() if v}
        assert not refused, refused

    def throttle(self, rates_bytes_per_s: Mapping[int, float], role: str) -> None:
        """Set the rate of one role on brokers, and wait until it is in force."""
        apply_rates(self._settings, {b: round(rate) for b, rate in rates_bytes_per_s.items()}, (role,))

    def elect(self, topic: str, partition: int) -> None:
        """Elect the preferred leader of one partition."""
        self._admin.elect_leaders(0, {topic: [partition]})

    def leader(self, topic: str, partition: int) -> int:
        """Return the leader's broker id, -1 for none."""
        found = self._admin.describe_topics([topic])[0]["partitions"]
        return next(int(p["leader_id"]) for p in found if p["partition_index"] == partition)

    def moving(self, topic: str) -> bool:
        """Return whether any partition of the topic is being moved."""
        return any(found.topic == topic for found in self._admin.list_partition_reassignments())

    def log_sizes(self, topic: str, partition: int) -> dict[int, int]:
        """Return the size in bytes of a partition's log on each broker, as the brokers' disks have it."""
        return {
            int(broker["broker"]): int(p["partition_size"])
            for broker in self._admin.describe_log_dirs()
            for folder in broker["log_dirs"]
            for t in folder["topics"]
            if t["name"] == topic
            for p in t["partitions"]
            if p["partition_index"] == partition
        }

    def await_size(self, topic: str, partition: int, at_least_bytes: int, deadline_s: float) -> None:
        """Wait until a partition's log has so many bytes on every replica."""
        wait_until(
            lambda: min(self.log_sizes(topic, partition).values(), default=0) >= at_least_bytes,
            deadline_s,
            f"{at_least_bytes} bytes in {topic}-{partition}",
            lambda: self.log_sizes(topic, partition),
        )

    def await_end(self, topic: str, deadline_s: float) -> None:
        """Wait until no partition of the topic is being moved."""
        wait_until(lambda: not self.moving(topic), deadline_s, f"end of the move of {topic}")

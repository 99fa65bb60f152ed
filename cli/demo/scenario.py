"""Scenario of the demo: topics, traffic, moves and throttle, and the requests to Kafka."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from kafka import KafkaAdminClient

from headroom.cluster.connection.new_client import new_client
from headroom.cluster.throttles.rates import apply_rates
from headroom.cluster.throttles.replica_lists import apply_lists
from headroom.planning.quotas.load import PartitionTraffic
from headroom.planning.throttles.replica_lists import Move, lists_of_plan
from headroom.schemas.config import Settings
from headroom.schemas.errors import HeadroomError
from headroom.schemas.keys import TopicPartition

BROKERS = (1, 2, 3, 4)
# Enough for every broker while broker 1 leads orders-0; too low for broker 2 once it leads both partitions.
THROTTLE_BYTES_PER_S = 5_600_000
RECORD_BYTES = 10_000
_PREFERRED = 0


@dataclass(frozen=True)
class DemoPartition:
    """One partition of the demo.

    Attributes:
        move: replicas before and after the reassignment.
        live_bytes_per_s: constant write rate during the demo.
        history_bytes: bytes written before the live traffic starts.
        history_bytes_per_s: write rate of these.
    """

    move: Move
    live_bytes_per_s: float
    history_bytes: int
    history_bytes_per_s: float

    @property
    def key(self) -> tuple[str, int]:
        """Topic and number of the partition."""
        return self.move.name


# The failing move: during it the preferred leader of orders-0 is broker 2, which already leads orders-1.
ORDERS = (
    DemoPartition(Move(TopicPartition("orders", 0), (1, 2), (2, 3)), 2e6, 30_000_000, 5e6),
    DemoPartition(Move(TopicPartition("orders", 1), (2, 1), (3, 1)), 2e6, 30_000_000, 5e6),
)
# The control: its brokers and roles are not those of orders, and stay far below the same throttle. Its history is long
# enough that it still moves when the leader of orders-0 switches.
PAYMENTS = (DemoPartition(Move(TopicPartition("payments", 0), (4, 3), (4, 1)), 1e6, 80_000_000, 8e6),)
PARTITIONS = ORDERS + PAYMENTS

SWITCHING = ("orders", 0)
OLD_LEADER, NEW_LEADER = 1, 2


def traffic(leaders: Mapping[tuple[str, int], int]) -> list[PartitionTraffic]:
    """Return the traffic of the moving partitions with these leaders, before any move is complete."""
    return [_traffic(p, leaders.get(p.key, p.move.before[0])) for p in PARTITIONS]


def _traffic(p: DemoPartition, leader: int) -> PartitionTraffic:
    before, adding = p.move.before, frozenset(p.move.after) - frozenset(p.move.before)
    return PartitionTraffic(
        name=p.move.name,
        leader=leader,
        followers=tuple(b for b in (*before, *sorted(adding)) if b != leader),
        in_sync=frozenset(before),
        adding=adding,
        leader_listed=frozenset(before),
        follower_listed=adding,
        write_bytes_per_s=p.live_bytes_per_s,
    )


class DemoKafka:
    """The demo's requests to Kafka.

    Args:
        settings: settings of the embedded cluster.
    """

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._admin = new_client(KafkaAdminClient, bootstrap_servers=settings.cluster.bootstrap_servers)

    def close(self) -> None:
        """Close the connection."""
        self._admin.close()

    def create_topics(self) -> None:
        """Create the topics with the replicas before the moves, and wait until they have leaders."""
        replicas: dict[str, dict[int, list[int]]] = {}
        for p in PARTITIONS:
            replicas.setdefault(p.move.name.topic, {})[p.move.name.partition] = list(p.move.before)
        topics = {topic: {"assignments": assignments} for topic, assignments in replicas.items()}
        self._admin.create_topics(topics, wait_for_metadata=True)

    def start_moves(self) -> None:
        """Throttle all brokers and start every move, as ``kafka-reassign-partitions --execute --throttle`` does.

        Raises:
            HeadroomError: a throttle did not come into force, or Kafka refused a move.
        """
        apply_lists(self._settings, lists_of_plan(p.move for p in PARTITIONS))
        apply_rates(self._settings, dict.fromkeys(BROKERS, THROTTLE_BYTES_PER_S))
        moves = {p.move.name: list(p.move.after) for p in PARTITIONS}
        refused = {key: error for key, error in self._admin.alter_partition_reassignments(moves).items() if error}
        if refused:
            raise HeadroomError("the moves", f"were refused: {refused}", "See the brokers' logs.")

    def elect_preferred(self, topic: str, partition: int) -> None:
        """Request a preferred leader election of one partition."""
        self._admin.elect_leaders(_PREFERRED, {topic: [partition]})

    def leader(self, topic: str, partition: int) -> int:
        """Return the leader of a partition in the metadata of the responding broker; -1 if it has none."""
        partitions = self._admin.describe_topics([topic])[0]["partitions"]
        return next(int(p["leader_id"]) for p in partitions if p["partition_index"] == partition)

    def moving(self, partitions: Iterable[DemoPartition]) -> bool:
        """Return whether any of these partitions is still being moved."""
        running = {
            (reassignment.topic, reassignment.partition) for reassignment in self._admin.list_partition_reassignments()
        }
        return any(p.key in running for p in partitions)

    def missing_bytes(self, partitions: Iterable[DemoPartition]) -> int:
        """Return by how many bytes the new replicas' logs are smaller than the largest log of their partitions."""
        sizes: dict[tuple[str, int], dict[int, int]] = {}
        for broker in self._admin.describe_log_dirs():
            for folder in broker["log_dirs"]:
                for topic in folder["topics"]:
                    for p in topic["partitions"]:
                        key = (topic["name"], p["partition_index"])
                        sizes.setdefault(key, {})[broker["broker"]] = p["partition_size"]
        return sum(_missing(p, sizes.get(p.key, {})) for p in partitions)


def _missing(p: DemoPartition, size_by_broker: Mapping[int, int]) -> int:
    complete = max(size_by_broker.values(), default=0)
    return sum(complete - size_by_broker.get(b, 0) for b in p.move.after if b not in p.move.before)

"""A fake cluster whose leadership can be read and elected, for tests of election plans."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import replace

from headroom.cluster.admin.elect_leaders import ElectionResults
from headroom.cluster.elections.leadership import LeadershipSnapshot
from headroom.cluster.elections.traffic import Traffic
from headroom.cluster.model import LeaderRebalanceConfig
from headroom.planning.elections.planner import PartitionState
from headroom.planning.quotas.load import PartitionTraffic
from headroom.schemas.keys import BrokerRole, TopicPartition


class FakeCluster:
    """Partitions and brokers as a test sets them; an election does at once what was asked.

    Attributes:
        partitions: by name.
        alive: brokers that are alive.
        refused: partitions that are not elected, with Kafka's error.
        stuck: partitions that are not elected although Kafka says so.
        throttled: partitions that throttles list.
        throttles: rates in force by broker and role.
        traffic: what is measured.
        behind: partitions of which a follower in sync has fallen behind.
        balancing: how brokers are told to balance leaders.
        asked: the partitions of every request.
        then: called after every election.
    """

    def __init__(self, *partitions: PartitionState, alive: Sequence[int] = (1, 2, 3)) -> None:
        self.partitions = {p.name: p for p in partitions}
        self.alive = frozenset(alive)
        self.refused: dict[TopicPartition, str] = {}
        self.stuck: set[TopicPartition] = set()
        self.throttled: tuple[PartitionTraffic, ...] = ()
        self.throttles: dict[BrokerRole, float | None] = {}
        self.traffic = Traffic(cluster_written=100.0)
        self.behind: set[TopicPartition] = set()
        self.balancing: dict[int, LeaderRebalanceConfig] = {}
        self.asked: list[tuple[TopicPartition, ...]] = []
        self.then: Callable[[], None] = lambda: None

    def __enter__(self) -> FakeCluster:
        return self

    def __exit__(self, *_: object) -> None:
        """Need nothing."""

    def set(self, topic: str, partition: int, **values: object) -> None:
        """Change a partition."""
        self.partitions[topic, partition] = replace(self.partitions[topic, partition], **values)  # type: ignore[arg-type]

    def leader(self, topic: str, partition: int) -> int | None:
        return self.partitions[topic, partition].leader

    def leadership_with_traffic(self, watched: Collection[TopicPartition] = ()) -> LeadershipSnapshot:
        behind = frozenset(self.behind & set(watched))
        return replace(self.leadership(), traffic=self.traffic, balancing=self.balancing, behind=behind)

    def leadership(self) -> LeadershipSnapshot:
        under_replicated = frozenset(name for name, p in self.partitions.items() if not set(p.replicas) <= set(p.isr))
        return LeadershipSnapshot(dict(self.partitions), self.alive, under_replicated, self.throttled, self.throttles)

    def elect(self, names: Collection[TopicPartition]) -> ElectionResults:
        self.asked.append(tuple(names))
        elected = [name for name in names if name not in self.refused]
        for name in elected:
            if name not in self.stuck:
                self.partitions[name] = replace(self.partitions[name], leader=self.partitions[name].replicas[0])
        self.then()
        return ElectionResults(tuple(elected), (), {n: e for n, e in self.refused.items() if n in names})


def away(topic: str, partition: int, preferred: int = 1, leader: int = 2, write: float = 10.0) -> PartitionState:
    """Return a partition whose preferred broker does not lead it, all replicas in sync."""
    replicas = (preferred, *(b for b in (1, 2, 3) if b != preferred))
    return PartitionState(TopicPartition(topic, partition), leader, replicas, replicas, write_bytes_per_s=write)


def home(topic: str, partition: int, preferred: int = 1, write: float = 10.0) -> PartitionState:
    """Return a partition that its preferred broker leads."""
    return away(topic, partition, preferred, preferred, write)

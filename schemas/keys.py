"""Keys of the same facts in every layer: a tick, a partition, a replica, and the throttle rates of a broker."""

from __future__ import annotations

from enum import Enum
from typing import NamedTuple

# Cluster and time, epoch milliseconds.
Tick = tuple[str, int]


class TopicPartition(NamedTuple):
    """Topic and number of a partition; as text ``topic-partition``, as in Kafka's own logs and tools."""

    topic: str
    partition: int

    def __str__(self) -> str:
        return f"{self.topic}-{self.partition}"


class ReplicaKey(NamedTuple):
    """A replica: a partition on one broker; as text ``topic-partition on broker 1``."""

    name: TopicPartition
    broker: int

    def __str__(self) -> str:
        return f"{self.name} on broker {self.broker}"


class Role(str, Enum):
    """Role of a broker in replication; each role has its own throttle."""

    LEADER = "leader"
    FOLLOWER = "follower"


class BrokerRole(NamedTuple):
    """A broker in one role of replication; each has its own throttle."""

    broker: int
    role: Role


class DirectoryRole(str, Enum):
    """Role of a broker that moves replicas between its own log directories."""

    LOG_DIRS = "log_dirs"


class LogDirsRate(NamedTuple):
    """The throttle of a broker for moves between its own log directories."""

    broker: int
    role: DirectoryRole = DirectoryRole.LOG_DIRS


# Each of the three throttle rates of a broker. All have a broker, and a role whose value names the rate.
BrokerRate = BrokerRole | LogDirsRate

"""Keys of the same facts in every layer: a partition, and a broker in one of its two roles."""

from __future__ import annotations

from typing import NamedTuple

from schemas.alerts import Role


class TopicPartition(NamedTuple):
    """Topic and number of a partition; as text ``topic-partition``, as in Kafka's own logs and tools."""

    topic: str
    partition: int

    def __str__(self) -> str:
        return f"{self.topic}-{self.partition}"


class BrokerRole(NamedTuple):
    """A broker in one role of replication; each has its own throttle."""

    broker: int
    role: Role

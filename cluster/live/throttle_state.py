"""Throttles and moves of a cluster at one time."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from headroom.cluster.model import BrokerThrottles, Partition, Snapshot, TopicConfig

_UNKNOWN = BrokerThrottles(known=False)


@dataclass(frozen=True)
class ThrottleState:
    """Throttles and moves of a cluster at one time.

    Attributes:
        snapshot: partitions, reassignments and lists; topics without a configuration in it could not be read.
        rates: rates in force, by broker that is registered or has a replica; ``known`` is false if it did not report
            them.
        default: cluster-wide default rates, in force on brokers without their own.
    """

    snapshot: Snapshot
    rates: dict[int, BrokerThrottles]
    default: BrokerThrottles = _UNKNOWN

    @classmethod
    def of_snapshot(
        cls, snapshot: Snapshot, reported: Mapping[int, BrokerThrottles], default: BrokerThrottles = _UNKNOWN
    ) -> ThrottleState:
        """Return the throttles of a snapshot.

        Args:
            snapshot: the metadata.
            reported: rates in force by broker that reported them.
            default: cluster-wide default rates.
        """
        rates = {broker: reported.get(broker, _UNKNOWN) for broker in sorted(snapshot.brokers)}
        return cls(snapshot, rates, default)

    def moving(self) -> list[Partition]:
        """Return the partitions that are being reassigned."""
        return [p for p in self.snapshot.partitions.values() if p.moving]

    def participants(self) -> list[int]:
        """Return the brokers that take part in running moves: leaders, replicas and destinations."""
        brokers = (broker for p in self.moving() for broker in (*p.replicas, *p.adding, p.leader))
        return sorted({broker for broker in brokers if broker is not None})

    def alive(self, broker: int) -> bool:
        """Return whether a broker is registered now."""
        registered = self.snapshot.brokers.get(broker)
        return registered is not None and registered.alive

    def known_brokers(self) -> set[int]:
        """Return the brokers that are registered, or named by a partition."""
        named = (p.replicas + p.adding + p.removing + p.isr + p.offline for p in self.snapshot.partitions.values())
        return {*self.rates, *(broker for brokers in named for broker in brokers)}

    def down(self) -> list[int]:
        """Return the brokers that are known, but not registered now."""
        return [broker for broker in sorted(self.known_brokers()) if not self.alive(broker)]

    def silent(self) -> list[int]:
        """Return the brokers that are registered, but did not report their rates."""
        return [broker for broker, rates in sorted(self.rates.items()) if self.alive(broker) and not rates.known]

    def of(self, broker: int) -> BrokerThrottles:
        """Return the rates in force on a broker; ``known`` is false if it did not report them."""
        return self.rates.get(broker, _UNKNOWN)

    def log_dirs(self) -> list[int]:
        """Return the brokers on which a rate for moves between log directories is in force."""
        return [broker for broker, rates in sorted(self.rates.items()) if rates.log_dirs_bytes_per_s is not None]

    def listed_topics(self) -> dict[str, TopicConfig]:
        """Return the topics that have a throttled replica list."""
        return {
            topic: config for topic, config in sorted(self.snapshot.topic_configs.items()) if config.has_throttled_list
        }

    def unread_topics(self) -> list[str]:
        """Return the topics whose lists could not be read."""
        topics = {name.topic for name in self.snapshot.partitions}
        return sorted(topics - set(self.snapshot.topic_configs))

"""Leadership counts and rates of brokers, and their change by elections."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from headroom.schemas.keys import TopicPartition


class Election(NamedTuple):
    """The election of one partition's preferred leader.

    Attributes:
        name: topic and number of the partition.
        to_broker: preferred leader, which becomes the leader.
        from_broker: current leader.
        write_bytes_per_s: write rate of the partition, in bytes per second; 0 if unknown.
        rate_known: true if the rate is known.
    """

    name: TopicPartition
    to_broker: int
    from_broker: int
    write_bytes_per_s: float
    rate_known: bool = True


@dataclass(slots=True)
class BrokerLeadership:
    """Leadership of one broker, updated by elections.

    Attributes:
        preferred: partitions whose preferred leader it is.
        missing: partitions of these that another broker leads.
        electable: partitions of the missing ones that an election would return.
        waiting: partitions of the missing ones in a reassignment.
        leads: partitions that it leads.
        led_bytes_per_s: known write rate of the partitions that it leads.
        preferred_bytes_per_s: known write rate of the partitions whose preferred leader it is.
        unknown_led: partitions that it leads with an unknown write rate.
        unknown_preferred: partitions whose preferred leader it is with an unknown write rate.
    """

    preferred: int = 0
    missing: int = 0
    electable: int = 0
    waiting: int = 0
    leads: int = 0
    led_bytes_per_s: float = 0.0
    preferred_bytes_per_s: float = 0.0
    unknown_led: int = 0
    unknown_preferred: int = 0

    @property
    def imbalance_ratio(self) -> float:
        """Return the share of its preferred partitions that other brokers lead; 0 without preferred partitions."""
        return self.missing / self.preferred if self.preferred else 0.0

    @property
    def surplus(self) -> tuple[float, int]:
        """Return how much its leadership exceeds its preferred share: bytes written per second, then partitions."""
        return self.led_bytes_per_s - self.preferred_bytes_per_s, self.leads - self.preferred

    def add_leader(self, election: Election) -> None:
        """Count the leader of a preferred partition that it gets by an election."""
        self.missing -= 1
        self.electable -= 1
        self.leads += 1
        self.led_bytes_per_s += election.write_bytes_per_s
        self.unknown_led += not election.rate_known

    def remove_leader(self, election: Election) -> None:
        """Subtract the leader of a partition that an election gives to another broker."""
        self.leads -= 1
        self.led_bytes_per_s -= election.write_bytes_per_s
        self.unknown_led -= not election.rate_known

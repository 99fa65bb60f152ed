"""What every broker leads and what it is preferred for, and what an election changes in that."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple


class Election(NamedTuple):
    """The election of one partition's preferred leader.

    Attributes:
        topic: topic.
        partition: partition.
        gains: broker that is preferred, and gets the lead.
        gives: broker that leads, and gives the lead up.
        write_bytes_per_s: bytes appended per second, which change their leader; 0 where that is unknown.
        rate_known: whether it is known.
    """

    topic: str
    partition: int
    gains: int
    gives: int
    write_bytes_per_s: float
    rate_known: bool = True


@dataclass(slots=True)
class BrokerLeadership:
    """One broker's leads, as elections change them.

    Attributes:
        preferred: partitions that prefer it.
        missing: those of them that another broker leads.
        electable: those of them that an election would give back to it.
        waiting: those of them that move.
        leads: partitions that it leads.
        led_bytes_per_s: what is written to them, as far as it is known.
        preferred_bytes_per_s: what is written to those that prefer it, as far as it is known.
        unknown_led: partitions that it leads whose write rate is not known.
        unknown_preferred: partitions that prefer it whose write rate is not known.
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
        """Return the share of the partitions preferring it that others lead; 0 if none prefers it."""
        return self.missing / self.preferred if self.preferred else 0.0

    @property
    def surplus(self) -> tuple[float, int]:
        """Return how much more it leads than is preferred: bytes written per second, then partitions."""
        return self.led_bytes_per_s - self.preferred_bytes_per_s, self.leads - self.preferred

    def gain(self, election: Election) -> None:
        """Take the lead of a partition that prefers it."""
        self.missing -= 1
        self.electable -= 1
        self.leads += 1
        self.led_bytes_per_s += election.write_bytes_per_s
        self.unknown_led += not election.rate_known

    def give(self, election: Election) -> None:
        """Give up the lead of a partition that prefers another."""
        self.leads -= 1
        self.led_bytes_per_s -= election.write_bytes_per_s
        self.unknown_led -= not election.rate_known

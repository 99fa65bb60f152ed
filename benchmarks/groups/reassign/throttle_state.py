"""Throttles of a cluster as plain values: what is there, what should be, and the difference."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from headroom.cluster.live.live_cluster import read_throttles
from headroom.planning.throttles.replica_lists import parse_replica_list
from headroom.schemas.config import Settings

# A rate by (broker, role), and entries as (topic, role, partition, broker).
Rates = Mapping[tuple[int, str], int]
ListEntry = tuple[str, str, int, int]


@dataclass(frozen=True)
class ThrottleValues:
    """Rates of brokers, and entries of throttled replica lists.

    Attributes:
        rates: bytes per second by broker and role.
        entries: entries of all topics.
    """

    rates: Rates = field(default_factory=dict)
    entries: frozenset[ListEntry] = frozenset()

    def __len__(self) -> int:
        """Return the number of rates and entries."""
        return len(self.rates) + len(self.entries)


class Difference(NamedTuple):
    """Throttles that are not as they should be.

    Attributes:
        left_behind: number of rates and entries that nobody else has set.
        foreign_changed: number of rates and entries of others that are gone or have another value.
    """

    left_behind: int
    foreign_changed: int


def difference(now: ThrottleValues, others: ThrottleValues) -> Difference:
    """Return how throttles differ from those of others alone."""
    extra = len(now.rates.keys() - others.rates.keys()) + len(now.entries - others.entries)
    changed = sum(now.rates.get(name) != rate for name, rate in others.rates.items())
    return Difference(extra, changed + len(others.entries - now.entries))


def throttles_in_force(settings: Settings) -> ThrottleValues:
    """Return the brokers' own leader and follower rates, and the lists of all topics.

    Raises:
        HeadroomError: no broker could be reached.
    """
    state = read_throttles(settings)
    rates = {
        (broker, role): rate
        for broker, own in state.rates.items()
        for role, rate in (("leader", own.leader_bytes_per_s), ("follower", own.follower_bytes_per_s))
        if rate is not None
    }
    entries = {
        (topic, role, partition, broker)
        for topic, config in state.listed_topics().items()
        for role, text in (("leader", config.leader_list), ("follower", config.follower_list))
        if (listed := parse_replica_list(text)) is not None
        for partition, broker in listed.entries
    }
    return ThrottleValues(rates, frozenset(entries))

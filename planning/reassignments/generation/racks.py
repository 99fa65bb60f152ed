"""Racks of the brokers, and the rule that keeps the replicas of a partition in different ones."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass

from headroom.planning.reassignments.cluster_state import BrokerState


@dataclass(frozen=True)
class Racks:
    """Rack of each broker. A broker without a rack counts as a rack of its own.

    Attributes:
        of: rack by broker.
        destinations: brokers that may get replicas.
        reachable: racks of the destinations.
    """

    of: Mapping[int, str]
    destinations: frozenset[int]
    reachable: frozenset[str]

    def apart(self, factor: int, replicas: Iterable[int]) -> int:
        """Return the largest possible number of different racks for a number of replicas, given some of them."""
        if factor <= len(self.reachable):
            return factor
        return min(factor, len(self.reachable | {self.of[broker] for broker in replicas}))

    def closed_to(self, replicas: Collection[int]) -> Collection[str]:
        """Return the racks in which the next replica of a partition must not be.

        These are the used ones, unless every rack is used: then all except the least used.
        """
        racks = [self.of[broker] for broker in replicas]
        if len(used := set(racks)) < len(self.reachable) or self.reachable - used:
            return used
        free = {self.of[broker] for broker in self.destinations.difference(replicas)}
        fewest = min((racks.count(rack) for rack in free), default=0)
        return {rack for rack in used if racks.count(rack) > fewest}

    def allow(self, replicas: Collection[int], old: int, new: int) -> bool:
        """Return whether a replica may move between two brokers without reducing the number of racks."""
        rack, own = self.of[new], self.of[old]
        if rack == own:
            return True
        others = [self.of[broker] for broker in replicas if broker != old]
        return rack not in others or own in others

    def without_crowding(self, replicas: Iterable[int], factor: int) -> list[int]:
        """Return the replicas that leave enough free places for the largest possible number of racks.

        Later replicas are left out first, those of the most crowded rack before others.
        """
        kept = list(replicas)
        if len({self.of[broker] for broker in kept}) == len(kept) <= factor:
            return kept
        wanted = self.apart(factor, kept)
        used = Counter(self.of[broker] for broker in kept)
        while factor - len(kept) < wanted - len(used):
            crowded = max(used.values())
            last = max(at for at, broker in enumerate(kept) if used[self.of[broker]] == crowded)
            used[self.of[kept.pop(last)]] -= 1
        return kept


def racks_of(brokers: Mapping[int, BrokerState], destinations: frozenset[int], rack_aware: bool) -> Racks:
    """Return the racks of all brokers; if racks do not matter, each broker is a rack of its own."""
    # A line break cannot occur in the name of a real rack, so no broker joins one by its id.
    racks = {
        broker: state.rack if rack_aware and state.rack is not None else f"\n{broker}"
        for broker, state in brokers.items()
    }
    return Racks(racks, destinations, frozenset(racks[broker] for broker in destinations))

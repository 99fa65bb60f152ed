"""What a proposal promises: replicas and leader of every partition, and counts of every broker; and what came."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from headroom.schemas.keys import TopicPartition

# Partitions that a difference names; the others are counted.
_SHOWN = 3
_COUNTS = ("leaders", "replicas")


@dataclass(frozen=True)
class PartitionPlace:
    """Where a partition is.

    Attributes:
        replicas: its replicas, preferred leader first.
        leader: broker that leads it; None without a leader.
        in_sync: replicas that are in sync.
    """

    replicas: tuple[int, ...]
    leader: int | None
    in_sync: frozenset[int] = frozenset()


Places = Mapping[TopicPartition, PartitionPlace]


@dataclass(frozen=True)
class BalancePromise:
    """What a proposal promises.

    Attributes:
        before: partitions when it was made; those that are made later are not part of it.
        places: replicas and leader of each of them afterwards.
        counts: leaders and replicas of each broker afterwards, as the proposal itself states them.
    """

    before: Places
    places: Places
    counts: Mapping[tuple[int, str], float]

    def differences(self, came: Places, last_words: str) -> list[str]:
        """Return a sentence with its cause for each count of a broker, and each list of replicas, that did not come.

        Args:
            came: partitions after the last batch.
            last_words: what the command that carried it out printed last.
        """
        own = {name: came.get(name, PartitionPlace((), None)) for name in self.places}
        found = [
            f"{name} has replicas {_ids(place.replicas)} instead of {_ids(self.places[name].replicas)}: {last_words}"
            for name, place in sorted(own.items())
            if place.replicas != self.places[name].replicas
        ]
        have = _counts(own)
        for (broker, what), promised in sorted(self.counts.items()):
            if have[broker, what] != promised:
                causes = self._lead_causes if what == "leaders" else self._replica_causes
                cause = _joined(causes(broker, own, last_words)) or "its batches lead to other counts"
                found.append(f"broker {broker} has {have[broker, what]} {what} instead of {promised:g}: {cause}")
        return found

    def _lead_causes(self, broker: int, came: Places, last_words: str) -> Iterator[str]:
        """Yield the partitions that a broker leads, or was to lead, and are led by another one than promised."""
        for name, place in sorted(came.items()):
            promised = self.places[name].leader
            if place.leader != promised and broker in (place.leader, promised):
                yield f"{name} is led by {place.leader}, {self._cause(name, place, last_words)}"

    def _replica_causes(self, broker: int, came: Places, _last_words: str) -> Iterator[str]:
        """Yield the partitions of which a broker has a replica, or has none, other than promised."""
        for name, place in sorted(came.items()):
            if (broker in place.replicas) != (broker in self.places[name].replicas):
                yield f"{name} has replicas {_ids(place.replicas)}"

    def _cause(self, name: TopicPartition, came: PartitionPlace, last_words: str) -> str:
        before, promised = self.before[name], self.places[name]
        if promised.leader not in came.in_sync:
            return f"and broker {promised.leader} is not in sync"
        if promised.replicas == before.replicas and promised.leader == before.leader:
            return f"which no batch elected instead of {before.leader}"
        return f"and broker {promised.leader}, which is in sync, was not elected: {last_words}"


def balance_promise(proposal: Mapping[str, Any], before: Places, rebalances: bool) -> BalancePromise:
    """Return what a proposal promises.

    A partition of a batch ends with the target replicas of its last batch, and is led by the first of them. The others
    stay, unless Kafka gives the lead back to a preferred leader in sync.

    Args:
        proposal: JSON of ``headroom balance propose``.
        before: all partitions when it was made.
        rebalances: whether ``auto.leader.rebalance.enable`` is on.
    """
    places = {name: _given_back(place) if rebalances else place for name, place in before.items()}
    for batch in proposal["batches"]:
        for target in batch["plan"]["partitions"]:
            replicas = tuple(map(int, target["replicas"]))
            places[TopicPartition(target["topic"], target["partition"])] = PartitionPlace(replicas, replicas[0])
    counts = {
        (broker["broker"], what): broker["loads"][what]["load"]
        for broker in proposal["after"]["brokers"]
        for what in _COUNTS
    }
    return BalancePromise(before, places, counts)


def _given_back(place: PartitionPlace) -> PartitionPlace:
    first = place.replicas[0]
    has_lead = place.leader is not None and first in place.in_sync
    return PartitionPlace(place.replicas, first if has_lead else place.leader, place.in_sync)


def _counts(places: Places) -> Counter[tuple[int, str]]:
    counts: Counter[tuple[int, str]] = Counter()
    for place in places.values():
        counts.update((broker, "replicas") for broker in place.replicas)
        if place.leader is not None:
            counts[place.leader, "leaders"] += 1
    return counts


def _joined(causes: Iterable[str]) -> str:
    """Return the first causes, and how many more there are."""
    every = list(causes)
    more = [f"{len(every) - _SHOWN} more"] if len(every) > _SHOWN else []
    return "; ".join([*every[:_SHOWN], *more])


def _ids(brokers: tuple[int, ...]) -> str:
    return ",".join(map(str, brokers)) or "none"

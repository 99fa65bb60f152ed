"""Replicas, preferred leads and bytes of the brokers, while a plan is being made."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Mapping

from headroom.planning.balance.goals.bands import LIMIT_RATIO
from headroom.planning.reassignments.cluster_state import BrokerState
from headroom.planning.reassignments.generation.draft import Draft
from headroom.planning.reassignments.room.volumes import volumes_of


class BrokerLoads:
    """Replicas, preferred leads and bytes by broker; bytes cover more partitions than the other two, where said.

    Attributes:
        replicas: replicas of the topics in question.
        leads: partitions of these topics whose first replica it is.
        bytes: bytes of its replicas.
        topics: replicas by topic and broker.
        topic_leads: partitions by topic and first replica.
    """

    def __init__(self) -> None:
        self.replicas: Counter[int] = Counter()
        self.leads: Counter[int] = Counter()
        self.bytes: Counter[int] = Counter()
        self.topics: dict[str, Counter[int]] = defaultdict(Counter)
        self.topic_leads: dict[str, Counter[int]] = defaultdict(Counter)

    def count(self, topic: str, replicas: Collection[int], size_bytes: int) -> None:
        """Count a partition of the topics in question."""
        own, stored = self.topics[topic], self.bytes
        for broker in replicas:
            self.replicas[broker] += 1
            own[broker] += 1
            stored[broker] += size_bytes

    def count_lead(self, topic: str, broker: int, times: int = 1) -> None:
        """Count the preferred lead of a partition (times = 1), or take it back (-1)."""
        self.leads[broker] += times
        self.topic_leads[topic][broker] += times

    def move_lead(self, topic: str, old: int, new: int) -> None:
        """Move one preferred lead from a broker to another."""
        self.count_lead(topic, old, -1)
        self.count_lead(topic, new)

    def add(self, draft: Draft, broker: int) -> None:
        """Count a new replica of a draft."""
        self.count(draft.present.topic, (broker,), draft.size_bytes)

    def remove(self, draft: Draft, broker: int) -> None:
        """Take a replica of a draft back."""
        self.replicas[broker] -= 1
        self.topics[draft.present.topic][broker] -= 1
        self.bytes[broker] -= draft.size_bytes


class DiskSpace:
    """Free space of the brokers' log directories, as far as it is known, while copies are planned.

    Args:
        brokers: all brokers.
        destinations: brokers that may get replicas.
    """

    def __init__(self, brokers: Mapping[int, BrokerState], destinations: Iterable[int]) -> None:
        self._free: dict[int, int] = {}
        self._largest: dict[int, int] = {}
        self._total: dict[int, int] = {}
        for broker in destinations:
            usable = (d for d in brokers[broker].log_dirs if not d.offline and not d.cordoned)
            volumes = volumes_of(usable)
            free = [volume.usable_bytes for volume in volumes]
            known = [free_bytes for free_bytes in free if free_bytes is not None]
            if known and len(known) == len(free):
                self._free[broker], self._largest[broker] = sum(known), max(known)
                totals = [volume.total_bytes for volume in volumes if volume.total_bytes]
                if len(totals) == len(volumes):
                    self._total[broker] = sum(totals)

    def fits(self, broker: int, size_bytes: int) -> bool:
        """Return whether a copy fits, also into one volume; true if the free space is unknown."""
        return broker not in self._free or size_bytes <= min(self._free[broker], self._largest[broker])

    def fits_limit(self, broker: int, size_bytes: int) -> bool:
        """Return whether a copy fits, and leaves as much free as the goal ``disk_capacity`` wants; true if unknown."""
        total = self._total.get(broker, 0)
        return self.fits(broker, size_bytes) and (
            not total or self._free[broker] - size_bytes >= (1 - LIMIT_RATIO) * total
        )

    def used_ratio(self, broker: int) -> float | None:
        """Return the share of the broker's disk that is used, 0 to 1; None if unknown."""
        total = self._total.get(broker)
        return None if total is None else 1 - self._free[broker] / total

    def take(self, broker: int, size_bytes: int) -> None:
        """Use space for a copy, or give it back if negative."""
        if broker in self._free:
            self._free[broker] -= size_bytes

    @property
    def overfull(self) -> tuple[int, ...]:
        """The brokers whose copies do not fit."""
        return tuple(sorted(broker for broker, free in self._free.items() if free < 0))

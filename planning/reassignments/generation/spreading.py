"""Moves from brokers with too many replicas to brokers with too few, such as new ones."""

from __future__ import annotations

from bisect import bisect_left
from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping
from heapq import heapify, heappop, heappush

from headroom.planning.reassignments.generation.broker_loads import BrokerLoads, DiskSpace
from headroom.planning.reassignments.generation.draft import Draft
from headroom.planning.reassignments.generation.racks import Racks

# Partitions of about the wanted size that are compared for one move.
_COMPARED = 12
# Partitions that are looked at for one move.
_LOOKED_AT = 400


class Spreading:
    """Moves replicas until every destination has its quota, as far as racks and disks permit.

    Each move is needed for the numbers of replicas, so no plan copies fewer replicas. Sizes are chosen so that bytes
    get even with the same moves. First replicas are among them, so that preferred leads get even too, while every first
    replica that stays remains the first.

    Args:
        drafts: partitions whose replicas may move; changed.
        loads: replicas, leads and bytes of the brokers; changed.
        quotas: replicas that each destination is to have.
        racks: racks and destinations.
        disks: free space; changed.
    """

    def __init__(
        self,
        drafts: Collection[Draft],
        loads: BrokerLoads,
        quotas: Mapping[int, int],
        racks: Racks,
        disks: DiskSpace,
    ) -> None:
        self._loads = loads
        self._quotas = quotas
        self._racks = racks
        self._disks = disks
        # Pairs of brokers between which nothing can move, so that they are not tried again.
        self._impossible: set[tuple[int, int]] = set()
        brokers = len(racks.destinations)
        self._mean_leads = sum(loads.leads[b] for b in racks.destinations) / brokers
        self._mean_bytes = sum(loads.bytes[b] for b in racks.destinations) / brokers
        # Drafts by broker, in ascending order of size: those that it is the first replica of, and the others.
        self._firsts: dict[int, list[Draft]] = defaultdict(list)
        self._others: dict[int, list[Draft]] = defaultdict(list)
        giving = {b for b in racks.destinations if loads.replicas[b] > quotas[b]}
        for draft in sorted(drafts, key=lambda draft: draft.size_bytes) if giving else ():
            for broker in giving.intersection(draft.replicas).difference(draft.added):
                (self._firsts if draft.replicas[0] == broker else self._others)[broker].append(draft)

    def run(self) -> None:
        """Move replicas to the brokers that are furthest below their quota, from those that are furthest above."""
        getting = [(self._surplus(b), b) for b in self._racks.destinations if self._surplus(b) < 0]
        giving = [(-self._surplus(b), b) for b in self._racks.destinations if self._surplus(b) > 0]
        heapify(getting)
        heapify(giving)
        while getting:
            _, to = heappop(getting)
            passed = []
            while giving:
                _, old = heappop(giving)
                if self._move_one(old, to):
                    if self._surplus(old) > 0:
                        heappush(giving, (-self._surplus(old), old))
                    if self._surplus(to) < 0:
                        heappush(getting, (self._surplus(to), to))
                    break
                passed.append((-self._surplus(old), old))
            for entry in passed:
                heappush(giving, entry)

    def _surplus(self, broker: int) -> int:
        return self._loads.replicas[broker] - self._quotas[broker]

    def _move_one(self, old: int, to: int) -> bool:
        """Move the most suitable replica between two brokers, and return whether there is one."""
        if (old, to) in self._impossible:
            return False
        leads = self._loads.leads
        with_lead = leads[old] > self._mean_leads and leads[to] < self._mean_leads
        lists = (self._firsts[old], self._others[old]) if with_lead else (self._others[old], self._firsts[old])
        for held in lists:
            at = self._most_suitable(held, old, to)
            if at is not None:
                self._move(held.pop(at), old, to)
                return True
        self._impossible.add((old, to))
        return False

    def _most_suitable(self, held: list[Draft], old: int, to: int) -> int | None:
        """Return the position of the draft, of about the wanted size, whose topic is most uneven on the two brokers."""
        best, best_gap, compared = None, 0, 0
        topics = self._loads.topics
        for at in _around(held, self._wanted_bytes(old, to)):
            draft = held[at]
            if to in draft.replicas or not self._racks.allow(draft.replicas, old, to):
                continue
            if not self._disks.fits(to, draft.size_bytes):
                continue
            topic = topics[draft.present.topic]
            gap = topic[old] - topic[to]
            if best is None or gap > best_gap:
                best, best_gap = at, gap
            compared += 1
            if compared == _COMPARED:
                break
        return best

    def _wanted_bytes(self, old: int, to: int) -> float:
        """Return the size with which the moves that are left would make bytes even on both brokers."""
        too_many = (self._loads.bytes[old] - self._mean_bytes) / self._surplus(old)
        too_few = (self._mean_bytes - self._loads.bytes[to]) / -self._surplus(to)
        return max(0.0, too_many + too_few) / 2

    def _move(self, draft: Draft, old: int, to: int) -> None:
        if draft.replicas[0] == old:
            self._loads.move_lead(draft.present.topic, old, to)
        draft.exchange(old, to)
        self._loads.remove(draft, old)
        self._loads.add(draft, to)
        self._disks.take(to, draft.size_bytes)


def _around(held: list[Draft], size_bytes: float) -> Iterator[int]:
    """Yield positions of drafts, those of about a size first."""
    high = bisect_left(held, size_bytes, key=lambda draft: draft.size_bytes)
    low = high - 1
    for _ in range(min(_LOOKED_AT, len(held))):
        if high < len(held) and (low < 0 or held[high].size_bytes - size_bytes <= size_bytes - held[low].size_bytes):
            yield high
            high += 1
        else:
            yield low
            low -= 1

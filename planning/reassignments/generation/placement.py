"""Brokers for the replicas that partitions are missing: racks apart, and replicas and bytes spread."""

from __future__ import annotations

from bisect import bisect_left, insort
from collections import Counter, defaultdict, deque
from collections.abc import Iterable, Mapping, Sequence

from headroom.planning.reassignments.generation.broker_loads import BrokerLoads, DiskSpace
from headroom.planning.reassignments.generation.draft import Draft
from headroom.planning.reassignments.generation.racks import Racks

# Brokers that are compared for one replica. More would cost time and change little, because they have more bytes.
_COMPARED = 16
# Partitions that are looked at for one exchange between two brokers.
_LOOKED_AT = 64


class Placement:
    """Chooses brokers for missing replicas.

    Args:
        loads: replicas and bytes of the brokers; changed.
        quotas: replicas that each destination is to have.
        racks: racks and destinations.
        disks: free space; changed.
        topic_replicas: replicas of each topic once all are placed.
        by_disk: whether the brokers whose disks are used least come first, if all disks are known; otherwise, and for
            equal disks, those with the fewest bytes of replicas.
    """

    def __init__(
        self,
        loads: BrokerLoads,
        quotas: Mapping[int, int],
        racks: Racks,
        disks: DiskSpace,
        topic_replicas: Mapping[str, int],
        by_disk: bool,
    ) -> None:
        self._loads = loads
        self._quotas = quotas
        self._racks = racks
        self._disks = disks
        self._topic_replicas = topic_replicas
        self._by_disk = by_disk and all(disks.used_ratio(broker) is not None for broker in racks.destinations)
        # Use and id of the brokers with fewer replicas than their quota, in ascending order.
        self._open = sorted((self._usage(b), b) for b in racks.destinations if loads.replicas[b] < quotas[b])

    def place(self, drafts: Iterable[Draft]) -> None:
        """Choose a broker for every missing replica: for large ones first, because small ones fill the gaps."""
        drafts = [draft for draft in drafts if draft.missing]
        for draft in sorted(drafts, key=lambda draft: -draft.size_bytes):
            for _ in range(draft.missing):
                broker = self._choice(draft)
                self._add(draft, broker)
                draft.replicas.append(broker)
                draft.added.add(broker)
        self._even_out(drafts)

    def _usage(self, broker: int) -> float:
        """Return the share of a broker's disk that is used, or the bytes of its replicas."""
        ratio = self._disks.used_ratio(broker) if self._by_disk else None
        return self._loads.bytes[broker] if ratio is None else ratio

    def _choice(self, draft: Draft) -> int:
        """Return the broker that is used least among those with the fewest replicas, and with room below its limit."""
        racks, taken = self._racks, draft.replicas
        closed, of = racks.closed_to(taken), racks.of
        compared = []
        topic = self._loads.topics[draft.present.topic]
        share = -(-self._topic_replicas[draft.present.topic] // len(racks.destinations))
        for _, broker in self._open:
            if broker in taken or of[broker] in closed or not self._disks.fits_limit(broker, draft.size_bytes):
                continue
            if topic[broker] < share:
                return broker
            compared.append(broker)
            if len(compared) == _COMPARED:
                break
        if compared:
            return min(compared, key=lambda b: topic[b])
        others = [b for b in racks.destinations.difference(taken) if of[b] not in closed]
        loads, quotas, disks = self._loads, self._quotas, self._disks
        return min(
            others,
            key=lambda b: (
                not disks.fits(b, draft.size_bytes),
                not disks.fits_limit(b, draft.size_bytes),
                loads.replicas[b] - quotas[b],
                self._usage(b),
                b,
            ),
        )

    def _add(self, draft: Draft, broker: int) -> None:
        loads = self._loads
        at = bisect_left(self._open, (self._usage(broker), broker))
        if at < len(self._open) and self._open[at][1] == broker:
            del self._open[at]
        loads.add(draft, broker)
        self._disks.take(broker, draft.size_bytes)
        if loads.replicas[broker] < self._quotas[broker]:
            insort(self._open, (self._usage(broker), broker))

    def _even_out(self, drafts: Sequence[Draft]) -> None:
        """Move new replicas away from brokers above their quota, which is where a partition had no other choice left.

        Such a broker passes a replica on to another, which passes one on in turn, until one is below its quota.
        """
        new: dict[int, list[Draft]] = defaultdict(list)
        for draft in drafts:
            for broker in sorted(draft.added):
                new[broker].append(draft)
        stuck: set[int] = set()
        for broker in sorted(new):
            while self._loads.replicas[broker] > self._quotas[broker]:
                way = [] if broker in stuck else self._way_out(broker, new, stuck)
                if not way or not all(self._move(draft, old, to, new) for old, to, draft in reversed(way)):
                    break

    def _way_out(self, start: int, new: Mapping[int, list[Draft]], stuck: set[int]) -> list[tuple[int, int, Draft]]:
        """Return the shortest chain of moves from a broker to one below its quota; empty if there is none.

        Args:
            start: broker above its quota.
            new: new replicas by broker.
            stuck: brokers without such a chain; all that are found are added.
        """
        came: dict[int, tuple[int, Draft] | None] = {start: None}
        waiting = deque([start])
        targets = sorted(self._racks.destinations, key=lambda b: (self._usage(b), b))
        while waiting:
            broker = waiting.popleft()
            for target in targets:
                if target in came or (draft := self._movable(broker, target, new)) is None:
                    continue
                came[target] = (broker, draft)
                if self._loads.replicas[target] < self._quotas[target]:
                    return _chain(came, target)
                waiting.append(target)
        stuck.update(came)
        return []

    def _movable(self, old: int, to: int, new: Mapping[int, list[Draft]]) -> Draft | None:
        looked_at = new.get(old, ())[:_LOOKED_AT]
        return next((draft for draft in looked_at if self._may_move(draft, old, to)), None)

    def _may_move(self, draft: Draft, old: int, to: int) -> bool:
        fits = to not in draft.replicas and self._disks.fits_limit(to, draft.size_bytes)
        return fits and self._racks.allow(draft.replicas, old, to)

    def _move(self, draft: Draft, old: int, to: int, new: dict[int, list[Draft]]) -> bool:
        """Move a new replica, and return whether that was possible: a chain may hit the same partition twice."""
        if not self._may_move(draft, old, to):
            return False
        draft.exchange(old, to)
        new[old].remove(draft)
        new[to].append(draft)
        self._loads.remove(draft, old)
        self._loads.add(draft, to)
        self._disks.take(old, -draft.size_bytes)
        self._disks.take(to, draft.size_bytes)
        return True


def _chain(came: Mapping[int, tuple[int, Draft] | None], end: int) -> list[tuple[int, int, Draft]]:
    """Return the moves from the start to a broker, in order."""
    way: list[tuple[int, int, Draft]] = []
    step = came[end]
    while step is not None:
        way.append((step[0], end, step[1]))
        end = step[0]
        step = came[end]
    return way[::-1]


def topic_replicas(loads: BrokerLoads, drafts: Iterable[Draft]) -> Counter[str]:
    """Return the number of replicas of each topic once all missing ones are placed."""
    numbers = Counter({topic: brokers.total() for topic, brokers in loads.topics.items()})
    for draft in drafts:
        numbers[draft.present.topic] += draft.missing
    return numbers

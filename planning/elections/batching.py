"""Order of elections, and division into batches.

Each step elects a partition back to the broker with the highest imbalance ratio. It takes the partition from the broker
whose leadership exceeds its preferred share the most. All brokers therefore improve together, those with the highest
imbalance first.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping
from heapq import heapify, heappop, heappush, heapreplace
from typing import Any

from headroom.planning.elections.constraints import Capacity, DeferredElections, Throttles
from headroom.planning.elections.election_file import EMPTY_BYTES, entry_bytes
from headroom.planning.elections.leadership import BrokerLeadership, Election

# Numbers of the elections that are ready, as heaps, by the broker that gets the leader and the one that loses it.
_Ready = dict[int, dict[int, list[int]]]


class BatchBudget:
    """Remaining capacity of one batch.

    Args:
        partitions: maximum number of partitions.
        partitions_per_broker: maximum number of leaders that one broker gains or loses.
        write_bytes_per_s: maximum sum of the write rates that change their leader; a single election may exceed it.
        request_bytes: maximum size of the request.
    """

    def __init__(
        self, partitions: int, partitions_per_broker: int, write_bytes_per_s: float, request_bytes: int
    ) -> None:
        self._partitions = partitions
        self._per_broker = partitions_per_broker
        self._write_bytes_per_s = write_bytes_per_s
        self._moved_bytes_per_s = 0.0
        self._request_bytes = request_bytes - EMPTY_BYTES
        self._leader_changes: dict[int, int] = defaultdict(int)
        self.full_brokers: set[int] = set()
        self.elections: list[Election] = []

    @property
    def is_full(self) -> bool:
        """Whether the batch has reached its number of partitions."""
        return len(self.elections) == self._partitions

    def add(self, election: Election) -> bool:
        """Add an election of brokers that are not full, and return whether it fits."""
        size_bytes = entry_bytes(*election.name)
        moved_bytes_per_s = self._moved_bytes_per_s + election.write_bytes_per_s
        if self.elections and (moved_bytes_per_s > self._write_bytes_per_s or size_bytes > self._request_bytes):
            return False
        self.elections.append(election)
        self._moved_bytes_per_s = moved_bytes_per_s
        self._request_bytes -= size_bytes
        for broker in (election.to_broker, election.from_broker):
            self._leader_changes[broker] += 1
            if self._leader_changes[broker] == self._per_broker:
                self.full_brokers.add(broker)
        return True


class Batches:
    """Builds batches from elections, one after the other.

    Args:
        leadership: leadership of every broker, in the order of ids; batches change it.
        new_budget: factory of the budget of a batch.
        capacity: constraint by the capacity of brokers.
        throttles: constraint by the throttles in force.
    """

    def __init__(
        self,
        leadership: Mapping[int, BrokerLeadership],
        new_budget: Callable[[], BatchBudget],
        capacity: Capacity,
        throttles: Throttles,
    ) -> None:
        self._leadership = leadership
        self._new_budget = new_budget
        self._capacity = capacity
        self._throttles = throttles
        self._elections: list[Election] = []
        self._ready: _Ready = defaultdict(lambda: defaultdict(list))

    def make(self, elections: Iterable[Election]) -> Iterator[list[Election]]:
        """Yield batches of these elections and of those deferred before, until no further election is possible."""
        first = len(self._elections)
        self._elections += sorted(elections, key=lambda e: (-e.write_bytes_per_s, e.name))
        self._offer(range(first, len(self._elections)))
        while batch := self._fill() or self._fill_with_all():
            self._close(batch)
            yield batch

    def deferred_in(self, waiting: DeferredElections[Any]) -> list[Election]:
        """Return the elections that a constraint defers."""
        return [self._elections[number] for number in waiting]

    def _offer(self, numbers: Iterable[int]) -> None:
        for number in numbers:
            election = self._elections[number]
            heappush(self._ready[election.to_broker][election.from_broker], number)

    def _fill_with_all(self) -> list[Election]:
        """Return a batch of deferred elections; they may fit now, because planned elections can be impossible."""
        self._offer(self._capacity.waiting.release_all())
        self._offer(self._throttles.waiting.release_all())
        return self._fill()

    def _fill(self) -> list[Election]:
        budget = self._new_budget()
        turns = _BrokerTurns(self._ready, self._leadership, budget.full_brokers)
        while not budget.is_full and (heap := turns.next()) is not None:
            number = heap[0]
            election = self._elections[number]
            if self._capacity.defers(number, election) or self._throttles.defers(number, election):
                heappop(heap)
            elif budget.add(election):
                heappop(heap)
                self._leadership[election.to_broker].add_leader(election)
                self._throttles.add(election)
                turns.requeue()
            else:
                turns.skip()
        return budget.elections

    def _close(self, batch: list[Election]) -> None:
        for election in batch:
            self._leadership[election.from_broker].remove_leader(election)
        self._offer(self._capacity.close(batch))
        self._offer(self._throttles.close())


class _BrokerTurns:
    """Order of the brokers within one batch.

    Args:
        ready: elections that are ready; used ones are removed.
        leadership: leadership of every broker, in the order of ids.
        full: brokers that reached their limit in this batch; the set grows with the batch.
    """

    def __init__(self, ready: _Ready, leadership: Mapping[int, BrokerLeadership], full: set[int]) -> None:
        self._ready = ready
        self._leadership = leadership
        self._full = full
        self._from_brokers = sorted(leadership, key=lambda broker: leadership[broker].surplus, reverse=True)
        # Position of each broker in _from_brokers. It only grows, because skipped brokers stay skipped in a batch.
        self._at = dict.fromkeys(ready, 0)
        self._brokers = [(-leadership[broker].imbalance_ratio, broker) for broker in ready]
        heapify(self._brokers)

    def next(self) -> list[int] | None:
        """Return the heap whose first election is next; None if no election fits into this batch."""
        while self._brokers:
            broker = self._brokers[0][1]
            heap = None if broker in self._full else self._heap(broker)
            if heap is not None:
                return heap
            self.skip()
        return None

    def requeue(self) -> None:
        """Sort the current broker, which has just got a leader, back by its new imbalance."""
        broker = self._brokers[0][1]
        heapreplace(self._brokers, (-self._leadership[broker].imbalance_ratio, broker))

    def skip(self) -> None:
        """Remove the current broker from this batch."""
        heappop(self._brokers)

    def _heap(self, to_broker: int) -> list[int] | None:
        """Return the elections that bring leaders to a broker from the first other broker that is not full."""
        heaps = self._ready[to_broker]
        for at in range(self._at[to_broker], len(self._from_brokers)):
            from_broker = self._from_brokers[at]
            if heaps.get(from_broker) and from_broker not in self._full:
                self._at[to_broker] = at
                return heaps[from_broker]
        self._at[to_broker] = len(self._from_brokers)
        if not any(heaps.values()):
            del self._ready[to_broker]
        return None

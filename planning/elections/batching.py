"""The order of elections, and where one batch ends and the next begins.

The next lead always goes to the broker that misses the greatest share of its own, and comes from the one that leads
most beyond what is preferred. So all brokers come down together, and those at the top first.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping
from heapq import heapify, heappop, heappush, heapreplace
from typing import Any

from planning.elections.constraints import Capacity, DeferredElections, Throttles
from planning.elections.election_file import EMPTY_BYTES, entry_bytes
from planning.elections.leadership import BrokerLeadership, Election

# Numbers of elections that are ready, by the broker that gains and the one that gives; heaps, the first first.
_Ready = dict[int, dict[int, list[int]]]


class BatchBudget:
    """What one batch may still take.

    Args:
        partitions: partitions of a batch.
        partitions_per_broker: partitions of a batch whose lead one broker gains or gives up.
        write_bytes_per_s: sum of the write rates that get another leader; one election alone may exceed it.
        request_bytes: size of the request.
    """

    def __init__(
        self, partitions: int, partitions_per_broker: int, write_bytes_per_s: float, request_bytes: int
    ) -> None:
        self._partitions = partitions
        self._per_broker = partitions_per_broker
        self._write_bytes_per_s = write_bytes_per_s
        self._moved_bytes_per_s = 0.0
        self._request_bytes = request_bytes - EMPTY_BYTES
        self._touched: dict[int, int] = defaultdict(int)
        self.full_brokers: set[int] = set()
        self.taken: list[Election] = []

    @property
    def is_full(self) -> bool:
        """Whether nothing more can be taken."""
        return len(self.taken) == self._partitions

    def take(self, election: Election) -> bool:
        """Whether an election, of brokers that are not full, fits; if so it is taken."""
        size_bytes = entry_bytes(election.topic, election.partition)
        moved_bytes_per_s = self._moved_bytes_per_s + election.write_bytes_per_s
        if self.taken and (moved_bytes_per_s > self._write_bytes_per_s or size_bytes > self._request_bytes):
            return False
        self.taken.append(election)
        self._moved_bytes_per_s = moved_bytes_per_s
        self._request_bytes -= size_bytes
        for broker in (election.gains, election.gives):
            self._touched[broker] += 1
            if self._touched[broker] == self._per_broker:
                self.full_brokers.add(broker)
        return True


class Batches:
    """Makes batch after batch of the elections that are offered.

    Args:
        standings: every broker's, in the order of ids; batches change them.
        new_room: makes the room of a batch.
        capacity: holds elections back.
        throttles: hold elections back.
    """

    def __init__(
        self,
        standings: Mapping[int, BrokerLeadership],
        new_room: Callable[[], BatchBudget],
        capacity: Capacity,
        throttles: Throttles,
    ) -> None:
        self._standings = standings
        self._new_room = new_room
        self._capacity = capacity
        self._throttles = throttles
        self._elections: list[Election] = []
        self._ready: _Ready = defaultdict(lambda: defaultdict(list))

    def of(self, elections: Iterable[Election]) -> Iterator[list[Election]]:
        """Make batches of these elections and of those that waited, until none can be taken any more."""
        first = len(self._elections)
        self._elections += sorted(elections, key=lambda e: (-e.write_bytes_per_s, e.topic, e.partition))
        self._offer(range(first, len(self._elections)))
        while batch := self._fill() or self._fill_with_all():
            self._close(batch)
            yield batch

    def among(self, waiting: DeferredElections[Any]) -> list[Election]:
        """Return the elections that wait."""
        return [self._elections[number] for number in waiting]

    def _offer(self, numbers: Iterable[int]) -> None:
        for number in numbers:
            election = self._elections[number]
            heappush(self._ready[election.gains][election.gives], number)

    def _fill_with_all(self) -> list[Election]:
        """Return a batch of those that wait, for what one was to make room for may not have come about."""
        self._offer(self._capacity.waiting.release_all())
        self._offer(self._throttles.waiting.release_all())
        return self._fill()

    def _fill(self) -> list[Election]:
        room = self._new_room()
        turns = _Turns(self._ready, self._standings, room.full_brokers)
        while not room.is_full and (heap := turns.next()) is not None:
            number = heap[0]
            election = self._elections[number]
            if self._capacity.holds_back(number, election) or self._throttles.holds_back(number, election):
                heappop(heap)
            elif room.take(election):
                heappop(heap)
                self._standings[election.gains].gain(election)
                self._throttles.take(election)
                turns.move_on()
            else:
                turns.pass_by()
        return room.taken

    def _close(self, batch: list[Election]) -> None:
        for election in batch:
            self._standings[election.gives].give(election)
        self._offer(self._capacity.close(batch))
        self._offer(self._throttles.close())


class _Turns:
    """Whose turn it is within one batch.

    Args:
        ready: elections that are ready; what is used up is removed.
        standings: every broker's, in the order of ids.
        full: brokers that the batch may not touch any more; it grows with the batch.
    """

    def __init__(self, ready: _Ready, standings: Mapping[int, BrokerLeadership], full: set[int]) -> None:
        self._ready = ready
        self._standings = standings
        self._full = full
        self._givers = sorted(standings, key=lambda broker: standings[broker].surplus, reverse=True)
        # Where each broker is among the givers: what a batch has passed by does not come back in it.
        self._at = dict.fromkeys(ready, 0)
        self._brokers = [(-standings[broker].imbalance_ratio, broker) for broker in ready]
        heapify(self._brokers)

    def next(self) -> list[int] | None:
        """Return the heap whose first election is next; None: there is none that this batch may take."""
        while self._brokers:
            broker = self._brokers[0][1]
            heap = None if broker in self._full else self._heap(broker)
            if heap is not None:
                return heap
            self.pass_by()
        return None

    def move_on(self) -> None:
        """Put the broker whose turn it was, and that has got a lead, where it belongs now."""
        broker = self._brokers[0][1]
        heapreplace(self._brokers, (-self._standings[broker].imbalance_ratio, broker))

    def pass_by(self) -> None:
        """Leave out the broker whose turn it is; it gets nothing more in this batch."""
        heappop(self._brokers)

    def _heap(self, gains: int) -> list[int] | None:
        """Return the elections by which a broker gets leads from the first giver that is not full."""
        heaps = self._ready[gains]
        for at in range(self._at[gains], len(self._givers)):
            giver = self._givers[at]
            if heaps.get(giver) and giver not in self._full:
                self._at[gains] = at
                return heaps[giver]
        self._at[gains] = len(self._givers)
        if not any(heaps.values()):
            del self._ready[gains]
        return None

"""Constraints on elections: the capacity of the broker that becomes the leader, and the throttles of a running move.

Some elections of a batch may fail, and their order is unknown. Within a batch, additional traffic of a broker therefore
counts at once. Traffic that it loses frees capacity only for the next batch.
"""

from __future__ import annotations

import math
import sys
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from heapq import heappop, heappush
from typing import Generic, TypeVar

from headroom.planning.elections.leadership import BrokerLeadership, Election
from headroom.planning.quotas.load import (
    FollowerTraffic,
    PartitionTraffic,
    ThrottleLoad,
    ThrottleLoads,
    follower_traffic,
)
from headroom.schemas.alerts import BELOW_REQUIRED, Verdict
from headroom.schemas.keys import BrokerRole, Role

_Key = TypeVar("_Key")
# Verdicts of throttles that allow no additional traffic. An unknown one is treated as such.
_NOT_ENOUGH = BELOW_REQUIRED | {Verdict.NO_DATA}
# Exceeds any finite room, so an election with an unknown rate waits for a throttle without a limit.
_UNKNOWN_NEED_BYTES_PER_S = sys.float_info.max


class DeferredElections(Generic[_Key]):
    """Elections that a constraint defers, by the broker or throttle that causes it."""

    def __init__(self) -> None:
        self._heaps: dict[_Key, list[tuple[float, int]]] = defaultdict(list)

    def __iter__(self) -> Iterator[int]:
        """Iterate over the numbers of all deferred elections."""
        return (number for heap in self._heaps.values() for _, number in heap)

    def add(self, key: _Key, need_bytes_per_s: float, number: int) -> None:
        """Defer an election until there is room for its rate."""
        heappush(self._heaps[key], (need_bytes_per_s, number))

    def release(self, key: _Key, room_bytes_per_s: float) -> Iterator[int]:
        """Yield and remove the elections that fit into the room together, those with the lowest rate first."""
        heap = self._heaps[key]
        while heap and heap[0][0] <= room_bytes_per_s:
            need, number = heappop(heap)
            room_bytes_per_s -= need
            yield number

    def release_all(self) -> list[int]:
        """Return and remove all elections."""
        numbers = list(self)
        self._heaps.clear()
        return numbers


class Capacity:
    """Defers elections that would exceed the capacity of a broker.

    Args:
        leadership: leadership of every broker; leaders that a batch removes count there only after the batch is closed.
        most_bytes_per_s: maximum write rate of the partitions that one broker leads, in bytes per second.
    """

    def __init__(self, leadership: Mapping[int, BrokerLeadership], most_bytes_per_s: float) -> None:
        self._leadership = leadership
        self._most = most_bytes_per_s
        self.waiting: DeferredElections[int] = DeferredElections()

    def defers(self, number: int, election: Election) -> bool:
        """Return whether an election is deferred because its new leader would exceed the capacity; if so, remember it.

        An election of a partition without writes is never deferred.
        """
        rate = election.write_bytes_per_s
        if rate == 0 or self._leadership[election.to_broker].led_bytes_per_s + rate <= self._most:
            return False
        self.waiting.add(election.to_broker, rate, number)
        return True

    def close(self, batch: Iterable[Election]) -> Iterator[int]:
        """Yield the elections that fit again after a batch."""
        for broker in sorted({election.from_broker for election in batch}):
            yield from self.waiting.release(broker, self._most - self._leadership[broker].led_bytes_per_s)


class Throttles:
    """Defers elections for which a throttle in force would be too low, if it limits replicas that have to catch up.

    Args:
        traffic: partitions in throttled replica lists or in a reassignment.
        throttles: rates in force by broker and role; None for none.
        alive: live brokers.
    """

    def __init__(
        self, traffic: Iterable[PartitionTraffic], throttles: Mapping[BrokerRole, float | None], alive: frozenset[int]
    ) -> None:
        # Sorted, because floating-point sums depend on the order and a plan must not.
        ordered = sorted(traffic, key=lambda p: p.name)
        self._traffic = {p.name: p for p in ordered}
        self._loads = ThrottleLoads(ordered, throttles)
        self._alive = alive
        self._released: list[FollowerTraffic] = []
        self.waiting: DeferredElections[BrokerRole] = DeferredElections()

    def defers(self, number: int, election: Election) -> bool:
        """Return whether an election is deferred because a throttle would be too low, or may be; if so, remember it."""
        p = self._changed_traffic(election)
        if p is None:
            return False
        for broker_role, added in _by_affected_role(self._traffic_gained(p, election.to_broker)).items():
            if self._loads.load_of(broker_role, added).verdict in _NOT_ENOUGH:
                self.waiting.add(broker_role, _need_bytes_per_s(added), number)
                return True
        return False

    def add(self, election: Election) -> None:
        """Add the traffic of an election to the loads of the batch."""
        p = self._changed_traffic(election)
        if p is not None:
            self._loads.add(self._traffic_gained(p, election.to_broker))
            # The leader sends nothing any more, and the new one fetches nothing.
            broker_roles = ((p.leader, Role.LEADER), (election.to_broker, Role.FOLLOWER))
            self._released += [traffic for traffic in follower_traffic(p) if traffic.broker_role in broker_roles]

    def close(self) -> Iterator[int]:
        """Subtract the traffic that the batch released, and yield the elections that fit again."""
        self._loads.remove(self._released)
        relieved = sorted({traffic.broker_role for traffic in self._released})
        self._released = []
        for broker_role in relieved:
            yield from self.waiting.release(broker_role, _room_bytes_per_s(self._loads.load_of(broker_role)))

    def too_low(self, elections: Iterable[Election]) -> list[ThrottleLoad]:
        """Return the loads whose throttle would be too low if all these were elected in addition, by broker and role.

        The released traffic is not subtracted. A throttle above the required rate then allows all of them, in any order
        and in one batch. Loads with unknown parts are omitted.
        """
        changed = ((self._changed_traffic(election), election.to_broker) for election in elections)
        gained = _by_affected_role(
            traffic for p, leader in changed if p is not None for traffic in self._traffic_gained(p, leader)
        )
        loads = (self._loads.load_of(broker_role, gained[broker_role]) for broker_role in sorted(gained))
        # Without a known required rate, no sufficient rate can be given.
        return [d for d in loads if d.verdict in BELOW_REQUIRED and d.required_bytes_per_s is not None]

    def _changed_traffic(self, election: Election) -> PartitionTraffic | None:
        """Return the traffic that an election changes; None if no throttle counts it."""
        p = self._traffic.get(election.name)
        return None if p is None or p.leader == election.to_broker else p

    def _traffic_gained(self, p: PartitionTraffic, leader: int) -> list[FollowerTraffic]:
        """Return the traffic that is added to brokers and roles when another replica leads."""
        others = tuple(broker for broker in p.followers if broker != leader)
        fetches_now = (p.leader,) if p.leader is not None and p.leader in self._alive else ()
        after = replace(p, leader=leader, followers=(*others, *fetches_now))
        # The other followers receive the same traffic from the new leader.
        broker_roles = ((leader, Role.LEADER), (p.leader, Role.FOLLOWER))
        return [traffic for traffic in follower_traffic(after) if traffic.broker_role in broker_roles]


def _by_affected_role(gained: Iterable[FollowerTraffic]) -> dict[BrokerRole, list[FollowerTraffic]]:
    """Return the brokers and roles whose verdict this traffic can worsen, each with its part of the traffic."""
    broker_roles: dict[BrokerRole, list[FollowerTraffic]] = defaultdict(list)
    for traffic in gained:
        broker_roles[traffic.broker_role].append(traffic)
    return {
        broker_role: added
        for broker_role, added in broker_roles.items()
        if any(traffic.counts_against_quota for traffic in added)
    }


def _need_bytes_per_s(added: Iterable[FollowerTraffic]) -> float:
    rates = [traffic.write_bytes_per_s for traffic in added if traffic.listed is not False]
    return sum(rate for rate in rates if rate is not None) if None not in rates else _UNKNOWN_NEED_BYTES_PER_S


def _room_bytes_per_s(load: ThrottleLoad) -> float:
    """Return by how much the traffic on a throttle may grow until it is too low, in bytes per second."""
    if load.verdict is Verdict.CATCHING_UP:
        assert load.throttle_bytes_per_s is not None
        assert load.required_bytes_per_s is not None
        return load.throttle_bytes_per_s - load.required_bytes_per_s
    return 0.0 if load.verdict in _NOT_ENOUGH else math.inf

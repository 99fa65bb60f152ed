"""What may hold an election back: the gaining broker's capacity, and the throttles of a move that runs.

Of the elections of one batch some may come about and others not, in any order. So within a batch what a broker gains
counts at once, and what it gives up makes room from the next batch on.
"""

from __future__ import annotations

import math
import sys
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from heapq import heappop, heappush
from typing import Generic, TypeVar

from planning.elections.leadership import BrokerLeadership, Election
from planning.throttles.load import (
    BrokerRole,
    FollowerTraffic,
    PartitionTraffic,
    ThrottleLoad,
    ThrottleLoads,
    follower_traffic,
)
from schemas.alerts import Role, Verdict

_Key = TypeVar("_Key")
# Verdicts behind which nothing may be added. What is not known is not well.
_SHORT = frozenset({Verdict.STARVED, Verdict.LOSING, Verdict.SLOW})
_NOT_ENOUGH = _SHORT | {Verdict.NO_DATA}
# More than any room but one without end.
_UNKNOWN_NEED_BYTES_PER_S = sys.float_info.max


class DeferredElections(Generic[_Key]):
    """Elections that are held back, by what holds them back."""

    def __init__(self) -> None:
        self._heaps: dict[_Key, list[tuple[float, int]]] = defaultdict(list)

    def __iter__(self) -> Iterator[int]:
        """Iterate over the numbers of all that wait."""
        return (number for heap in self._heaps.values() for _, number in heap)

    def add(self, key: _Key, need_bytes_per_s: float, number: int) -> None:
        """Let an election wait for so much room."""
        heappush(self._heaps[key], (need_bytes_per_s, number))

    def release(self, key: _Key, room_bytes_per_s: float) -> Iterator[int]:
        """Release the elections that have room together, those that need least first."""
        heap = self._heaps[key]
        while heap and heap[0][0] <= room_bytes_per_s:
            need, number = heappop(heap)
            room_bytes_per_s -= need
            yield number

    def release_all(self) -> list[int]:
        """Release every election."""
        numbers = list(self)
        self._heaps.clear()
        return numbers


class Capacity:
    """Holds back what would bring the leads of a broker over its capacity.

    Args:
        standings: every broker's; what a batch gives up is to count there only once the batch is closed.
        most_bytes_per_s: what producers may write to the partitions that one broker leads.
    """

    def __init__(self, standings: Mapping[int, BrokerLeadership], most_bytes_per_s: float) -> None:
        self._standings = standings
        self._most = most_bytes_per_s
        self.waiting: DeferredElections[int] = DeferredElections()

    def holds_back(self, number: int, election: Election) -> bool:
        """Whether an election has to wait, for the gaining broker would carry too much; from then on it does.

        One to which nothing is written is never too much.
        """
        rate = election.write_bytes_per_s
        if rate == 0 or self._standings[election.gains].led_bytes_per_s + rate <= self._most:
            return False
        self.waiting.add(election.gains, rate, number)
        return True

    def close(self, batch: Iterable[Election]) -> Iterator[int]:
        """Return what need not wait any more, a batch having made room."""
        for broker in sorted({election.gives for election in batch}):
            yield from self.waiting.release(broker, self._most - self._standings[broker].led_bytes_per_s)


class Throttles:
    """Holds back what a throttle in force would not be enough for, with replicas behind it that have to catch up.

    Args:
        traffic: the partitions that throttles list or a reassignment moves.
        throttles: rates in force by broker and role; None: none.
        alive: brokers that are alive.
    """

    def __init__(
        self, traffic: Iterable[PartitionTraffic], throttles: Mapping[BrokerRole, float | None], alive: frozenset[int]
    ) -> None:
        # Sums of rates depend a little on the order, and a plan must not.
        ordered = sorted(traffic, key=lambda p: (p.topic, p.partition))
        self._traffic = {(p.topic, p.partition): p for p in ordered}
        self._sides = ThrottleLoads(ordered, throttles)
        self._alive = alive
        self._given_up: list[FollowerTraffic] = []
        self.waiting: DeferredElections[BrokerRole] = DeferredElections()

    def holds_back(self, number: int, election: Election) -> bool:
        """Whether an election has to wait, for a side's throttle would not be enough, or not known to be, for more."""
        p = self._changed(election)
        if p is None:
            return False
        for side, own in _burdened(self._gained(p, election.gains)).items():
            if self._sides.load_of(side, own).verdict in _NOT_ENOUGH:
                self.waiting.add(side, _need_bytes_per_s(own), number)
                return True
        return False

    def take(self, election: Election) -> None:
        """Let an election count as part of the batch."""
        p = self._changed(election)
        if p is not None:
            self._sides.add(self._gained(p, election.gains))
            self._given_up += _given_up(p, election.gains)

    def close(self) -> Iterator[int]:
        """Let the room count that a batch has made, and return what need not wait any more."""
        self._sides.remove(self._given_up)
        relieved = sorted({share.broker_role for share in self._given_up})
        self._given_up = []
        for side in relieved:
            yield from self.waiting.release(side, _room_bytes_per_s(self._sides.load_of(side)))

    def short(self, elections: Iterable[Election]) -> list[ThrottleLoad]:
        """Return the sides whose throttle would not be enough if all these were elected besides, by broker and role.

        Nothing that they give up is taken off: a throttle that exceeds what is required then lets all of them go, in
        any order and in one batch. Sides of which something is not known are left out.
        """
        changed = ((self._changed(election), election.gains) for election in elections)
        gained = _burdened(share for p, gains in changed if p is not None for share in self._gained(p, gains))
        found = (self._sides.load_of(side, gained[side]) for side in sorted(gained))
        # Of one that is short for certain, but with a part unknown, no rate could be named that is enough.
        return [d for d in found if d.verdict in _SHORT and d.required_bytes_per_s is not None]

    def _changed(self, election: Election) -> PartitionTraffic | None:
        """Return the traffic that an election changes; None: none that a throttle sees."""
        p = self._traffic.get((election.topic, election.partition))
        return None if p is None or p.leader == election.gains else p

    def _gained(self, p: PartitionTraffic, leader: int) -> list[FollowerTraffic]:
        """Return the shares that come to sides when another replica leads."""
        others = tuple(broker for broker in p.followers if broker != leader)
        fetches_now = (p.leader,) if p.leader is not None and p.leader in self._alive else ()
        after = replace(p, leader=leader, followers=(*others, *fetches_now))
        # What the other followers receive does not change with the broker that sends it.
        sides = ((leader, Role.LEADER), (p.leader, Role.FOLLOWER))
        return [share for share in follower_traffic(after) if share.broker_role in sides]


def _given_up(p: PartitionTraffic, leader: int) -> list[FollowerTraffic]:
    """Return the shares that go from sides when another replica leads."""
    sides = ((p.leader, Role.LEADER), (leader, Role.FOLLOWER))
    return [share for share in follower_traffic(p) if share.broker_role in sides]


def _burdened(gained: Iterable[FollowerTraffic]) -> dict[BrokerRole, list[FollowerTraffic]]:
    """Return the sides whose verdict these shares can make worse, with their own of them."""
    sides: dict[BrokerRole, list[FollowerTraffic]] = defaultdict(list)
    for share in gained:
        sides[share.broker_role].append(share)
    return {side: own for side, own in sides.items() if any(_counts(share) for share in own)}


def _counts(share: FollowerTraffic) -> bool:
    """Whether a share is in an unknown list, or in the list and has traffic or is held back."""
    return share.listed is None or (share.listed and (share.write_bytes_per_s != 0 or not share.in_sync))


def _need_bytes_per_s(own: Iterable[FollowerTraffic]) -> float:
    rates = [share.write_bytes_per_s for share in own if share.listed is not False]
    return sum(rate for rate in rates if rate is not None) if None not in rates else _UNKNOWN_NEED_BYTES_PER_S


def _room_bytes_per_s(demand: ThrottleLoad) -> float:
    """Return by how much a side's traffic may grow, at most, before its throttle is not enough."""
    if demand.verdict is Verdict.CATCHING_UP:
        assert demand.throttle_bytes_per_s is not None
        assert demand.required_bytes_per_s is not None
        return demand.throttle_bytes_per_s - demand.required_bytes_per_s
    return 0.0 if demand.verdict in _NOT_ENOUGH else math.inf

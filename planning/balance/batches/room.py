"""Room of brokers with limits in each batch: for what arrives in it, and for the throttle of its copies."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Hashable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from headroom.planning.balance.arrays import BoolArray, FloatArray, IntArray, hourly_percentile
from headroom.planning.balance.model import NO_BROKER, RATES, TIMED, Resource
from headroom.planning.balance.scoring.goal_set import GoalSet
from headroom.planning.balance.scoring.loads import ClusterLoads
from headroom.planning.balance.search.actions import BalanceAction
from headroom.planning.balance.search.limits import MARGIN_RATIO, least_copy_rate
from headroom.planning.balance.search.trajectory import action_deltas

# Sums in another order differ in their last digits.
ROUNDING = 1e-12
# Batches for which there is room at first; it is doubled when they are full.
_FEW_BATCHES = 16


@dataclass(frozen=True)
class BatchThrottle:
    """Throttle that brokers have room for while a batch copies.

    Attributes:
        most_bytes_per_s: highest throttle with which brokers stay within their limits of the network, bytes per second;
            infinite if none has such a limit.
        limited_by: broker, by index, that has room for no more; None if none limits it.
        beyond: brokers, by index, that are beyond their limit of network out and send copies, because nothing else
            relieves them. They do not limit the throttle.
    """

    most_bytes_per_s: float = math.inf
    limited_by: int | None = None
    beyond: frozenset[int] = frozenset()


UNLIMITED = BatchThrottle()


class RowsByBatch(dict[Hashable, FloatArray]):
    """Arrays with a row for each batch, 0 at first."""

    def __init__(self, *shape: int) -> None:
        self._shape, self._rows = shape, _FEW_BATCHES

    def __missing__(self, key: Hashable) -> FloatArray:
        self[key] = np.zeros((self._rows, *self._shape))
        return self[key]

    def hold(self, batches: int, mode: Any = "constant") -> None:
        """Make room for a number of batches; new rows are 0, or with mode "edge" like the last one."""
        while self._rows < batches:
            for key, rows in self.items():
                self[key] = np.pad(rows, [(0, self._rows), *[(0, 0)] * len(self._shape)], mode=mode)
            self._rows *= 2


class BatchRoom:
    """Loads of brokers at the start of each batch, and what arrives in it.

    A row of loads has the hours of each rate that has a limit, then the latest values of the others.

    Args:
        before: state before the first action.
        goals: goals with their bounds.
        actions: the actions.
        leaders: leader from which each action copies; -1 if there is none.
    """

    def __init__(
        self, before: ClusterLoads, goals: GoalSet, actions: Sequence[BalanceAction], leaders: Sequence[int]
    ) -> None:
        self._before, self._actions, self._leaders = before, actions, leaders
        limits = {resource: goals.limit(resource) for resource in Resource}
        limited = [resource for resource in Resource if np.isfinite(limits[resource]).any()]
        self._timed = [resource for resource in limited if resource in TIMED]
        self._latest = [resource - len(TIMED) for resource in limited if resource not in TIMED]
        self._upper = np.array([limits[r] for r in limited]).reshape(len(limited), len(before.model.brokers)).T
        self._is_limited = np.isfinite(self._upper).any(axis=1).tolist()
        deltas = action_deltas(before.model, actions)
        self._moved = self._rows(deltas.hours, deltas.latest)
        # What leaders send in addition until moves end.
        sent = np.zeros_like(deltas.hours)
        sent[Resource.NETWORK_OUT] = before.model.write[[action.partition for action in actions]]
        self._sent = self._rows(sent, np.zeros_like(deltas.latest))
        self._start, self._arriving = (RowsByBatch(self._moved.shape[1]) for _ in range(2))
        # The last batch in which load arrives on a broker, and in which it sends copies beyond its limit.
        self._last, self._beyond = (defaultdict[int, int](int) for _ in range(2))
        # What each leader sends of partitions that a batch copies, and the rates that throttles have to exceed.
        self._copied, self._required = RowsByBatch(self._moved.shape[1]), RowsByBatch()
        self._limits_network, self._least = bool(set(self._timed) & set(RATES)), least_copy_rate(before.model)
        self._throttles = defaultdict[int, BatchThrottle](lambda: UNLIMITED)
        # What each broker has left for the throttle of a batch, by resource.
        self._left_in = defaultdict[int, dict[tuple[int, Resource], float]](dict)

    def _rows(self, hours: FloatArray, latest: FloatArray) -> FloatArray:
        """Return the rows of loads by resource, (3, N, H) and (3, N), as (N, C)."""
        timed = hours[self._timed].transpose(1, 0, 2).reshape(latest.shape[1], len(self._timed) * hours.shape[2])
        rows: FloatArray = np.concatenate([timed, latest[self._latest].T], axis=1)
        return rows

    def _loads(self, rows: FloatArray) -> FloatArray:
        """Return the loads of rows by resource with a limit, (N, L)."""
        model, edge = self._before.model, rows.shape[1] - len(self._latest)
        hours = rows[:, :edge].reshape(len(rows), len(self._timed), model.write.shape[1])
        return np.concatenate([hourly_percentile(hours, model.percentile), rows[:, edge:]], axis=1)

    def _start_of(self, broker: int) -> FloatArray:
        if broker not in self._start:
            own = [broker]
            self._start[broker] += self._rows(self._before.hours[:, own], self._before.loads[3:, own])
        return self._start[broker]

    def _arrivals(self, n: int) -> Iterator[tuple[int, FloatArray]]:
        """Yield the brokers with a limit to which an action adds load until its batch has ended, with the load."""
        target, leader = self._actions[n].target, self._leaders[n]
        if self._is_limited[target]:
            yield target, self._moved[n]
        if leader != NO_BROKER and self._is_limited[leader] and Resource.NETWORK_OUT in self._timed:
            yield leader, self._sent[n]

    def first(self, n: int) -> int:
        """Return the first batch in which an action may be: it arrives not before actions that come before it.

        It gives no lead before its source sends copies beyond the limit, because the source may then be within it.
        """
        action = self._actions[n]
        return max(self._last[action.target], self._beyond[action.source] if action.leads else 0)

    def fits(self, n: int, batches: IntArray) -> BoolArray:
        """Return in which batches brokers stay within their limits if all arrives before anything leaves, (N,)."""
        fits = np.ones(len(batches), dtype=np.bool_)
        for broker, arriving in self._arrivals(n) if len(batches) else ():
            upper = self._upper[broker] * (1 + ROUNDING)
            before = self._start_of(broker)[batches] + self._arriving[broker][batches]
            after = self._loads(before + arriving)
            if not (after > upper).any():
                continue
            # Beyond a limit, a broker may take what does not count there, such as leaders beyond the limit of its disk.
            within = ((after <= upper) | (after <= self._loads(before) * (1 + ROUNDING))).all(axis=1)
            if broker == self._actions[n].source:
                # A leader beyond its limit may send copies of partitions whose lead it gives: only that relieves it.
                within |= self._sends_beyond(broker, batches)
            fits &= within
        fits[fits] = self._has_throttle(n, batches[fits])
        return fits

    def _sends_beyond(self, broker: int, batches: IntArray) -> BoolArray:
        """Return whether a broker is beyond its limit of network out at the start of batches, (N,)."""
        out = self._timed.index(Resource.NETWORK_OUT)
        beyond: BoolArray = self._loads(self._start_of(broker)[batches])[:, out] > self._upper[broker, out]
        return beyond

    def _has_throttle(self, n: int, batches: IntArray) -> BoolArray:
        """Return in which batches brokers have room for the throttle that all copies need with one more, (N,)."""
        if not (self._actions[n].copies and self._limits_network):
            return np.ones(len(batches), dtype=np.bool_)
        most = np.array([self._throttles[number].most_bytes_per_s for number in batches.tolist()])
        for _, _, room in self._rooms(n, batches):
            np.minimum(most, room, out=most)
        needed = np.full(len(batches), self._least)
        for key, rate in (("most", 0.0), *self._requires(n)):
            np.maximum(needed, MARGIN_RATIO * (self._required[key][batches] + rate), out=needed)
        fits: BoolArray = needed <= most * (1 + ROUNDING)
        return fits

    def _requires(self, n: int) -> Iterator[tuple[Hashable, float]]:
        """Yield what a copy adds to the rates that the throttles of its leader and its target have to exceed."""
        model, action = self._before.model, self._actions[n]
        write = float(model.peak_write[action.partition])
        yield (self._leaders[n], "sends"), write * (int(model.followers[action.partition]) + 1)
        yield (action.target, "receives"), write

    def _rooms(self, n: int, batches: IntArray) -> Iterator[tuple[int, Resource, FloatArray]]:
        """Yield the room for a throttle on the brokers where an action changes it, in batches, bytes per second, (N,).

        While copies run, the throttle counts for a leader instead of all that it sends of these partitions, and for a
        target instead of the writes of new replicas.
        """
        action, leader = self._actions[n], self._leaders[n]
        if Resource.NETWORK_IN in self._timed:
            start = self._start_of(action.target)[batches]
            yield action.target, Resource.NETWORK_IN, self._left(action.target, Resource.NETWORK_IN, start)
        if Resource.NETWORK_OUT not in self._timed:
            return
        if leader != NO_BROKER:
            others = self._sent[n] * int(self._before.model.followers[action.partition])
            room = self._left(leader, Resource.NETWORK_OUT, self._besides_copies(leader, batches) - others)
            relieved = self._sends_beyond(leader, batches) if leader == action.source else np.False_
            yield leader, Resource.NETWORK_OUT, np.where(relieved, np.inf, room)
        if action.leads:
            sends = self._required[action.target, "copies"][batches] > 0
            after = self._besides_copies(action.target, batches) + self._moved[n]
            room = self._left(action.target, Resource.NETWORK_OUT, after)
            yield action.target, Resource.NETWORK_OUT, np.where(sends, room, np.inf)

    def _besides_copies(self, broker: int, batches: IntArray) -> FloatArray:
        """Return the loads of a broker in batches without what it sends of partitions that they copy, (N, C)."""
        loads: FloatArray = self._start_of(broker)[batches] + self._arriving[broker][batches]
        return loads - self._copied[broker][batches]

    def _left(self, broker: int, resource: Resource, rows: FloatArray) -> FloatArray:
        """Return what a broker has left of its limit of a rate, (N,)."""
        at = self._timed.index(resource)
        left: FloatArray = self._upper[broker, at] - self._loads(rows)[:, at]
        return left

    def throttle(self, number: int) -> BatchThrottle:
        """Return the throttle that brokers have room for while a batch copies."""
        return self._throttles[number]

    def take(self, n: int, number: int) -> None:
        """Let an action arrive in a batch, and what it replaces leave at its end."""
        self._start.hold(number + 2, mode="edge")
        for rows in (self._arriving, self._copied, self._required):
            rows.hold(number + 2)
        action = self._actions[n]
        self._take_throttle(n, number)
        for broker, arriving in self._arrivals(n):
            self._arriving[broker][number] += arriving
            self._last[broker] = max(self._last[broker], number)
            if broker == action.source and self._sends_beyond(broker, np.array([number]))[0]:
                self._beyond[broker] = max(self._beyond[broker], number)
        self._start_of(action.target)[number + 1 :] += self._moved[n]
        self._start_of(action.source)[number + 1 :] -= self._moved[n]

    def _take_throttle(self, n: int, number: int) -> None:
        """Let the copy of an action be one of those that share the throttle of a batch."""
        action, leader = self._actions[n], self._leaders[n]
        if not (action.copies and self._limits_network):
            return
        batch, room = np.array([number]), self._throttles[number]
        rooms = self._left_in[number]
        rooms |= {(broker, resource): float(left[0]) for broker, resource, left in self._rooms(n, batch)}
        tightest = min(rooms, key=lambda end: rooms[end])
        if rooms[tightest] < math.inf:
            room = replace(room, most_bytes_per_s=rooms[tightest], limited_by=tightest[0])
        for key, rate in self._requires(n):
            self._required[key][number] += rate
            most = self._required["most"]
            most[number] = max(most[number], self._required[key][number])
        self._required[leader, "copies"][number] += 1
        if leader == action.source and Resource.NETWORK_OUT in self._timed and self._sends_beyond(leader, batch)[0]:
            room = replace(room, beyond=room.beyond | {leader})
        self._copied[leader][number] += self._sent[n] * (int(self._before.model.followers[action.partition]) + 1)
        self._throttles[number] = room

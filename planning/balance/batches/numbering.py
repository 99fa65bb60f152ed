"""Number of the batch of each action: the first one in which it fits, whatever follows on it."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Hashable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from headroom.planning.balance.arrays import BoolArray, FloatArray, IntArray, hourly_percentile
from headroom.planning.balance.model import NO_BROKER, TIMED, Resource
from headroom.planning.balance.scoring.goal_set import GoalSet
from headroom.planning.balance.scoring.loads import ClusterLoads
from headroom.planning.balance.search.actions import BalanceAction
from headroom.planning.balance.search.limits import MARGIN_RATIO
from headroom.planning.balance.search.trajectory import action_deltas, copied_from
from headroom.schemas.errors import HeadroomError

# Sums in another order differ in their last digits.
_ROUNDING = 1e-12
# Batches for which there is room at first; it is doubled when they are full.
_FEW_BATCHES = 16


@dataclass(frozen=True)
class CopyLimits:
    """Limits of one batch.

    Attributes:
        topic_ratio: maximum share of a topic's partitions that move, 0 to 1; at least one partition may.
        moves_per_broker: maximum number of replicas that a broker gives or takes.
        sources_per_target: maximum number of leaders that one broker copies from.
        elections: maximum number of elections.
        replication_bytes_per_s: throttle, or replication capacity of a broker, that the batch has to fit, with the
            usual margin; None: no limit.
    """

    topic_ratio: float = 0.5
    moves_per_broker: int = 50
    sources_per_target: int = 10
    elections: int = 200
    replication_bytes_per_s: float | None = None


def batch_numbers(
    before: ClusterLoads, goals: GoalSet, actions: Sequence[BalanceAction], limits: CopyLimits
) -> list[int]:
    """Return the number of the batch of each action, from 0. The batches of a prefix are those of all actions.

    Each action is in the first batch in which everything that this batch takes in may arrive before anything leaves,
    and after the batches of earlier actions of its partition. It arrives on a broker with a limit in no earlier batch
    than an action before it, so that it uses up no room that this one waits for.

    Args:
        before: state before the first action; it is not changed.
        goals: goals with their bounds.
        actions: actions in an order in which each is within all limits after the ones before it.
        limits: limits of one batch.

    Raises:
        HeadroomError: an action does not fit into a batch of its own.
    """
    leaders = copied_from(before, actions)
    room, counts = _Room(before, goals, actions, leaders), _Counts(before, actions, leaders, limits)
    numbers: list[int] = []
    following: dict[int, int] = defaultdict(int)
    for n, action in enumerate(actions):
        first = max(following[action.partition], room.first(n))
        fitting = counts.fitting(n, first)
        fitting = fitting[room.fits(n, fitting)]
        if not len(fitting):
            counts.add_batch(n)
            fitting = counts.fitting(n, counts.batches - 1)
            if not (len(fitting) and room.fits(n, fitting).all()):
                name = str(before.model.name(action.partition))
                raise HeadroomError(name, "does not fit into a batch of its own", "Raise the throttle, or exclude it.")
        number = int(fitting[0])
        numbers.append(number)
        counts.take(n, number)
        room.take(n, number)
        following[action.partition] = number + 1
    return numbers


class _ByBatch(dict[Hashable, FloatArray]):
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


class _Counts:
    """What counts in a batch: elections, moves of brokers and topics, leaders to copy from, and their throttle."""

    def __init__(
        self, before: ClusterLoads, actions: Sequence[BalanceAction], leaders: Sequence[int], limits: CopyLimits
    ) -> None:
        self._limits, self._actions, self._leaders, self._model = limits, actions, leaders, before.model
        self._topic_sizes = np.bincount(before.model.topic, minlength=len(before.model.topics))
        self._of_elections: list[bool] = []
        self._used = _ByBatch()

    @property
    def batches(self) -> int:
        """Return the number of batches."""
        return len(self._of_elections)

    def add_batch(self, n: int) -> None:
        """Add a batch at the end for an action and others of its kind."""
        self._of_elections.append(not self._actions[n].copies)
        self._used.hold(self.batches)

    def fitting(self, n: int, first: int) -> IntArray:
        """Return the batches from a number on whose counts leave room for an action."""
        rows = slice(first, self.batches)
        fits = np.array(self._of_elections[rows], dtype=np.bool_) != bool(self._actions[n].copies)
        for key, amount, most in self._uses(n):
            fits &= (self._used[key][rows] + amount) * (1 - _ROUNDING) <= most
        if self._actions[n].copies:
            target, leader = self._actions[n].target, self._leaders[n]
            is_source = self._used["copies", target, leader][rows] > 0
            fits &= is_source | (self._used["sources", target][rows] < self._limits.sources_per_target)
        return first + np.flatnonzero(fits)

    def take(self, n: int, number: int) -> None:
        """Count an action in a batch."""
        for key, amount, _ in self._uses(n):
            self._used[key][number] += amount
        if self._actions[n].copies:
            target, leader = self._actions[n].target, self._leaders[n]
            self._used["sources", target][number] += self._used["copies", target, leader][number] == 0
            self._used["copies", target, leader][number] += 1

    def _uses(self, n: int) -> Iterator[tuple[Hashable, float, float]]:
        """Yield what an action adds to which sum of its batch, and the most that this sum may be."""
        limits, model, action = self._limits, self._model, self._actions[n]
        if not action.copies:
            yield "elections", 1, limits.elections
            return
        topic = int(model.topic[action.partition])
        yield ("topic", topic), 1, max(1, math.floor(limits.topic_ratio * int(self._topic_sizes[topic])))
        for broker in (action.source, action.target):
            yield ("moves", broker), 1, limits.moves_per_broker
        if limits.replication_bytes_per_s is not None:
            most, write = limits.replication_bytes_per_s / MARGIN_RATIO, float(model.peak_write[action.partition])
            yield ("sent", self._leaders[n]), write * (int(model.followers[action.partition]) + 1), most
            yield ("received", action.target), write, most


class _Room:
    """Loads of brokers at the start of each batch, and what arrives in it.

    A row of loads has the hours of each rate that has a limit, then the latest values of the others.
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
        self._start, self._arriving = (_ByBatch(self._moved.shape[1]) for _ in range(2))
        # The last batch in which load arrives on a broker, and in which it sends copies beyond its limit.
        self._last, self._beyond = (defaultdict[int, int](int) for _ in range(2))

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
            upper = self._upper[broker] * (1 + _ROUNDING)
            before = self._start_of(broker)[batches] + self._arriving[broker][batches]
            after = self._loads(before + arriving)
            if not (after > upper).any():
                continue
            # Beyond a limit, a broker may take what does not count there, such as leaders beyond the limit of its disk.
            within = ((after <= upper) | (after <= self._loads(before) * (1 + _ROUNDING))).all(axis=1)
            if broker == self._actions[n].source:
                # A leader beyond its limit may send copies of partitions whose lead it gives: only that relieves it.
                within |= self._sends_beyond(broker, batches)
            fits &= within
        return fits

    def _sends_beyond(self, broker: int, batches: IntArray) -> BoolArray:
        """Return whether a broker is beyond its limit of network out at the start of batches, (N,)."""
        out = self._timed.index(Resource.NETWORK_OUT)
        beyond: BoolArray = self._loads(self._start_of(broker)[batches])[:, out] > self._upper[broker, out]
        return beyond

    def take(self, n: int, number: int) -> None:
        """Let an action arrive in a batch, and what it replaces leave at its end."""
        self._start.hold(number + 2, mode="edge")
        self._arriving.hold(number + 2)
        for broker, arriving in self._arrivals(n):
            self._arriving[broker][number] += arriving
            self._last[broker] = max(self._last[broker], number)
            if broker == self._actions[n].source and self._sends_beyond(broker, np.array([number]))[0]:
                self._beyond[broker] = max(self._beyond[broker], number)
        self._start_of(self._actions[n].target)[number + 1 :] += self._moved[n]
        self._start_of(self._actions[n].source)[number + 1 :] -= self._moved[n]

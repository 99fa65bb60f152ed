"""Number of the batch of each action: the first one in which it fits, whatever follows on it."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Hashable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from headroom.planning.balance.arrays import IntArray
from headroom.planning.balance.batches.room import ROUNDING, BatchRoom, BatchThrottle, RowsByBatch
from headroom.planning.balance.scoring.goal_set import GoalSet
from headroom.planning.balance.scoring.loads import ClusterLoads
from headroom.planning.balance.search.actions import BalanceAction
from headroom.planning.balance.search.limits import MARGIN_RATIO
from headroom.planning.balance.search.trajectory import copied_from
from headroom.schemas.errors import HeadroomError


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
) -> tuple[list[int], list[BatchThrottle]]:
    """Return the number of the batch of each action, from 0, and the throttle that each batch has room for.

    The batches of a prefix are those of all actions. Each action is in the first batch in which everything that this
    batch takes in may arrive before anything leaves, and brokers have room for the throttle that its copies need. It
    comes after the batches of earlier actions of its partition. It arrives on a broker with a limit in no earlier batch
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
    room, counts = BatchRoom(before, goals, actions, leaders), _Counts(before, actions, leaders, limits)
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
    return numbers, [room.throttle(number) for number in range(counts.batches)]


class _Counts:
    """What counts in a batch: elections, moves of brokers and topics, leaders to copy from, and their throttle."""

    def __init__(
        self, before: ClusterLoads, actions: Sequence[BalanceAction], leaders: Sequence[int], limits: CopyLimits
    ) -> None:
        self._limits, self._actions, self._leaders, self._model = limits, actions, leaders, before.model
        self._topic_sizes = np.bincount(before.model.topic, minlength=len(before.model.topics))
        self._of_elections: list[bool] = []
        self._used = RowsByBatch()

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
            fits &= (self._used[key][rows] + amount) * (1 - ROUNDING) <= most
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

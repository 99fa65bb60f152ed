"""Replicas of very many partitions as numbers, for questions to all of them at once."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from itertools import chain

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Bools = NDArray[np.bool_]


class ReplicaKeys:
    """Numbers of replicas: the number of the partition, times the number of brokers, plus the position of the broker.

    Args:
        brokers: ids of all brokers.

    Attributes:
        brokers: the ids, ascending.
    """

    def __init__(self, brokers: Iterable[int]) -> None:
        self.brokers = tuple(sorted(brokers))
        self._ids = np.array(self.brokers, np.int64)

    def of(self, replicas: Sequence[Collection[int]]) -> Ints:
        """Return the keys of the replicas of partitions 0, 1, ...; without those on a broker that does not exist."""
        counts = np.fromiter(map(len, replicas), np.int64, len(replicas))
        position = self.positions(np.fromiter(chain.from_iterable(replicas), np.int64, int(counts.sum())))
        keys = np.repeat(np.arange(len(replicas)), counts) * len(self.brokers) + position
        return keys[position >= 0]

    def positions(self, ids: Ints) -> Ints:
        """Return the position of each broker; -1 for an id that no broker has."""
        if not len(self._ids):
            return np.full(len(ids), -1)
        at = np.searchsorted(self._ids, ids).clip(max=len(self._ids) - 1)
        return np.where(self._ids[at] == ids, at, -1)

    def partition_and_broker(self, keys: Ints) -> tuple[Ints, Ints]:
        """Return the partition of each replica, and the position of its broker."""
        return np.divmod(keys, max(1, len(self.brokers)))


def leader_ids(leaders: Sequence[int | None]) -> Ints:
    """Return broker ids as an array, with -1 for None."""
    return np.array([-1 if leader is None else leader for leader in leaders], np.int64)


def is_among(keys: Ints, others: Ints) -> Bools:
    """Return for each key whether it is one of the others; ``numpy.isin`` takes ten times as long for a million."""
    if not len(others):
        return np.zeros(len(keys), bool)
    ordered = np.sort(others)
    at = np.searchsorted(ordered, keys).clip(max=len(ordered) - 1)
    return np.asarray(ordered[at] == keys)

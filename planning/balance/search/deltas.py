"""What actions take from one broker and give to another, and the loads of brokers after that."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from headroom.planning.balance.arrays import BoolArray, FloatArray, IntArray, hourly_percentile
from headroom.planning.balance.model import ClusterModel
from headroom.planning.balance.scoring.loads import RESOURCES, ClusterLoads


@dataclass(frozen=True, eq=False)
class LoadDeltas:
    """Load that each of N actions takes from its source and gives to its target.

    Attributes:
        hours: by resource of ``TIMED``, (3, N, H).
        latest: by resource of ``LATEST``, (3, N).
    """

    hours: FloatArray
    latest: FloatArray

    def subset(self, which: IntArray) -> LoadDeltas:
        """Return the deltas of some of the actions."""
        return LoadDeltas(self.hours.take(which, axis=1), self.latest.take(which, axis=1))

    def minus(self, other: LoadDeltas) -> LoadDeltas:
        """Return the deltas of swaps."""
        return LoadDeltas(self.hours - other.hours, self.latest - other.latest)

    def in_turn(self) -> LoadDeltas:
        """Return the deltas of each action together with all before it."""
        return LoadDeltas(np.cumsum(self.hours, axis=1), np.cumsum(self.latest, axis=1))


def load_deltas(model: ClusterModel, partitions: IntArray, copies: BoolArray, leads: BoolArray) -> LoadDeltas:
    """Return what actions move.

    Args:
        model: the cluster.
        partitions: partition of each action, (N,).
        copies: whether a replica moves, (N,).
        leads: whether the lead moves, (N,).
    """
    hours = np.empty((3, len(partitions), model.write.shape[1]))
    for row, (rate, goes) in enumerate(((model.write, copies), (model.sent_rate, leads), (model.requests, leads))):
        np.multiply(rate.take(partitions, axis=0), goes[:, None], out=hours[row])
    size = np.where(copies, model.size[partitions], 0.0)
    return LoadDeltas(hours, np.stack([size, leads.astype(np.float64), copies.astype(np.float64)]))


def changed_loads(loads: ClusterLoads, brokers: IntArray, hours: FloatArray, latest: FloatArray) -> FloatArray:
    """Return the loads of brokers after changes, (6, N).

    Args:
        loads: the state before.
        brokers: broker of each change, (N,).
        hours: changes by resource of ``TIMED`` and hour, (3, N, H).
        latest: changes by resource of ``LATEST``, (3, N).
    """
    after = np.empty((RESOURCES, len(brokers)))
    after[:3] = hourly_percentile(loads.hours.take(brokers, axis=1) + hours, loads.model.percentile)
    after[3:] = loads.loads[3:].take(brokers, axis=1) + latest
    return after

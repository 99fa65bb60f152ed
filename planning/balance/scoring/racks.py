"""Spread of replicas over racks: as many different racks as there are, as even as can be."""

from __future__ import annotations

import numpy as np

from headroom.planning.balance.arrays import BoolArray, FloatArray, IndexArray, IntArray
from headroom.planning.balance.model import NO_BROKER, ClusterModel


def crowded_replicas(model: ClusterModel, replicas: IndexArray) -> FloatArray:
    """Return the number of replicas of each broker that are on a rack with too many of their partition, (B,).

    A broker without a rack counts on no rack.
    """
    counts = np.zeros(len(model.brokers))
    if not model.racks:
        return counts
    crowded = crowded_slots(model, replicas)
    np.add.at(counts, replicas[crowded], 1.0)
    return counts


def crowded_slots(model: ClusterModel, replicas: IndexArray) -> BoolArray:
    """Return which replicas are on a rack with more replicas of their partition than necessary, (N, R)."""
    racks = np.where(replicas == NO_BROKER, -1, model.rack[replicas])
    same = (racks[:, :, None] == racks[:, None]).sum(axis=1)
    crowded: BoolArray = (racks >= 0) & (same > _enough(model, replicas, racks)[:, None])
    return crowded


def keeps_racks(model: ClusterModel, replicas: IndexArray, source: IntArray, target: IntArray) -> BoolArray:
    """Return whether moves bring replicas only to racks that do not have enough of their partition.

    Where some brokers have a rack, a broker without one takes nothing: its replicas may share any rack.

    Args:
        model: the cluster.
        replicas: brokers of the partitions that move, (N, R).
        source: broker that gives the replica, (N,).
        target: broker that takes it, (N,) or (N, D).
    """
    if not model.racks:
        return np.ones(target.shape, dtype=np.bool_)
    racks = np.where((replicas == NO_BROKER) | (replicas == source[:, None]), -1, model.rack[replicas])
    taken = model.rack[target if target.ndim == 2 else target[:, None]]
    same = np.zeros(taken.shape, dtype=np.int64)
    for slot in racks.T:
        same += slot[:, None] == taken
    fits: BoolArray = (taken >= 0) & (same < _enough(model, replicas, racks)[:, None])
    return fits.reshape(target.shape)


def _enough(model: ClusterModel, replicas: IndexArray, racks: IndexArray) -> IntArray:
    """Return how many replicas of each partition are enough for a rack if they are as even as can be, (N,).

    As long as a rack has too few of a partition, no other may have more than it is to have.

    Args:
        model: the cluster.
        replicas: brokers of the partitions, (N, R).
        racks: racks of their replicas, (N, R); -1 where none counts.
    """
    count = np.count_nonzero(replicas != NO_BROKER, axis=1)
    least, most = count // model.racks, np.maximum(1, -(-count // model.racks))
    uneven = np.flatnonzero((least > 0) & (least < most))
    if len(uneven):
        own, filled = racks[uneven], np.zeros(len(uneven), dtype=np.int64)
        for slot in range(own.shape[1]):
            earlier = (own[:, :slot] == own[:, slot : slot + 1]).sum(axis=1)
            filled += (own[:, slot] >= 0) & (earlier < least[uneven])
        most[uneven] = np.where(filled < least[uneven] * model.racks, least[uneven], most[uneven])
    return most

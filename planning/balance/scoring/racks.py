"""Spread of replicas over racks: as many different racks as there are, as even as can be."""

from __future__ import annotations

import numpy as np

from headroom.planning.balance.arrays import BoolArray, FloatArray, IndexArray, IntArray
from headroom.planning.balance.model import NO_BROKER, ClusterModel


def crowded_replicas(model: ClusterModel, replicas: IndexArray) -> FloatArray:
    """Return the number of replicas of each broker that are on a rack with too many of their partition, (B,).

    A broker without a rack counts on no rack.

    Args:
        model: the cluster.
        replicas: brokers of some partitions, (N, R); -1 in slots that are not used.
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
    slots = replicas.shape[1]
    same = np.zeros(replicas.shape, dtype=np.int64)
    for other in range(slots):
        same += racks == racks[:, other : other + 1]
    most = np.maximum(1, -(-(replicas != NO_BROKER).sum(axis=1) // max(1, model.racks)))
    crowded: BoolArray = (racks >= 0) & (same > most[:, None])
    return crowded


def keeps_racks(model: ClusterModel, replicas: IndexArray, source: IntArray, target: IntArray) -> BoolArray:
    """Return whether moves leave no replica on a rack that has enough of its partition.

    Where some brokers have a rack, a broker without one takes nothing: its replicas may share any rack.

    Args:
        model: the cluster.
        replicas: brokers of the partitions that move, (N, R).
        source: broker that gives the replica, (N,).
        target: broker that takes it, (N,) or (N, D).
    """
    if not model.racks:
        return np.ones(target.shape, dtype=np.bool_)
    racks = np.where((replicas == NO_BROKER) | (replicas == source[:, None]), -2, model.rack[replicas])
    most = np.maximum(1, -(-(replicas != NO_BROKER).sum(axis=1) // model.racks))
    wanted = model.rack[target]
    columns = wanted[:, None] if wanted.ndim == 1 else wanted
    same = np.zeros(columns.shape, dtype=np.int64)
    for slot in range(racks.shape[1]):
        same += racks[:, slot : slot + 1] == columns
    fits: BoolArray = (columns >= 0) & (same < most[:, None])
    return fits[:, 0] if wanted.ndim == 1 else fits

"""Room on the volumes of brokers while replicas arrive, each on the volume with the most free bytes."""

from __future__ import annotations

from collections.abc import Sequence
from heapq import heapify, heapreplace
from math import isinf

import numpy as np

from headroom.planning.balance.arrays import FloatArray, IntArray
from headroom.planning.balance.model import ClusterModel
from headroom.planning.balance.search.actions import BalanceAction


class VolumeRoom:
    """Free bytes on the volumes of brokers that have several, or whose disk has no limit.

    On a single volume the limit of the disk is the room, or the free bytes if the goals do not have this limit. What
    leaves makes no room, because it may leave another volume. So what has found room has it in any batches.

    Args:
        model: the cluster.
        disk_limits: limit of the disk of each broker, bytes, (B,); infinite without one.
        arrived: actions whose new replicas have arrived before, and stay.

    Attributes:
        largest_bytes: largest replica for which each broker has room, (B,); infinity if its volumes are not counted.
        is_scarce: whether the volumes of any broker are counted.
    """

    def __init__(self, model: ClusterModel, disk_limits: FloatArray, arrived: Sequence[BalanceAction] = ()) -> None:
        self._free = {
            number: free
            for number, (broker, limit) in enumerate(zip(model.brokers, disk_limits.tolist(), strict=True))
            if len(free := broker.capacity.volumes_free_bytes or ()) > 1 or (free and isinf(limit))
        }
        # Heaps of the free bytes that are left, negative.
        self._left: dict[int, list[float]] = {}
        self._size = model.size
        self.largest_bytes: FloatArray = np.full(len(model.brokers), np.inf)
        counted = list(self._free)
        self.largest_bytes[counted] = model.largest_free[counted]
        self.is_scarce = bool(self._free)
        for action in arrived if self.is_scarce else ():
            if action.copies:
                self.arrive(action.target, [action.partition])
        self._free |= {broker: tuple(-free for free in left) for broker, left in self._left.items()}
        self._left.clear()

    def take(self, broker: int, partition: int) -> bool:
        """Let a replica of a partition arrive on a broker if it has room; return whether it has."""
        if not self._size[partition] <= self.largest_bytes[broker]:
            return False
        self.arrive(broker, [partition])
        return True

    def arrive(self, broker: int, partitions: IntArray | list[int]) -> None:
        """Let replicas of partitions arrive on a broker, in their order, whether they have room or not."""
        if broker not in self._free:
            return
        if broker not in self._left:
            self._left[broker] = [-free for free in self._free[broker]]
            heapify(self._left[broker])
        left = self._left[broker]
        for size_bytes in self._size[partitions].tolist():
            heapreplace(left, left[0] + size_bytes)
        self.largest_bytes[broker] = -left[0]

    def hold_only(self, broker: int, partitions: IntArray) -> None:
        """Let only replicas of these partitions have arrived on a broker."""
        if self._left.pop(broker, None) is not None:
            self.arrive(broker, partitions)

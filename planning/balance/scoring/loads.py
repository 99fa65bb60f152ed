"""Loads of all brokers in one state of a cluster, updated action by action."""

from __future__ import annotations

import numpy as np

from planning.balance.arrays import FloatArray, IndexArray, IntArray, hourly_percentile
from planning.balance.goals.goal import BrokerUsage
from planning.balance.model import LATEST, NO_BROKER, ClusterModel, Resource
from planning.balance.scoring.racks import crowded_replicas

RESOURCES = len(Resource)


class ClusterLoads:
    """Placement of all partitions and the loads that follow from it; changes are cheap.

    B brokers, T topics, P partitions, R slots, H hours.

    Args:
        model: the cluster as it is.

    Attributes:
        model: the cluster as it is.
        replicas: brokers of the replicas, (P, R); -1 in slots that are not used.
        leader: leader of each partition, (P,); -1 if it has none.
        hours: loads by resource of ``TIMED``, broker and hour, (3, B, H).
        loads: load by resource and broker, (6, B).
        topic_replicas: replicas by topic and broker, (T, B).
        topic_leaders: leaders by topic and broker, (T, B).
        crowded: replicas on a rack with more replicas of their partition than necessary, by broker, (B,).
    """

    def __init__(self, model: ClusterModel) -> None:
        self.model = model
        self.replicas: IndexArray = model.replicas.copy()
        self.leader: IndexArray = model.leader.copy()
        brokers, topics = len(model.brokers), len(model.topics)
        self._size = np.nan_to_num(model.size)
        hours = model.write.shape[1]
        self.hours: FloatArray = np.zeros((3, brokers, hours))
        self.loads: FloatArray = np.zeros((RESOURCES, brokers))
        self.topic_replicas: IndexArray = np.zeros((topics, brokers), dtype=np.int32)
        self.topic_leaders: IndexArray = np.zeros((topics, brokers), dtype=np.int32)
        for slot in range(self.replicas.shape[1]):
            self._count(self.replicas[:, slot], (self.hours[0],), (model.write,), self.topic_replicas)
            used = self.replicas[:, slot] != NO_BROKER
            own = self.replicas[used, slot]
            self.loads[Resource.DISK] += np.bincount(own, weights=self._size[used], minlength=brokers)
        self._count(self.leader, (self.hours[1], self.hours[2]), (model.sent, model.requests), self.topic_leaders)
        self.loads[Resource.REPLICAS] = self.topic_replicas.sum(axis=0)
        self.loads[Resource.LEADERS] = self.topic_leaders.sum(axis=0)
        self.loads[:3] = hourly_percentile(self.hours, model.percentile)
        self.crowded: FloatArray = crowded_replicas(model, self.replicas)

    def _count(
        self, brokers: IndexArray, sums: tuple[FloatArray, ...], rates: tuple[FloatArray, ...], counts: IndexArray
    ) -> None:
        """Add rates (P, H) to the sums (B, H) of the brokers of one replica of each partition, and count topics."""
        order = np.argsort(brokers, kind="stable")
        order = order[np.searchsorted(brokers[order], 0) :]
        if not len(order):
            return
        own = brokers[order]
        first = np.flatnonzero(np.r_[True, own[1:] != own[:-1]])
        for total, rate in zip(sums, rates, strict=True):
            # An unknown load counts as nothing here; actions on its partition are refused.
            total[own[first]] += np.add.reduceat(np.nan_to_num(rate[order]), first, axis=0, dtype=np.float64)
        pairs = self.model.topic[order].astype(np.int64) * len(self.model.brokers) + own
        counts += np.bincount(pairs, minlength=counts.size).reshape(counts.shape).astype(np.int32)

    def usage(self, brokers: IntArray) -> BrokerUsage:
        """Return the loads of brokers in this state, without a topic.

        Args:
            brokers: indices of the brokers, (N,).
        """
        nothing = np.zeros(len(brokers))
        return BrokerUsage(
            brokers,
            self.loads[:, brokers],
            np.full(len(brokers), -1),
            nothing,
            nothing,
            self.crowded[brokers],
        )

    def move(self, partition: int, source: int, target: int) -> None:
        """Give the replica of a partition on one broker to another broker, with the lead if it has it.

        The new replica takes the slot of the old one. If it takes over the lead, it becomes the preferred leader too,
        so that no preferred election undoes it.

        Args:
            partition: index of the partition.
            source: broker with a replica.
            target: broker without one.
        """
        row = self.replicas[partition]
        row[row == source] = target
        topic = self.model.topic[partition]
        self._shift(0, source, target, self.model.write[partition])
        self._shift_latest(Resource.DISK, source, target, float(self._size[partition]))
        self._shift_latest(Resource.REPLICAS, source, target, 1.0)
        self.topic_replicas[topic, source] -= 1
        self.topic_replicas[topic, target] += 1
        if self.leader[partition] == source:
            self._lead(partition, source, target)
        self._update_percentiles(source, target)
        if self.model.racks:
            self.crowded = self.crowded + _crowding_change(self.model, row, source, target)

    def elect(self, partition: int, target: int) -> None:
        """Make a replica the leader and the preferred leader of its partition.

        Args:
            partition: index of the partition.
            target: broker with a replica, not the leader.
        """
        source = int(self.leader[partition])
        self._lead(partition, source, target)
        self._update_percentiles(source, target)

    def _lead(self, partition: int, source: int, target: int) -> None:
        put_first(self.replicas[partition], target)
        self.leader[partition] = target
        topic = self.model.topic[partition]
        self._shift(1, source, target, self.model.sent[partition])
        self._shift(2, source, target, self.model.requests[partition])
        self._shift_latest(Resource.LEADERS, source, target, 1.0)
        self.topic_leaders[topic, source] -= 1
        self.topic_leaders[topic, target] += 1

    def _shift(self, row: int, source: int, target: int, rates: FloatArray) -> None:
        self.hours[row, source] -= rates
        self.hours[row, target] += rates

    def _shift_latest(self, resource: Resource, source: int, target: int, amount: float) -> None:
        assert resource in LATEST, "rates are kept by hour"
        self.loads[resource, source] -= amount
        self.loads[resource, target] += amount

    def _update_percentiles(self, source: int, target: int) -> None:
        both = [source, target]
        self.loads[:3, both] = hourly_percentile(self.hours[:, both], self.model.percentile)


def put_first(row: IndexArray, broker: int) -> None:
    """Put a broker first in a row of replicas; the order of the others stays."""
    slot = int(np.flatnonzero(row == broker)[0])
    row[1 : slot + 1] = row[:slot].copy()
    row[0] = broker


def _crowding_change(model: ClusterModel, row: IndexArray, source: int, target: int) -> FloatArray:
    """Return the change of ``ClusterLoads.crowded`` by a move that was made in a row of replicas, (B,)."""
    before = row.copy()
    before[before == target] = source
    return crowded_replicas(model, row[None]) - crowded_replicas(model, before[None])

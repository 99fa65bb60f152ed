"""Loads of all brokers in one state of a cluster, updated action by action."""

from __future__ import annotations

from copy import copy

import numpy as np

from headroom.planning.balance.arrays import (
    FloatArray,
    IndexArray,
    IntArray,
    RateArray,
    hourly_percentile,
    places_by_broker,
)
from headroom.planning.balance.goals.goal import BrokerUsage
from headroom.planning.balance.model import NO_BROKER, ClusterModel, Resource
from headroom.planning.balance.scoring.racks import crowded_replicas

RESOURCES = len(Resource)


class ClusterLoads:
    """Placement of all partitions and the loads that follow from it; changes are cheap.

    B brokers, T topics, P partitions, R slots, H hours.

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
        self._count(self.leader, (self.hours[1], self.hours[2]), (model.sent_rate, model.requests), self.topic_leaders)
        self.hours[1] += np.array([[broker.follower_reads_bytes_per_s] for broker in model.brokers]).reshape(-1, 1)
        self.loads[Resource.REPLICAS] = self.topic_replicas.sum(axis=0)
        self.loads[Resource.LEADERS] = self.topic_leaders.sum(axis=0)
        self.loads[:3] = hourly_percentile(self.hours, model.percentile)
        self.crowded: FloatArray = crowded_replicas(model, self.replicas)

    def copy(self) -> ClusterLoads:
        """Return a copy, whose changes do not affect this state."""
        twin = copy(self)
        for name in ("replicas", "leader", "hours", "loads", "topic_replicas", "topic_leaders", "crowded"):
            setattr(twin, name, getattr(self, name).copy())
        return twin

    def _count(
        self, brokers: IndexArray, sums: tuple[FloatArray, ...], rates: tuple[RateArray, ...], counts: IndexArray
    ) -> None:
        """Add rates (P, H) to the sums (B, H) of the brokers of one replica of each partition, and count topics."""
        all_known = self.model.rates_known.all()
        # One broker at a time is twice as fast as all at once.
        for broker, partitions in enumerate(places_by_broker(brokers, len(self.model.brokers))):
            for total, rate in zip(sums, rates, strict=True):
                chosen = rate.take(partitions, axis=0)
                # An unknown load counts as nothing here; actions on its partition are refused.
                total[broker] += (chosen if all_known else np.nan_to_num(chosen)).astype(np.float64).sum(axis=0)
        used = brokers != NO_BROKER
        pairs = self.model.topic[used].astype(np.int64) * len(self.model.brokers) + brokers[used]
        counts += np.bincount(pairs, minlength=counts.size).reshape(counts.shape).astype(np.int32)

    def usage(self, brokers: IntArray) -> BrokerUsage:
        """Return the loads of N brokers, by index, in this state, without a topic."""
        nothing = np.zeros(len(brokers))
        return BrokerUsage(
            brokers,
            self.loads[:, brokers],
            np.full(len(brokers), -1),
            nothing,
            nothing,
            self.crowded[brokers],
        )

    def move(self, partitions: IntArray, source: int, target: int) -> None:
        """Give the replicas of partitions on one broker to another broker, with the lead where it has it.

        A new replica takes the slot of the old one. The leader becomes the preferred leader, so that no preferred
        election, as at the end of a run, gives the lead to another replica.

        Args:
            partitions: indices of the partitions, each once.
            source: broker with a replica of each.
            target: broker without a replica of any.
        """
        rows = self.replicas[partitions]
        before = rows.copy()
        rows[rows == source] = target
        model = self.model
        self._shift(0, source, target, model.write.take(partitions, axis=0))
        self._shift_latest(Resource.DISK, source, target, float(self._size[partitions].sum()))
        self._shift_latest(Resource.REPLICAS, source, target, float(len(partitions)))
        self._shift_topics(self.topic_replicas, partitions, source, target)
        leads = self.leader[partitions] == source
        if leads.any():
            self._lead(partitions[leads], source, target)
        self.replicas[partitions] = leader_first(rows, self.leader[partitions])
        self._update_percentiles(source, target)
        # Moves keep the racks of their partitions: a cluster without such replicas gets none.
        if self.crowded.any():
            self.crowded = self.crowded + crowded_replicas(model, rows) - crowded_replicas(model, before)

    def elect(self, partitions: IntArray, source: int, target: int) -> None:
        """Make replicas on a broker the leaders and the preferred leaders of partitions that another one leads."""
        self._lead(partitions, source, target)
        self.replicas[partitions] = leader_first(self.replicas[partitions], self.leader[partitions])
        self._update_percentiles(source, target)

    def _lead(self, partitions: IntArray, source: int, target: int) -> None:
        self.leader[partitions] = target
        self._shift(1, source, target, self.model.sent_rate.take(partitions, axis=0))
        self._shift(2, source, target, self.model.requests.take(partitions, axis=0))
        self._shift_latest(Resource.LEADERS, source, target, float(len(partitions)))
        self._shift_topics(self.topic_leaders, partitions, source, target)

    def _shift(self, row: int, source: int, target: int, rates: RateArray) -> None:
        total = rates.sum(axis=0, dtype=np.float64)
        self.hours[row, source] -= total
        self.hours[row, target] += total

    def _shift_latest(self, resource: Resource, source: int, target: int, amount: float) -> None:
        self.loads[resource, source] -= amount
        self.loads[resource, target] += amount

    def _shift_topics(self, counts: IndexArray, partitions: IntArray, source: int, target: int) -> None:
        topics = self.model.topic[partitions]
        np.subtract.at(counts[:, source], topics, 1)
        np.add.at(counts[:, target], topics, 1)

    def _update_percentiles(self, source: int, target: int) -> None:
        both = [source, target]
        self.loads[:3, both] = hourly_percentile(self.hours[:, both], self.model.percentile)


def leader_first(replicas: IndexArray, leader: IndexArray) -> IndexArray:
    """Return the replicas of partitions, (N, R), with the leaders, (N,), first; the others keep their order."""
    # A partition without a leader keeps its order.
    others = (replicas != leader[:, None]) & (leader != NO_BROKER)[:, None]
    ordered: IndexArray = replicas[np.arange(len(replicas))[:, None], np.argsort(others, axis=1, kind="stable")]
    return ordered

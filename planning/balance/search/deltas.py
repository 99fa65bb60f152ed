"""What actions take from one broker and give to another, and their exact effect on loads."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from headroom.planning.balance.arrays import BoolArray, FloatArray, IntArray, hourly_percentile
from headroom.planning.balance.goals.goal import BrokerUsage
from headroom.planning.balance.model import ClusterModel
from headroom.planning.balance.scoring.goal_set import with_topics
from headroom.planning.balance.scoring.loads import RESOURCES, ClusterLoads


@dataclass(frozen=True, eq=False)
class LoadDeltas:
    """Load that each of N actions takes from its source and gives to its target.

    Attributes:
        hours: by resource of ``TIMED``, (N, 3, H).
        latest: by resource of ``LATEST``, (N, 3).
        topics: topic of the partition, (N,).
        replicas: replicas of that topic that go over, (N,).
        leaders: leaders of that topic that go over, (N,).
    """

    hours: FloatArray
    latest: FloatArray
    topics: IntArray
    replicas: FloatArray
    leaders: FloatArray

    def subset(self, which: BoolArray | IntArray) -> LoadDeltas:
        """Return the deltas of some of the actions."""
        return LoadDeltas(
            self.hours[which], self.latest[which], self.topics[which], self.replicas[which], self.leaders[which]
        )

    def minus(self, other: LoadDeltas) -> LoadDeltas:
        """Return the deltas of swaps; topics are those of this one."""
        return LoadDeltas(
            self.hours - other.hours, self.latest - other.latest, self.topics, self.replicas, self.leaders
        )


def load_deltas(model: ClusterModel, partitions: IntArray, copies: BoolArray, leads: BoolArray) -> LoadDeltas:
    """Return what actions move.

    Args:
        model: the cluster.
        partitions: partition of each action, (N,).
        copies: whether a replica moves, (N,).
        leads: whether the lead moves, (N,).
    """
    hours = np.empty((len(partitions), 3, model.write.shape[1]))
    hours[:, 0] = model.write[partitions] * copies[:, None]
    hours[:, 1] = model.sent[partitions] * leads[:, None]
    hours[:, 2] = model.requests[partitions] * leads[:, None]
    copied, led = copies.astype(np.float64), leads.astype(np.float64)
    size = np.where(copies, model.size[partitions], 0.0)
    latest = np.stack([size, led, copied], axis=1)
    return LoadDeltas(hours, latest, model.topic[partitions].astype(np.int64), copied, led)


Usages = tuple[BrokerUsage, BrokerUsage]


def effects(
    loads: ClusterLoads, deltas: LoadDeltas, sources: IntArray, targets: IntArray, in_turn: bool
) -> tuple[Usages, Usages]:
    """Return the usages of sources and targets before and after each action, each pair (N,).

    Args:
        loads: the state before the first action.
        deltas: what each action moves.
        sources: broker that gives, (N,).
        targets: broker that takes, (N,).
        in_turn: whether each action follows on the one before; all are then between the same two brokers. Otherwise
            each starts from the same state.
    """
    hours, latest = deltas.hours, deltas.latest
    earlier_replicas, earlier_leaders = np.zeros(len(sources)), np.zeros(len(sources))
    if in_turn:
        hours, latest = np.cumsum(hours, axis=0), np.cumsum(latest, axis=0)
        earlier_replicas = _earlier_of_topic(deltas.topics, deltas.replicas)
        earlier_leaders = _earlier_of_topic(deltas.topics, deltas.leaders)
    pairs = []
    for brokers, sign in ((sources, -1.0), (targets, 1.0)):
        after = np.empty((RESOURCES, len(brokers)))
        own_hours = loads.hours[:, brokers].transpose(1, 0, 2)
        after[:3] = hourly_percentile(own_hours + sign * hours, loads.model.percentile).T
        after[3:] = loads.loads[3:, brokers] + sign * latest.T
        before = loads.loads[:, brokers]
        if in_turn:
            before = np.concatenate([before[:, :1], after[:, :-1]], axis=1)
        usage = with_topics(loads.usage(brokers), loads, deltas.topics)
        replicas = usage.topic_replicas + sign * earlier_replicas
        leaders = usage.topic_leaders + sign * earlier_leaders
        pairs.append(
            (
                BrokerUsage(brokers, before, deltas.topics, replicas, leaders, usage.crowded),
                BrokerUsage(
                    brokers,
                    after,
                    deltas.topics,
                    replicas + sign * deltas.replicas,
                    leaders + sign * deltas.leaders,
                    usage.crowded,
                ),
            )
        )
    (source_before, source_after), (target_before, target_after) = pairs
    return (source_before, target_before), (source_after, target_after)


def _earlier_of_topic(topics: IntArray, amounts: FloatArray) -> FloatArray:
    """Return the sum of the amounts of earlier actions with the same topic, (N,)."""
    order = np.argsort(topics, kind="stable")
    total = np.cumsum(amounts[order]) - amounts[order]
    first = np.r_[True, topics[order][1:] != topics[order][:-1]]
    start = np.maximum.accumulate(np.where(first, np.arange(len(order)), 0))
    earlier = np.empty(len(order))
    earlier[order] = total - total[start]
    return earlier

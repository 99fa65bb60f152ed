"""Loads after each action of a sequence, computed for all actions at once."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from headroom.planning.balance.arrays import BoolArray, FloatArray, IntArray
from headroom.planning.balance.model import NO_BROKER, ClusterModel, Resource
from headroom.planning.balance.scoring.goal_set import GoalSet
from headroom.planning.balance.scoring.loads import RESOURCES, ClusterLoads
from headroom.planning.balance.search.actions import ActionKind, BalanceAction
from headroom.planning.balance.search.deltas import LoadDeltas, changed_loads, load_deltas
from headroom.planning.balance.search.limits import least_throttles


@dataclass(frozen=True, eq=False)
class LoadEvents:
    """Changes of brokers by a sequence of actions, sorted by broker, then by action, with what arrives first.

    An election has two events, and so has a move, and two more each for a leader that may send so much, and a target
    that may receive so much, at most (E in all): until the copy ends, the throttle counts instead of the writes.

    Attributes:
        actions: index of the action, (E,).
        brokers: broker whose load changes, (E,).
        before: loads before the event, (6, E).
        after: loads after it, (6, E).
        gives_lead: whether the broker sends the copy of a partition whose lead it gives, (E,).
    """

    actions: IntArray
    brokers: IntArray
    before: FloatArray
    after: FloatArray
    gives_lead: BoolArray


def action_deltas(model: ClusterModel, actions: Sequence[BalanceAction]) -> LoadDeltas:
    """Return what each action takes from its source and gives to its target."""
    partitions = np.array([a.partition for a in actions], dtype=np.int64)
    copies = np.array([a.kind is not ActionKind.ELECT for a in actions], dtype=np.bool_)
    leads = np.array([a.leads for a in actions], dtype=np.bool_)
    return load_deltas(model, partitions, copies, leads)


def load_events(loads: ClusterLoads, actions: Sequence[BalanceAction]) -> LoadEvents:
    """Return the loads of the brokers of each action before and after each change, from a state that is not changed."""
    sources = np.array([a.source for a in actions], dtype=np.int64)
    targets = np.array([a.target for a in actions], dtype=np.int64)
    leaders = np.array(copied_from(loads, actions), dtype=np.int64)
    count, deltas = len(actions), action_deltas(loads.model, actions)
    copies = np.array([action.copies > 0 for action in actions], dtype=np.bool_)
    sending, receiving = (
        np.flatnonzero(copies & (brokers != NO_BROKER) & np.isfinite(loads.model.capacities(resource))[brokers])
        for brokers, resource in ((leaders, Resource.NETWORK_OUT), (targets, Resource.NETWORK_IN))
    )
    numbers = np.concatenate([np.arange(count), sending, receiving])
    during = np.concatenate([leaders[sending], targets[receiving]])
    takers, givers = np.concatenate([targets, during]), np.concatenate([sources, during])
    sent, received = copy_rates(loads.model, [action.partition for action in actions])
    copied = np.zeros((3, len(during), deltas.hours.shape[2]))
    copied[Resource.NETWORK_OUT, : len(sending)] = sent[sending]
    copied[Resource.NETWORK_IN, len(sending) :] = received[receiving]
    hours = np.concatenate([deltas.hours, copied], axis=1)
    latest = np.concatenate([deltas.latest, np.zeros((3, len(during)))], axis=1)
    gives_lead = np.zeros(len(numbers), dtype=np.bool_)
    gives_lead[count : count + len(sending)] = (sources == leaders)[sending]
    rows = np.tile(np.arange(len(numbers)), 2)
    brokers = np.concatenate([takers, givers])
    sign = np.repeat([1.0, -1.0], len(numbers))
    order = np.lexsort((-sign, numbers[rows], brokers))
    rows, brokers, sign = rows[order], brokers[order], sign[order]
    first = np.flatnonzero(np.r_[True, brokers[1:] != brokers[:-1]]) if len(order) else np.zeros(0, dtype=np.int64)
    hours, latest = hours.take(rows, axis=1) * sign[:, None], latest.take(rows, axis=1) * sign
    after = changed_loads(loads, brokers, _sums(hours, first), _sums(latest, first))
    before = np.concatenate([np.zeros((RESOURCES, 1)), after[:, :-1]], axis=1) if len(order) else after
    before[:, first] = loads.loads[:, brokers[first]]
    return LoadEvents(numbers[rows], brokers, before, after, gives_lead[rows])


def copy_rates(model: ClusterModel, partitions: Sequence[int]) -> tuple[FloatArray, FloatArray]:
    """Return what leaders send and targets receive besides their loads until copies end, (N, H) each, bytes per second.

    It is the least throttle of each copy instead of the writes that count against it: a leader's load has those to the
    followers that are there, a target's those to the new replica.
    """
    own = np.array(partitions, dtype=np.int64)
    throttle, write = least_throttles(model, own)[:, None], model.write.take(own, axis=0)
    return throttle - write * model.followers[own][:, None], throttle - write


def copied_from(loads: ClusterLoads, actions: Sequence[BalanceAction]) -> list[int]:
    """Return the leader from which each action copies; -1 for an election, and for a partition without a leader."""
    led: dict[int, int] = {}
    leaders = []
    at_start = loads.leader[[action.partition for action in actions]].tolist() if actions else []
    for action, first in zip(actions, at_start, strict=True):
        leaders.append(led.get(action.partition, first) if action.copies else NO_BROKER)
        if action.leads:
            led[action.partition] = action.target
    return leaders


def _sums(values: FloatArray, first: IntArray) -> FloatArray:
    """Return running sums over the second axis that start again at each of the places ``first``."""
    total = np.cumsum(values, axis=1)
    if len(first) < 2:
        return total
    lengths = np.diff(np.r_[first, values.shape[1]])
    offsets = np.concatenate([np.zeros_like(total[:, :1]), total[:, first[1:] - 1]], axis=1)
    sums: FloatArray = total - np.repeat(offsets, lengths, axis=1)
    return sums


def breaks_limits(goals: GoalSet, events: LoadEvents) -> BoolArray:
    """Return which events take a broker beyond a limit, or further beyond one, (E,).

    A broker beyond its limit of network out may send copies of partitions whose lead it gives: only that relieves it.
    """
    sent = np.zeros_like(events.before)
    sent[Resource.NETWORK_OUT] = events.before[Resource.NETWORK_OUT]
    relieved = events.gives_lead & goals.beyond_limits(np.zeros_like(sent), sent, events.brokers)
    return goals.beyond_limits(events.before, events.after, events.brokers) & ~relieved

"""Simulated weeks with daily cycles: a plan every hour, carried out at once, by percentiles and by the last hour.

A week begins when the first plan by percentiles has been carried out. Both ways have to make that correction, so it
would hide what they copy because loads change.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from benchmarks.groups.balance.clusters import ClusterShape, SyntheticPartitions, balanced, displaced
from headroom.planning.balance.arrays import RateArray
from headroom.planning.balance.goals.goal import BalanceGoal
from headroom.planning.balance.model import ClusterModel
from headroom.planning.balance.scoring.goal_set import GoalSet
from headroom.planning.balance.scoring.loads import ClusterLoads
from headroom.planning.balance.search.proposal import propose

_HISTORY_HOURS, _HOURS = 24, 168
_SHAPE = ClusterShape(12, 600, hours=_HISTORY_HOURS + _HOURS + _HISTORY_HOURS, topic_partitions=10)
_HOT = 2


@dataclass(frozen=True)
class WeekResult:
    """What the plans of a week did.

    Attributes:
        bytes_copied: bytes.
        returns: replicas that returned to a broker that they had left in this week.
        hours_out_of_band: hours in which the load of the coming day is out of band at a broker.
    """

    bytes_copied: float
    returns: int
    hours_out_of_band: int


def week_cluster(seed: int, goals: list[BalanceGoal]) -> ClusterModel:
    """Return a cluster with hours for a day before, the week, and the day after it, which a plan of that day balanced.

    Before, 2 of 12 brokers carried too much. Topics have few partitions and their peaks at any time of the day, so that
    brokers differ from hour to hour.

    Args:
        seed: seed of all that is random.
        goals: goals of the plan.
    """
    made = balanced(replace(_SHAPE, seed=seed))
    draw = np.random.default_rng(seed)
    topics = np.arange(_SHAPE.partitions) // _SHAPE.topic_partitions
    peak = draw.uniform(0, 24, int(topics[-1]) + 1)[topics]
    hours = np.arange(_SHAPE.hours)[:, None]
    mean = made.arrays.write.mean(axis=0)
    cycle = 1 + 0.6 * np.cos(2 * np.pi * (hours - peak) / 24)
    write = (mean * cycle * draw.lognormal(0.0, 0.1, (_SHAPE.hours, _SHAPE.partitions))).astype(np.float32)
    fan_out = made.arrays.read.mean(axis=0) / mean
    arrays = replace(made.arrays, write=write, read=(write * fan_out).astype(np.float32))
    order = draw.permutation(_SHAPE.brokers)
    model = displaced(SyntheticPartitions(made.brokers, arrays), "week", order[_HOT:], order[:_HOT], 0.08, 5).model
    first = propose(_hours(model, 0, _HISTORY_HOURS), goals)
    after = first.state(len(first.actions))
    return replace(model, replicas=after.replicas, leader=after.leader)


def simulated_week(model: ClusterModel, goals: list[BalanceGoal], history_hours: int) -> WeekResult:
    """Return what hourly plans do in a week.

    Args:
        model: cluster with the hours of ``week_cluster``.
        goals: goals.
        history_hours: hours that a plan looks at: 24 for percentiles of the day, 1 for the last hour.
    """
    replicas, leader = model.replicas.copy(), model.leader.copy()
    left: set[tuple[int, int]] = set()
    copied, returns, hours_out = 0.0, 0, 0
    for now in range(_HISTORY_HOURS, _HISTORY_HOURS + _HOURS):
        seen = _hours(replace(model, replicas=replicas, leader=leader), now - history_hours, now)
        proposal = propose(seen, goals)
        for move in (action for action in proposal.actions if action.copies):
            returns += (move.partition, move.target) in left
            left.add((move.partition, move.source))
        copied += float(proposal.copied_bytes[-1])
        after = proposal.state(len(proposal.actions))
        replicas, leader = after.replicas, after.leader
        coming = _hours(replace(model, replicas=replicas, leader=leader), now, now + _HISTORY_HOURS)
        hours_out += _is_out_of_band(coming, goals)
    return WeekResult(copied, returns, hours_out)


def _hours(model: ClusterModel, first: int, end: int) -> ClusterModel:
    write, read, requests = (_part(rate, first, end) for rate in (model.write, model.read, model.requests))
    return replace(model, write=write, read=read, requests=requests)


def _part(rate: RateArray, first: int, end: int) -> RateArray:
    return np.ascontiguousarray(rate[:, first:end])


def _is_out_of_band(model: ClusterModel, goals: list[BalanceGoal]) -> bool:
    loads = ClusterLoads(model)
    usage = loads.usage(np.arange(len(model.brokers)))
    bands = GoalSet(goals, loads)
    pairs = zip(bands.goals, bands.bounds, strict=True)
    return any(not goal.hard and not goal.holds(bounds, usage).all() for goal, bounds in pairs)

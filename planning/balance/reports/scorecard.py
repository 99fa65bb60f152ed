"""Scores of all brokers in all goals, by the bands and limits of the cluster as it is."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from headroom.planning.balance.arrays import BoolArray, FloatArray
from headroom.planning.balance.goals.bands import LoadBounds
from headroom.planning.balance.goals.goal import BalanceGoal, BrokerUsage
from headroom.planning.balance.goals.resource_goals import CapacityLimit, ResourceBand, TopicBand
from headroom.planning.balance.model import ClusterModel, Resource
from headroom.planning.balance.scoring.goal_set import GoalSet, goal_holds, goal_score, with_topics
from headroom.planning.balance.scoring.loads import ClusterLoads

# Topics that are scored at a time, so that memory does not grow with topics x brokers.
_TOPICS_AT_ONCE = 1000


@dataclass(frozen=True)
class BrokenGoal:
    """A broker that does not meet a goal.

    Attributes:
        goal: name of the goal.
        broker: broker id.
        hard: whether it is a limit.
        load: its load of the goal's resource; None if the goal is on no resource.
        edge: edge of the band, or limit, that it is beyond; None if the goal is on no resource.
    """

    goal: str
    broker: int
    hard: bool
    load: float | None = None
    edge: float | None = None


@dataclass(frozen=True, eq=False)
class Scorecard:
    """Scores of brokers. B brokers, G goals.

    Attributes:
        model: the cluster.
        goals: goals in their order.
        bounds: what each goal compares with.
        loads: load by resource and broker, (6, B).
        scores: score by goal and broker, 0 to 1, (G, B); NaN for brokers that do not count. Goals on topics have the
            mean over all topics.
        met: whether the broker is in its band or within its limit, (G, B). Goals on topics: for every topic.
    """

    model: ClusterModel
    goals: tuple[BalanceGoal, ...]
    bounds: tuple[object, ...]
    loads: FloatArray
    scores: FloatArray
    met: BoolArray

    def load(self, resource: Resource, broker: int) -> float | None:
        """Return the load of a broker, by index; None if it does not count, and a part of its load is unknown."""
        model = self.model
        is_unknown = not model.is_counted[broker] and model.has_unknown_part[resource, broker]
        return None if is_unknown else float(self.loads[resource, broker])

    def band(self, resource: Resource) -> LoadBounds | None:
        """Return the bands of a resource; None if no goal is on it."""
        return self._bounds_of(ResourceBand, resource)

    def limit(self, resource: Resource) -> FloatArray | None:
        """Return the limits of a resource, (B,), infinity where there is none; None if no goal limits it."""
        bounds = self._bounds_of(CapacityLimit, resource)
        return None if bounds is None else bounds.upper

    def _bounds_of(self, kind: type[ResourceBand | CapacityLimit], resource: Resource) -> LoadBounds | None:
        for goal, bounds in zip(self.goals, self.bounds, strict=True):
            if isinstance(goal, kind) and goal.resource is resource and isinstance(bounds, LoadBounds):
                return bounds
        return None

    def is_balanced(self) -> BoolArray:
        """Return which brokers are in all bands and limits, or do not count, (B,). Goals on topics are left out."""
        rows = [n for n, goal in enumerate(self.goals) if not isinstance(goal, TopicBand)]
        return np.asarray(self.met[rows].all(axis=0))

    def broken(self) -> Iterator[BrokenGoal]:
        """Yield the goals that brokers do not meet, by goal and broker."""
        for number, goal in enumerate(self.goals):
            for broker in np.flatnonzero(~self.met[number]).tolist():
                own = self.model.brokers[broker].broker
                bounds = self.bounds[number]
                if isinstance(goal, (ResourceBand, CapacityLimit)) and isinstance(bounds, LoadBounds):
                    load = float(self.loads[goal.resource, broker])
                    edge = bounds.reachable_upper if load > bounds.reachable_upper[broker] else bounds.reachable_lower
                    yield BrokenGoal(goal.name, own, goal.hard, load, float(edge[broker]))
                else:
                    yield BrokenGoal(goal.name, own, goal.hard)


def scorecard(goals: GoalSet, loads: ClusterLoads) -> Scorecard:
    """Return the scores of all brokers in a state, by the bands of ``goals``.

    Raises:
        HeadroomError: a goal fails.
    """
    every = np.arange(len(loads.model.brokers))
    usage = loads.usage(every)
    scores, met = [], []
    for goal, bounds in zip(goals.goals, goals.bounds, strict=True):
        if isinstance(goal, TopicBand):
            own, own_met = _topic_scores(goal, bounds, usage, loads)
        else:
            own, own_met = goal_score(goal, bounds, usage), goal_holds(goal, bounds, usage)
        scores.append(np.where(loads.model.is_counted, own, np.nan))
        met.append(own_met | ~loads.model.is_counted)
    return Scorecard(loads.model, goals.goals, tuple(goals.bounds), loads.loads.copy(), np.array(scores), np.array(met))


def scorecard_of(model: ClusterModel, goals: Sequence[BalanceGoal]) -> Scorecard:
    """Return the scores of all brokers of a cluster as it is.

    Raises:
        HeadroomError: a goal fails.
    """
    loads = ClusterLoads(model)
    return scorecard(GoalSet(goals, loads), loads)


def _topic_scores(
    goal: TopicBand, bounds: object, usage: BrokerUsage, loads: ClusterLoads
) -> tuple[FloatArray, BoolArray]:
    """Return the mean score over all topics, and whether every topic is in its band, (B,) each."""
    brokers, topics = len(usage.brokers), len(loads.model.topics)
    total, met = np.zeros(brokers), np.ones(brokers, dtype=np.bool_)
    for first in range(0, topics, _TOPICS_AT_ONCE):
        own = np.arange(first, min(first + _TOPICS_AT_ONCE, topics))
        every = loads.usage(np.tile(usage.brokers, len(own)))
        pairs = with_topics(every, loads, np.repeat(own, brokers))
        total += goal_score(goal, bounds, pairs).reshape(len(own), brokers).sum(axis=0)
        met &= goal_holds(goal, bounds, pairs).reshape(len(own), brokers).all(axis=0)
    return total / max(1, topics), met

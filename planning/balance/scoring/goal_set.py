"""All goals of a plan together: scores of actions, refusals, and load outside of bands."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from headroom.planning.balance.arrays import AnyArray, BoolArray, FloatArray, IntArray
from headroom.planning.balance.goals.bands import LoadBounds, score
from headroom.planning.balance.goals.goal import BalanceGoal, BrokerUsage
from headroom.planning.balance.goals.resource_goals import CapacityLimit, RackSpread, ResourceBand, TopicBand
from headroom.planning.balance.model import OF_LEADERS, TIMED
from headroom.planning.balance.scoring.loads import ClusterLoads
from headroom.schemas.errors import HeadroomError

# A broker that starts outside its band is brought at least this share of the mean towards it, and a smaller change of a
# broker is dropped: it is not worth an action.
TRIFLE_RATIO = 0.05
# Percentiles of sums do not add up, so the mean of rates shifts a little with every move. The search keeps this share
# of the mean away from the edges, so that brokers are still in their bands when the means are computed again.
_MARGIN_RATIO = 0.005
# Weight of load beyond a limit, or on a broker that is to carry none, compared with load outside a band.
_LIMIT_WEIGHT = 10.0


@dataclass(frozen=True, eq=False)
class ActionScores:
    """Scores of N actions.

    Attributes:
        changes: fall or rise of the worst score per goal, (G, N): after minus before; a score is (change + 1) / 2.
        refused_by: index of the hard goal that refuses, (N,); -1 if none does.
        groups: weighted means of ``changes`` per group, (groups, N).
    """

    changes: FloatArray
    refused_by: IntArray
    groups: FloatArray

    def is_accepted(self, group: int, settled: BoolArray) -> BoolArray:
        """Return which actions are taken for a group, (N,).

        An action must score above 0.5 in the group, and not below 0.5 in a settled one.

        Args:
            group: index of the group that is being settled.
            settled: which groups are settled, (groups,).
        """
        accepted: BoolArray = (self.refused_by < 0) & (self.groups[group] > 0) & (self.groups[settled] >= 0).all(axis=0)
        return accepted


class GoalSet:
    """Goals with their bounds, which are asked for once.

    Args:
        goals: goals in the order of their groups.
        loads: the cluster as it is.

    Attributes:
        goals: the goals.
        groups: names of the groups in their order.
        resource_goals: goals on a resource; the rows of the arrays below.
        resources: resource of each, (K,).
        lower: lower edges that the search aims at, (K, B).
        upper: upper edges that the search aims at, (K, B).
        norm: weight divided by the mean, (K, B); 0 where there is no mean.
        group_of: index of the group of each resource goal, (K,).

    Raises:
        HeadroomError: a goal fails.
    """

    def __init__(self, goals: Sequence[BalanceGoal], loads: ClusterLoads) -> None:
        self.goals = tuple(goals)
        self.groups = tuple(dict.fromkeys(goal.group for goal in goals))
        every = np.arange(len(loads.model.brokers))
        usage = loads.usage(every)
        self.bounds = [_answer(goal, lambda goal=goal: goal.bounds(loads.model, usage)) for goal in goals]
        self._group_weights = np.zeros((len(self.groups), len(goals)))
        for number, goal in enumerate(goals):
            self._group_weights[self.groups.index(goal.group), number] = goal.weight
        self._group_weights /= self._group_weights.sum(axis=1, keepdims=True)
        self._rows = [n for n, goal in enumerate(goals) if isinstance(goal, (ResourceBand, CapacityLimit))]
        self._others = [n for n, goal in enumerate(goals) if n not in self._rows and not isinstance(goal, RackSpread)]
        self.resource_goals = [goal for goal in goals if isinstance(goal, (ResourceBand, CapacityLimit))]
        self.topic_goals = [(goal, n) for n, goal in enumerate(goals) if isinstance(goal, TopicBand)]
        self.hard = np.array([goal.hard for goal in goals], dtype=np.bool_)
        self._stack([self.bounds[n] for n in self._rows], loads)

    def _stack(self, bounds: Sequence[LoadBounds], loads: ClusterLoads) -> None:
        """Put the bounds of all resource goals into arrays with a row per goal."""
        brokers = len(loads.model.brokers)
        kinds = self.resource_goals

        def rows(values: list[FloatArray]) -> FloatArray:
            return np.array(values, dtype=np.float64).reshape(len(kinds), brokers)

        self.resources = np.array([goal.resource for goal in kinds], dtype=np.int64)
        self.of_leaders = np.array([goal.resource in OF_LEADERS for goal in kinds], dtype=np.bool_)
        self.group_of = np.array([self.groups.index(goal.group) for goal in kinds], dtype=np.int64)
        self.mean = rows([b.mean for b in bounds])
        self.length = rows([b.length for b in bounds])
        self.detect_below = np.array([b.detect_below for b in bounds], dtype=np.float64)
        self._detecting = np.flatnonzero(self.detect_below)
        self.lower = rows([b.reachable_lower for b in bounds])
        self.upper = rows([b.reachable_upper for b in bounds])
        start, trifle = loads.loads[self.resources], TRIFLE_RATIO * self.mean
        soft = ~np.array([goal.hard for goal in kinds], dtype=np.bool_)[:, None]
        high, low = soft & (start > self.upper), soft & (start < self.lower)
        timed = np.isin(self.resources, TIMED)[:, None]
        # A band without a width is that of a broker that sheds all of its load, or of one whose mean is 0.
        margin = np.where(soft & timed & (self.upper > self.lower), _MARGIN_RATIO * self.mean, 0.0)
        upper, lower = self.upper - margin, self.lower + margin
        # Where a band is narrower than that, no broker is brought beyond its mean.
        far = np.maximum(start - trifle, self.mean), np.minimum(start + trifle, self.mean)
        self.upper = np.where(high, np.minimum(upper, far[0]), np.where(start > upper, self.upper, upper))
        self.lower = np.where(low, np.maximum(lower, far[1]), np.where(start < lower, self.lower, lower))
        # What does not count in the means is outside of no band, and is not to be put right.
        self.lower[:, ~loads.model.counted] = -np.inf
        self.upper[np.broadcast_to(soft & ~loads.model.counted, self.upper.shape)] = np.inf
        pressing = np.array([goal.hard | loads.model.sheds(goal.resource) for goal in kinds]).reshape(self.mean.shape)
        weights = np.array([goal.weight for goal in kinds])[:, None] * np.where(pressing, _LIMIT_WEIGHT, 1.0)
        with np.errstate(divide="ignore", invalid="ignore"):
            self.norm = np.where(self.mean > 0, weights / self.mean, 0.0)

    def outside(self, loads: FloatArray, brokers: AnyArray) -> FloatArray:
        """Return the load outside of bands and beyond limits, in shares of the mean by weight, (K, N).

        Args:
            loads: load by resource, (6, N).
            brokers: index of each broker, (N,); or one broker for all loads, (1,).
        """
        own, upper, lower = loads[self.resources], self.upper[:, brokers], self.lower[:, brokers]
        outside: FloatArray = np.maximum(own - upper, lower - own)
        np.maximum(outside, 0.0, out=outside)
        for row in self._detecting:
            mean = self.mean[row, brokers]
            outside[row, (own[row] < self.detect_below[row]) & (mean < self.detect_below[row])] = 0.0
        outside *= self.norm[:, brokers]
        return outside

    def goal_scores(self, usage: BrokerUsage) -> FloatArray:
        """Return the scores of brokers as the search sees them, (G, N).

        Raises:
            HeadroomError: a goal fails, or returns a score that is not between 0 and 1.
        """
        scores = np.ones((len(self.goals), len(usage.brokers)))
        if self._rows:
            own = usage.brokers
            edges = self.lower[:, own], self.upper[:, own], self.mean[:, own], self.length[:, own]
            scores[self._rows] = score(usage.loads[self.resources], *edges, self.detect_below[:, None])
        for number in self._others:
            scores[number] = goal_score(self.goals[number], self.bounds[number], usage)
        return scores

    def holds(self, usage: BrokerUsage) -> BoolArray:
        """Return whether brokers meet each goal, (G, N); soft goals on resources count as met here.

        Raises:
            HeadroomError: a goal fails.
        """
        held: BoolArray = np.ones((len(self.goals), len(usage.brokers)), dtype=np.bool_)
        if self._rows:
            held[self._rows] = usage.loads[self.resources] <= self.upper[:, usage.brokers]
        for number in self._others:
            if self.goals[number].hard:
                held[number] = goal_holds(self.goals[number], self.bounds[number], usage)
        return held

    def keeps_limits(self, before: BrokerUsage, after: BrokerUsage) -> BoolArray:
        """Return whether no broker gets beyond a limit, or further beyond one, (N,); other goals are not asked."""
        limits = [number for number, goal in enumerate(self.resource_goals) if goal.hard]
        upper, own = self.upper[limits], self.resources[limits]
        within = after.loads[own] <= upper[:, after.brokers]
        no_worse = after.loads[own] <= before.loads[own]
        return np.asarray((within | no_worse).all(axis=0))

    def action_scores(
        self, before: tuple[BrokerUsage, BrokerUsage], after: tuple[BrokerUsage, BrokerUsage]
    ) -> ActionScores:
        """Return the scores of N actions between two brokers each.

        A hard goal refuses an action that takes a broker from holding to not holding, or that scores below 0.5 where
        one of its brokers continues not to hold.

        Args:
            before: usage of the brokers that give, and of those that take, before each action, (N,) each.
            after: the same after each action.

        Raises:
            HeadroomError: a goal fails.
        """
        worst_before = np.minimum(*(self.goal_scores(usage) for usage in before))
        worst_after = np.minimum(*(self.goal_scores(usage) for usage in after))
        changes = worst_after - worst_before
        hard = np.flatnonzero(self.hard)
        refused_by = np.full(changes.shape[1], -1)
        if len(hard):
            held = [self.holds(usage)[hard] for usage in before]
            hold = [self.holds(usage)[hard] for usage in after]
            broken = (held[0] & ~hold[0]) | (held[1] & ~hold[1])
            still = (~held[0] & ~hold[0]) | (~held[1] & ~hold[1])
            refused = broken | (still & (changes[hard] < 0))
            refused_by = np.where(refused.any(axis=0), hard[np.argmax(refused, axis=0)], -1)
        return ActionScores(changes, refused_by, self._group_weights @ changes)


def goal_score(goal: BalanceGoal, bounds: Any, usage: BrokerUsage) -> FloatArray:
    """Return the scores of a goal.

    Raises:
        HeadroomError: the goal fails, or returns a score that is not between 0 and 1.
    """
    scores = np.asarray(_answer(goal, lambda: goal.score(bounds, usage)), dtype=np.float64)
    if scores.shape != usage.brokers.shape:
        raise _wrong(goal, f"returns scores of shape {scores.shape} for {len(usage.brokers)} brokers")
    wrong = ~((scores >= 0) & (scores <= 1))
    if wrong.any():
        raise _wrong(goal, f"returns the score {scores[wrong][0]}, and scores are between 0 and 1")
    return scores


def goal_holds(goal: BalanceGoal, bounds: Any, usage: BrokerUsage) -> BoolArray:
    """Return whether brokers meet a goal.

    Raises:
        HeadroomError: the goal fails, or returns something else than one truth value per broker.
    """
    held = np.asarray(_answer(goal, lambda: goal.holds(bounds, usage)))
    if held.shape != usage.brokers.shape or held.dtype != np.bool_:
        raise _wrong(goal, f"holds() returns {held.dtype} of shape {held.shape}, not one truth value per broker")
    return held


def with_topics(usage: BrokerUsage, loads: ClusterLoads, topics: IntArray) -> BrokerUsage:
    """Return a usage with the counts of a topic for each broker, (N,)."""
    return replace(
        usage,
        topics=topics,
        topic_replicas=loads.topic_replicas[topics, usage.brokers].astype(np.float64),
        topic_leaders=loads.topic_leaders[topics, usage.brokers].astype(np.float64),
    )


def _answer(goal: BalanceGoal, question: Any) -> Any:
    """Return the answer of a goal; a goal is code of others, so any error is reported under its name."""
    try:
        return question()
    except HeadroomError:
        raise
    except Exception as error:
        raise _wrong(goal, f"failed with {type(error).__name__}: {error}") from error


def _wrong(goal: BalanceGoal, rule: str) -> HeadroomError:
    return HeadroomError(f"goal {goal.name}", rule, "Correct the goal, or leave it out of balance.goals.")

"""All goals of a plan together: load outside of bands, limits, and the answers of goals of others."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from headroom.planning.balance.arrays import AnyArray, BoolArray, FloatArray, IndexArray, IntArray
from headroom.planning.balance.goals.bands import LoadBounds
from headroom.planning.balance.goals.goal import BalanceGoal, BrokerUsage
from headroom.planning.balance.goals.resource_goals import CapacityLimit, RackSpread, ResourceBand, TopicBand
from headroom.planning.balance.model import TIMED
from headroom.planning.balance.scoring.loads import ClusterLoads
from headroom.schemas.errors import HeadroomError

# A broker that starts outside its band is brought at least this share of the mean towards it: less is not worth an
# action, and would not last.
TRIFLE_RATIO = 0.05
# Percentiles of rates that vary do not add up, so the mean shifts a little with every move. The search brings no broker
# nearer to such an edge than this share of the mean, so that it is still in its band when means are computed again.
_MARGIN_RATIO = 0.005
# Weight of load beyond a limit, or on a broker that is to carry none, compared with load outside a band.
_LIMIT_WEIGHT = 10.0
# Sums in another order differ in their last digits.
_ROUNDING = 1e-12


class GoalSet:
    """Goals with their bounds, which are asked for once, by the loads of the cluster as it is.

    Attributes:
        goals: the goals.
        resource_goals: goals on a resource; the rows of the arrays below.
        resources: resource of each, (K,).
        lower: lower edges that the search aims at, (K, B).
        upper: upper edges that the search aims at, (K, B).
        norm: weight divided by the mean, (K, B); 0 where there is no mean.
        outside_at_start: load of each broker outside of the bands themselves and beyond limits before the search, in
            shares of the means, (B,).

    Raises:
        HeadroomError: a goal fails.
    """

    def __init__(self, goals: Sequence[BalanceGoal], loads: ClusterLoads) -> None:
        self.goals = tuple(goals)
        every = np.arange(len(loads.model.brokers))
        usage = loads.usage(every)
        self.bounds = [_answer(goal, lambda goal=goal: goal.bounds(loads.model, usage)) for goal in goals]
        built_in = (ResourceBand, CapacityLimit, RackSpread, TopicBand)
        pairs = list(zip(goals, self.bounds, strict=True))
        self._topics = [(goal, mean) for goal, mean in pairs if isinstance(goal, TopicBand)]
        self._own = [pair for pair in pairs if not isinstance(pair[0], built_in)]
        self.resource_goals = [goal for goal in goals if isinstance(goal, (ResourceBand, CapacityLimit))]
        self._stack([bounds for goal, bounds in pairs if goal in self.resource_goals], loads)

    def _stack(self, bounds: Sequence[LoadBounds], loads: ClusterLoads) -> None:
        """Put the bounds of all resource goals into arrays with a row per goal."""
        brokers = len(loads.model.brokers)
        kinds = self.resource_goals

        def rows(values: list[FloatArray]) -> FloatArray:
            return np.array(values, dtype=np.float64).reshape(len(kinds), brokers)

        self.resources = np.array([goal.resource for goal in kinds], dtype=np.int64)
        self.mean = rows([b.mean for b in bounds])
        self.detect_below = np.array([b.detect_below for b in bounds], dtype=np.float64)
        self._detecting = np.flatnonzero(self.detect_below)
        self.lower = rows([b.reachable_lower for b in bounds])
        self.upper = rows([b.reachable_upper for b in bounds])
        bands = self.lower, self.upper
        start, trifle = loads.loads[self.resources], TRIFLE_RATIO * self.mean
        soft = ~np.array([goal.hard for goal in kinds], dtype=np.bool_)[:, None]
        high, low = soft & (start > self.upper * (1 + _ROUNDING)), soft & (start < self.lower * (1 - _ROUNDING))
        varies = np.ptp(loads.hours, axis=2).any(axis=1)
        shifts = np.array([goal.resource in TIMED and varies[goal.resource] for goal in kinds], dtype=np.bool_)[:, None]
        # A band without a width is that of a broker that sheds all of its load, or of one whose mean is 0.
        margin = np.where(soft & shifts & (self.upper > self.lower), _MARGIN_RATIO * self.mean, 0.0)
        upper, lower = self.upper - margin, self.lower + margin
        # Where a band is narrower than that, no broker is brought beyond its mean.
        far = np.maximum(start - trifle, self.mean), np.minimum(start + trifle, self.mean)
        # A broker that starts in its band may stay where it is.
        self.upper = np.where(high, np.minimum(upper, far[0]), np.clip(start, upper, self.upper))
        self.lower = np.where(low, np.maximum(lower, far[1]), np.clip(start, self.lower, lower))
        # What does not count in the means is outside of no band, and is not to be put right.
        self.lower[:, ~loads.model.is_counted] = -np.inf
        self.upper[np.broadcast_to(soft & ~loads.model.is_counted, self.upper.shape)] = np.inf
        pressing = np.array([goal.hard | loads.model.sheds(goal.resource) for goal in kinds]).reshape(self.mean.shape)
        weights = np.array([goal.weight for goal in kinds])[:, None] * np.where(pressing, _LIMIT_WEIGHT, 1.0)
        with np.errstate(divide="ignore", invalid="ignore"):
            self.norm = np.where(self.mean > 0, weights / self.mean, 0.0)
        beyond = np.maximum(np.maximum(start - bands[1], bands[0] - start), 0.0)
        quiet = (np.maximum(start, self.mean) < self.detect_below[:, None]) | (soft & ~loads.model.is_counted)
        self.outside_at_start: FloatArray = (np.where(quiet, 0.0, beyond) * self.norm).sum(axis=0)
        bounded = np.isfinite(self.upper).any(axis=1)
        limits = np.flatnonzero(~soft[:, 0] & bounded)
        bounded |= np.isfinite(self.lower).any(axis=1)
        banded = np.flatnonzero(soft[:, 0] & bounded & (self.norm > 0).any(axis=1))
        self._band_resources, self._limit_resources = self.resources[banded], self.resources[limits]
        self._bands = np.stack([self.upper[banded], self.lower[banded], self.norm[banded]])
        self._limits = np.stack([self.upper[limits], self.norm[limits]])
        self._mean, least = self.mean[banded], self.detect_below[banded]
        self._quiet_below = [(n, least[n]) for n in np.flatnonzero((self._mean < least[:, None]).any(axis=1)).tolist()]

    @property
    def start_outside(self) -> float:
        """Return the sum of ``outside_at_start``."""
        return float(self.outside_at_start.sum())

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

    def total_outside(self, loads: FloatArray, brokers: AnyArray, highest: FloatArray | None = None) -> FloatArray:
        """Return the sum of ``outside`` over the goals, (N,); with ``highest`` the least between it and ``loads``."""
        own = loads.take(self._band_resources, axis=0)
        upper, lower, norm = self._bands.take(brokers, axis=2)
        highest_own = own if highest is None else highest.take(self._band_resources, axis=0)
        outside = own - upper
        np.maximum(outside, lower - highest_own, out=outside)
        np.maximum(outside, 0.0, out=outside)
        for row, least in self._quiet_below:
            outside[row, (own[row] < least) & (self._mean[row, brokers] < least)] = 0.0
        outside *= norm
        upper, norm = self._limits.take(brokers, axis=2)
        beyond = loads.take(self._limit_resources, axis=0) - upper
        # Hardly any load is beyond a limit.
        if not (beyond <= 0.0).all():
            outside = np.concatenate([np.maximum(beyond, 0.0) * norm, outside])
        total: FloatArray = outside.sum(axis=0)
        return total

    def misses(self, loads: FloatArray, broker: int) -> tuple[FloatArray, FloatArray]:
        """Return by how much a broker is above and below its bands, in shares of the means by weight, (6,) each.

        Args:
            loads: load by resource and broker, (6, B).
            broker: index of the broker.
        """
        outside = self.outside(loads[:, [broker]], np.array([broker]))[:, 0]
        above = loads[self.resources, broker] > self.upper[:, broker]
        high, low = (
            np.asarray(np.bincount(self.resources, np.where(own, outside, 0.0), len(loads)), dtype=np.float64)
            for own in (above, ~above)
        )
        return high, low

    def limit(self, resource: int) -> FloatArray:
        """Return the lowest limit of a resource for each broker, (B,); infinite without one."""
        limit: FloatArray = self._limits[0, self._limit_resources == resource].min(axis=0, initial=np.inf)
        return limit

    def beyond_limits(self, before: FloatArray, after: FloatArray, brokers: AnyArray) -> BoolArray:
        """Return whether brokers get beyond a limit, or further beyond one, (N,).

        Args:
            before: load by resource, (6, N).
            after: the same after a change.
            brokers: index of each broker, (N,); or one broker for all loads, (1,).
        """
        own = after.take(self._limit_resources, axis=0)
        beyond = own > self._limits[0].take(brokers, axis=1)
        if beyond.any():
            beyond &= own > before.take(self._limit_resources, axis=0) * (1 + _ROUNDING)
        refused: BoolArray = beyond.any(axis=0)
        return refused

    def topic_outside(self, topics: IndexArray, replicas: AnyArray, leaders: AnyArray) -> FloatArray:
        """Return by how much counts of topics are outside of their bands, in shares of the mean by weight, (N,).

        All topics together weigh as one resource.

        Args:
            topics: topic of each count, (N,).
            replicas: replicas of the topic on a broker, (N,).
            leaders: partitions of the topic that the broker leads, (N,).
        """
        total = np.zeros(len(topics))
        for goal, means in self._topics:
            mean, count = means[topics], leaders if goal.of_leaders else replicas
            high, low = np.maximum(mean * 1.1, np.ceil(mean)), np.minimum(mean * 0.9, np.floor(mean))
            outside = np.maximum(np.maximum(count - high, low - count), 0.0)
            total += goal.weight / len(means) * outside / np.maximum(mean, 1e-9)
        return total

    @property
    def has_own_goals(self) -> bool:
        """Whether there are goals that are not built in."""
        return bool(self._own)

    def own_gains(self, before: BrokerUsage, after: BrokerUsage) -> FloatArray:
        """Return the rise of the scores of goals that are not built in, by weight, (N,).

        It is -inf where a broker no longer holds a hard goal, or holds one still less.

        Raises:
            HeadroomError: a goal fails, or returns a score that is not between 0 and 1.
        """
        total = np.zeros(len(before.brokers))
        for goal, bounds in self._own:
            change = goal_score(goal, bounds, after) - goal_score(goal, bounds, before)
            if not goal.hard:
                total += goal.weight * change
                continue
            held, holds = (goal_holds(goal, bounds, usage) for usage in (before, after))
            total[~holds & (held | (change < 0))] = -np.inf
        return total


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

"""Goals on the resources of a broker: bands around the mean, and limits by capacity."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from headroom.planning.balance.arrays import BoolArray, FloatArray, IntArray
from headroom.planning.balance.goals.bands import LEAST_LENGTH, MIB, LoadBounds, band_bounds, limit_bounds
from headroom.planning.balance.goals.goal import BrokerUsage
from headroom.planning.balance.model import NO_BROKER, ClusterModel, Resource

_ROUNDING = 1e-9


@dataclass(frozen=True)
class _ResourceGoal:
    """Goal on the load of a resource, with bounds for every broker."""

    name: str
    resource: Resource

    def holds(self, bounds: LoadBounds, usage: BrokerUsage) -> BoolArray:
        """Return whether loads are within their bounds, edges included, or as near as whole numbers allow."""
        return bounds.of(usage.brokers).is_reached(usage.load(self.resource))

    def score(self, bounds: LoadBounds, usage: BrokerUsage) -> FloatArray:
        """Return the scores of the loads."""
        return bounds.of(usage.brokers).score(usage.load(self.resource))


@dataclass(frozen=True)
class ResourceBand(_ResourceGoal):
    """Soft goal: every broker's load of a resource is within 10 % of the mean.

    Attributes:
        name, group, weight, hard: those of ``BalanceGoal``.
        resource: resource.
        detect_below: rates below which all is well, bytes per second.
    """

    group: str
    weight: float = 1.0
    detect_below: float = float(MIB)
    hard: bool = False

    def bounds(self, model: ClusterModel, usage: BrokerUsage) -> LoadBounds:
        """Return the band of every broker."""
        return band_bounds(model, self.resource, usage.load(self.resource), self.detect_below)


@dataclass(frozen=True)
class CapacityLimit(_ResourceGoal):
    """Hard goal: no broker's load of a resource exceeds a share of its capacity.

    Disk counts at its peak: the old and the new copy of a replica both exist until its move ends.

    Attributes:
        name, group, weight, hard: those of ``BalanceGoal``.
        resource: resource.
    """

    group: str = "capacity"
    weight: float = 1.0
    hard: bool = True

    def bounds(self, model: ClusterModel, usage: BrokerUsage) -> LoadBounds:
        """Return the limit of every broker."""
        return limit_bounds(model, self.resource)


@dataclass(frozen=True)
class RackSpread:
    """Hard goal: replicas of a partition are on different racks, or as even over racks as their number allows.

    Attributes:
        name, group, weight, hard: those of ``BalanceGoal``.
    """

    name: str = "racks"
    group: str = "racks"
    weight: float = 1.0
    hard: bool = True

    def bounds(self, model: ClusterModel, usage: BrokerUsage) -> None:
        """Return nothing: the number of replicas that are too many is part of the usage."""

    def holds(self, bounds: None, usage: BrokerUsage) -> BoolArray:
        """Return whether no replica of the broker shares its rack needlessly."""
        is_spread: BoolArray = usage.crowded == 0
        return is_spread

    def score(self, bounds: None, usage: BrokerUsage) -> FloatArray:
        """Return 1 without such replicas, and less the more there are."""
        scores: FloatArray = 1.0 / (1.0 + usage.crowded)
        return scores


@dataclass(frozen=True)
class TopicBand:
    """Soft goal: leaders or replicas of each topic are spread evenly over the brokers.

    Attributes:
        name, group, weight, hard: those of ``BalanceGoal``.
        of_leaders: whether leaders count, or replicas.
    """

    name: str
    of_leaders: bool
    group: str = "topics"
    weight: float = 1.0
    hard: bool = False

    def bounds(self, model: ClusterModel, usage: BrokerUsage) -> FloatArray:
        """Return the mean of each topic over the brokers that count, of what they have, (T,)."""
        counted = model.is_counted
        weights: BoolArray | IntArray = counted[model.leader] & (model.leader != NO_BROKER)
        if not self.of_leaders:
            weights = np.count_nonzero(counted[model.replicas] & (model.replicas != NO_BROKER), axis=1)
        totals = np.bincount(model.topic, weights=weights, minlength=len(model.topics))
        means: FloatArray = totals / max(1, int(counted.sum()))
        return means

    def holds(self, bounds: FloatArray, usage: BrokerUsage) -> BoolArray:
        """Return whether the count is in the band of its topic, or one of the whole numbers next to the mean."""
        return (usage.topics < 0) | _count_bounds(bounds[usage.topics]).is_reached(self._count(usage))

    def score(self, bounds: FloatArray, usage: BrokerUsage) -> FloatArray:
        """Return the scores of the counts; 1 without a topic."""
        scores = _count_bounds(bounds[usage.topics]).score(self._count(usage))
        return np.where(usage.topics < 0, 1.0, scores)

    def _count(self, usage: BrokerUsage) -> FloatArray:
        return usage.topic_leaders if self.of_leaders else usage.topic_replicas


def _count_bounds(mean: FloatArray) -> LoadBounds:
    """Return the bands of counts around their means."""
    # Counts are further from an edge than this, or on it: rounding then excludes no count on an edge.
    lower, upper = mean * 0.9 - _ROUNDING, mean * 1.1 + _ROUNDING
    low, high = np.minimum(lower, np.floor(mean)), np.maximum(upper, np.ceil(mean))
    return LoadBounds(lower, upper, mean, np.maximum(mean, LEAST_LENGTH), low, high)

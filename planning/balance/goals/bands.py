"""Bands around the mean load, and the score of a load by its distance from the band."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from headroom.planning.balance.arrays import BoolArray, FloatArray, IntArray
from headroom.planning.balance.model import COUNTS, RATES, ClusterModel, Resource

BAND_RATIO = Fraction(1, 10)
# Share of its capacity that a broker may use.
LIMIT_RATIO = 0.8
MIB = 1024**2
# Fall of the score from 1 to its lower end of the straight part, and the length of that part for rates.
FALL, LOWEST_STRAIGHT = 0.9, 0.1
RATE_LENGTH = 100.0 * MIB
LEAST_LENGTH = 10.0


@dataclass(frozen=True, eq=False)
class LoadBounds:
    """Band of each broker for one resource. Loads that are compared with it have shapes that broadcast to (B,).

    Attributes:
        lower: lower edge, included, (B,); minus infinity without one.
        upper: upper edge, included, (B,); infinity without one.
        mean: load that the broker would have if all carried their share, (B,).
        length: distance beyond the edge over which the score falls from 1 to 0.1, (B,).
        reachable_lower: lower edge that a plan can be held to, (B,): a count between two whole numbers is no fault.
        reachable_upper: upper edge that a plan can be held to, (B,).
        detect_below: if a load and its mean are both below this, the score is 1.
    """

    lower: FloatArray
    upper: FloatArray
    mean: FloatArray
    length: FloatArray
    reachable_lower: FloatArray
    reachable_upper: FloatArray
    detect_below: float = 0.0

    def of(self, brokers: IntArray) -> LoadBounds:
        """Return the bands of some brokers."""
        return LoadBounds(
            self.lower[brokers],
            self.upper[brokers],
            self.mean[brokers],
            self.length[brokers],
            self.reachable_lower[brokers],
            self.reachable_upper[brokers],
            self.detect_below,
        )

    def is_quiet(self, load: FloatArray) -> BoolArray:
        """Return whether loads and their means are too small to be detected."""
        return (load < self.detect_below) & (self.mean < self.detect_below)

    def holds(self, load: FloatArray) -> BoolArray:
        """Return whether loads are in their bands, edges included."""
        return self.is_quiet(load) | ((load >= self.lower) & (load <= self.upper))

    def is_reached(self, load: FloatArray) -> BoolArray:
        """Return whether loads are in their bands, or as near as whole numbers allow."""
        return self.is_quiet(load) | ((load >= self.reachable_lower) & (load <= self.reachable_upper))

    def score(self, load: FloatArray) -> FloatArray:
        """Return the scores of loads, 0 to 1.

        At distance u from the mean a load scores 1 up to the edge d of the band, then falls in a straight line to 0.1
        at S = d + length; beyond that it is 0.1 ln S / ln u.
        """
        beyond = np.maximum(np.maximum(load - self.upper, self.lower - load), 0.0)
        straight = 1.0 - FALL * np.minimum(beyond / self.length, 1.0)
        if (beyond > self.length).any():
            # Half of the band: the distance of the edge that the load is beyond. A limit has no mean: its edge is at 0.
            edge = np.where(load > self.upper, self.upper - self.mean, self.mean - self.lower)
            edge = np.where(np.isfinite(edge), np.maximum(edge, 0.0), 0.0)
            far = edge + self.length
            with np.errstate(divide="ignore", invalid="ignore"):
                tail = LOWEST_STRAIGHT * np.log(far) / np.log(np.maximum(edge + beyond, far))
            straight = np.where(beyond > self.length, tail, straight)
        scores: FloatArray = np.where(self.is_quiet(load), 1.0, straight)
        return scores


def band_bounds(model: ClusterModel, resource: Resource, loads: FloatArray, detect_below: float) -> LoadBounds:
    """Return the bands of a resource: mean ± 10 %, edges included.

    Brokers that are not alive or whose metrics are unknown do not count. If the capacities of all others are known and
    differ, each has its share of the mean. A broker that sheds the resource has the band from 0 to 0, and the others
    share its part.

    Args:
        model: the cluster.
        resource: resource.
        loads: load of each broker, (B,).
        detect_below: rates below which all is well, bytes per second.
    """
    counted = model.is_counted
    total = sum((Fraction(float(load)) for load in loads[counted]), Fraction(0))
    brokers = int(counted.sum())
    shares = _shares(model, resource) if brokers else [Fraction(0)] * len(loads)
    ratios = (1 - BAND_RATIO, 1 + BAND_RATIO, 1)
    # Mostly all have the same share.
    edges = {share: [float(total * share * ratio) for ratio in ratios] for share in set(shares)}
    lower, upper, means = np.array([edges[share] for share in shares]).reshape(-1, len(ratios)).T
    length = np.full(len(loads), RATE_LENGTH) if resource in RATES else np.maximum(means, LEAST_LENGTH)
    low, high = lower, upper
    if resource in COUNTS:
        low, high = np.minimum(lower, np.floor(means)), np.maximum(upper, np.ceil(means))
    # The mean of a broker that sheds stays: the load to shed counts in shares of it.
    lower, upper, low, high = (np.where(model.sheds(resource), 0.0, edge) for edge in (lower, upper, low, high))
    return LoadBounds(lower, upper, means, length, low, high, detect_below if resource in RATES else 0.0)


def limit_bounds(model: ClusterModel, resource: Resource) -> LoadBounds:
    """Return the limits of a resource: 80 % of its capacity; none where the capacity is unknown."""
    capacity = model.capacities(resource)
    lower, upper = np.full(len(capacity), -np.inf), np.where(np.isnan(capacity), np.inf, capacity * LIMIT_RATIO)
    length = np.full(len(upper), RATE_LENGTH)
    if resource not in RATES:
        length = np.maximum(np.where(np.isfinite(upper), upper, LEAST_LENGTH), LEAST_LENGTH)
    return LoadBounds(lower, upper, np.where(np.isfinite(upper), upper, 0.0), length, lower, upper)


def _shares(model: ClusterModel, resource: Resource) -> list[Fraction]:
    """Return the share of each broker in a resource; of those that shed it, what would be theirs of the same sum."""
    counted = model.is_counted
    carry = counted & ~model.sheds(resource)
    if not carry.any():
        carry = counted
    every = model.share_capacities(resource)
    capacity = every[counted]
    if np.isnan(capacity).any() or len(set(capacity.tolist())) <= 1:
        share = Fraction(1, int(carry.sum()))
        return [share if counts else Fraction(0) for counts in counted]
    total = sum((Fraction(float(c)) for c in every[carry]), Fraction(0))
    return [Fraction(float(c)) / total if counts else Fraction(0) for c, counts in zip(every, counted, strict=True)]

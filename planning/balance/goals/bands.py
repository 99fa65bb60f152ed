"""Bands around the mean load, and the score of a load by its distance from the band."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from headroom.planning.balance.arrays import BoolArray, FloatArray
from headroom.planning.balance.model import COUNTS, RATES, ClusterModel, Resource

BAND_RATIO = Fraction(1, 10)
MIB = 1024**2
# Fall of the score from 1 to its lower end of the straight part, and the length of that part for rates.
FALL, LOWEST_STRAIGHT = 0.9, 0.1
RATE_LENGTH = 100.0 * MIB
LEAST_LENGTH = 10.0


@dataclass(frozen=True, eq=False)
class LoadBounds:
    """Band of each broker for one resource.

    Attributes:
        lower: lower edge, included, (B,); minus infinity without one.
        upper: upper edge, included, (B,); infinity without one.
        mean: load that the broker would have if all carried their share, (B,).
        length: distance beyond the edge over which the score falls from 1 to 0.1, (B,).
        detect_below: if a load and its mean are both below this, the score is 1.
        low_target: least load that a whole number allows to demand, (B,); it differs from ``lower`` only for counts.
        high_target: highest load that a whole number allows to demand, (B,).
    """

    lower: FloatArray
    upper: FloatArray
    mean: FloatArray
    length: FloatArray
    detect_below: float = 0.0
    low_target: FloatArray | None = None
    high_target: FloatArray | None = None

    @property
    def reachable_lower(self) -> FloatArray:
        """Return the lower edge that a plan can be held to: a count between two whole numbers is no fault."""
        return self.lower if self.low_target is None else self.low_target

    @property
    def reachable_upper(self) -> FloatArray:
        """Return the upper edge that a plan can be held to."""
        return self.upper if self.high_target is None else self.high_target


def score(
    load: FloatArray,
    lower: FloatArray,
    upper: FloatArray,
    mean: FloatArray,
    length: FloatArray,
    detect_below: FloatArray | float = 0.0,
) -> FloatArray:
    """Return the scores of loads, 0 to 1. All arguments have shapes that broadcast.

    At distance u from the mean a load scores 1 up to the edge d of the band, then falls in a straight line to 0.1 at
    S = d + length; beyond that it is 0.1 ln S / ln u.

    Args:
        load: loads in the unit of the resource.
        lower: lower edges of the bands.
        upper: upper edges of the bands.
        mean: means.
        length: length of the straight part.
        detect_below: if a load and its mean are both below this, the score is 1.
    """
    beyond = np.maximum(np.maximum(load - upper, lower - load), 0.0)
    straight = 1.0 - FALL * np.minimum(beyond / length, 1.0)
    if (beyond > length).any():
        # Half of the band: the distance of the edge that the load is beyond. A limit has no mean: its edge is at 0.
        edge = np.where(load > upper, upper - mean, mean - lower)
        edge = np.where(np.isfinite(edge), np.maximum(edge, 0.0), 0.0)
        far = edge + length
        with np.errstate(divide="ignore", invalid="ignore"):
            tail = LOWEST_STRAIGHT * np.log(far) / np.log(np.maximum(edge + beyond, far))
        straight = np.where(beyond > length, tail, straight)
    quiet = (load < detect_below) & (mean < detect_below)
    scores: FloatArray = np.where(quiet, 1.0, straight)
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
    counted = model.counted
    total = sum((Fraction(float(load)) for load in loads[counted]), Fraction(0))
    brokers = int(counted.sum())
    mean = [Fraction(0)] * len(loads) if not brokers else [total * share for share in _shares(model, resource)]
    lower = np.array([float(m * (1 - BAND_RATIO)) for m in mean])
    upper = np.array([float(m * (1 + BAND_RATIO)) for m in mean])
    means = np.array([float(m) for m in mean])
    length = np.full(len(loads), RATE_LENGTH) if resource in RATES else np.maximum(means, LEAST_LENGTH)
    low = high = None
    if resource in COUNTS:
        low, high = np.minimum(lower, np.floor(means)), np.maximum(upper, np.ceil(means))
    if (sheds := model.sheds(resource)).any():
        # The mean stays: the load to shed counts in shares of it.
        lower, upper = np.where(sheds, 0.0, lower), np.where(sheds, 0.0, upper)
        low, high = (None if edge is None else np.where(sheds, 0.0, edge) for edge in (low, high))
    return LoadBounds(lower, upper, means, length, detect_below if resource in RATES else 0.0, low, high)


def limit_bounds(model: ClusterModel, resource: Resource, limit_ratio: float) -> LoadBounds:
    """Return the limits of a resource: its capacity x ``limit_ratio``; none where the capacity is unknown."""
    capacity = model.capacities(resource)
    upper = np.where(np.isnan(capacity), np.inf, capacity * limit_ratio)
    length = np.full(len(upper), RATE_LENGTH)
    if resource not in RATES:
        length = np.maximum(np.where(np.isfinite(upper), upper, LEAST_LENGTH), LEAST_LENGTH)
    return LoadBounds(np.full(len(upper), -np.inf), upper, np.where(np.isfinite(upper), upper, 0.0), length)


def in_band(load: FloatArray, bounds: LoadBounds) -> BoolArray:
    """Return whether loads are in the bands of their brokers, edges included; shapes (B,)."""
    quiet = (load < bounds.detect_below) & (bounds.mean < bounds.detect_below)
    inside: BoolArray = quiet | ((load >= bounds.lower) & (load <= bounds.upper))
    return inside


def within_reach(load: FloatArray, bounds: LoadBounds) -> BoolArray:
    """Return whether loads are in their bands, or as near as whole numbers allow, or too small to be detected.

    Args:
        load: load of each broker, (B,).
        bounds: their bands.
    """
    quiet = (load < bounds.detect_below) & (bounds.mean < bounds.detect_below)
    inside: BoolArray = quiet | ((load >= bounds.reachable_lower) & (load <= bounds.reachable_upper))
    return inside


def _shares(model: ClusterModel, resource: Resource) -> list[Fraction]:
    """Return the share of each broker in a resource; of those that shed it, what would be theirs of the same sum."""
    counted = model.counted
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

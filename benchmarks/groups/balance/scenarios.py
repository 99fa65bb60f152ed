"""At least 60 synthetic clusters out of balance: skew, growth, brokers new or lost, unequal capacities."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np

from benchmarks.groups.balance.clusters import ClusterShape, KnownCluster, balanced, displaced

KINDS = ("skew", "growth", "new", "lost", "unequal")
_SIZES = ((12, 3_000), (16, 4_000), (20, 6_000))


def scenarios(count: int, hours: int) -> Iterator[KnownCluster]:
    """Yield clusters, the kinds in turn, each with another seed.

    Args:
        count: number of clusters.
        hours: hours of history.
    """
    makers: dict[str, Callable[[int, int], KnownCluster]] = {
        "skew": _skew,
        "growth": _growth,
        "new": _new,
        "lost": _lost,
        "unequal": _unequal,
    }
    for number in range(count):
        yield makers[KINDS[number % len(KINDS)]](number, hours)


def _shape(number: int, hours: int, large: int = 0) -> ClusterShape:
    brokers, partitions = _SIZES[number // len(KINDS) % len(_SIZES)]
    racks = (0, 4)[number // (len(KINDS) * len(_SIZES)) % 2] if not large else 0
    return ClusterShape(brokers, partitions, 3, hours, racks, large, 50, seed=1000 + number)


def _split(shape: ClusterShape, hot: int) -> tuple[np.ndarray, np.ndarray]:
    order = np.random.default_rng(shape.seed).permutation(shape.brokers)
    return order[hot:], order[:hot]


def _skew(number: int, hours: int) -> KnownCluster:
    """A few brokers have replicas of all others."""
    shape = _shape(number, hours)
    others, hot = _split(shape, 2)
    return displaced(balanced(shape), "skew", others, hot, 0.08, number)


def _growth(number: int, hours: int) -> KnownCluster:
    """The brokers of a few topics carry more than others, because these topics have grown."""
    shape = _shape(number, hours)
    others, hot = _split(shape, shape.brokers // 3)
    return displaced(balanced(shape), "growth", others, hot, 0.15, number)


def _new(number: int, hours: int) -> KnownCluster:
    """One broker is almost empty."""
    shape = _shape(number, hours)
    others, new = _split(shape, 1)
    return displaced(balanced(shape), "new", new, others, 0.9, number)


def _lost(number: int, hours: int) -> KnownCluster:
    """Replicas of a broker that was away are on three others, and it is back."""
    shape = _shape(number, hours)
    others, lost = _split(shape, 1)
    return displaced(balanced(shape), "lost", lost, others[:3], 0.6, number)


def _unequal(number: int, hours: int) -> KnownCluster:
    """Some brokers have twice the capacity of others, and less than their share of load."""
    shape = _shape(number, hours, large=3)
    large, others = np.arange(3), np.arange(3, shape.brokers)
    return displaced(balanced(shape), "unequal", large, others, 0.35, number)

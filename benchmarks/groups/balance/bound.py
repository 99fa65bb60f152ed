"""Lower bound of the bytes that bring network in of every broker into its band: replicas may be cut in fractions."""

from __future__ import annotations

import numpy as np

from headroom.planning.balance.arrays import FloatArray
from headroom.planning.balance.goals.bands import band_bounds
from headroom.planning.balance.model import ClusterModel, Resource
from headroom.planning.balance.scoring.loads import ClusterLoads


def bytes_bound(model: ClusterModel, detect_below: float) -> float:
    """Return the greater of two sums in bytes: every excess shed, or every lack filled, best rate per byte first.

    The cluster has one hour of history.
    """
    loads = ClusterLoads(model).loads[Resource.NETWORK_IN]
    bounds = band_bounds(model, Resource.NETWORK_IN, loads, detect_below)
    rate = model.write[:, 0].astype(np.float64)
    shed = filled = 0.0
    for broker in range(len(model.brokers)):
        here = (model.replicas == broker).any(axis=1)
        shed += _fractions(rate[here], model.size[here], loads[broker] - bounds.upper[broker])
        filled += _fractions(rate[~here], model.size[~here], bounds.lower[broker] - loads[broker])
    return max(shed, filled)


def _fractions(rates: FloatArray, sizes: FloatArray, amount: float) -> float:
    """Return the bytes of the replicas with the best rate per byte that add up to an amount of rate."""
    if amount <= 0:
        return 0.0
    order = np.argsort(-rates / sizes, kind="stable")
    total = np.cumsum(rates[order])
    last = int(np.searchsorted(total, amount))
    whole = float(sizes[order[:last]].sum())
    if last == len(order):
        return whole
    left = amount - (float(total[last - 1]) if last else 0.0)
    return whole + float(sizes[order[last]]) * left / float(rates[order[last]])

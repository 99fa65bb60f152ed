"""Types of arrays, the places of brokers in arrays, and the percentile over hours."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

FloatArray = NDArray[np.float64]
RateArray = NDArray[np.float32]
IntArray = NDArray[np.int64]
IndexArray = NDArray[np.int32]
BoolArray = NDArray[np.bool_]
AnyArray = NDArray[Any]


def places_by_broker(brokers: IndexArray, count: int) -> list[IntArray]:
    """Return the places of each broker, ascending, in an array of broker indices, in which -1 is none.

    Args:
        brokers: index of a broker in each place, (N,).
        count: number of brokers.
    """
    # Numbers of 16 bits are sorted by radix, ten times as fast as longer ones.
    order = np.argsort(brokers.astype(np.int16) if count < 2**15 else brokers, kind="stable")
    ends = np.cumsum(np.bincount(brokers + 1, minlength=count + 1))
    return np.split(order, ends)[1 : count + 1]


def percentile_position(hours: int, percentile: float) -> tuple[int, float]:
    """Return the lower of the two sorted values between which a percentile lies, and the share of the upper one.

    Args:
        hours: number of values, at least 1.
        percentile: 0 to 100.
    """
    position = percentile / 100 * (hours - 1)
    below = min(int(position), hours - 1)
    return below, position - below


def hourly_percentile(values: AnyArray, percentile: float) -> FloatArray:
    """Return the percentile over the last axis, with linear interpolation between neighbours, as float64.

    Args:
        values: loads by hour, shape (..., hours).
        percentile: 0 to 100.
    """
    hours = values.shape[-1]
    if hours == 1:
        return np.asarray(values[..., 0], dtype=np.float64)
    below, share = percentile_position(hours, percentile)
    above = min(below + 1, hours - 1)
    ordered = np.partition(values, (below, above), axis=-1)
    low = ordered[..., below].astype(np.float64)
    if share == 0:
        return low
    high = ordered[..., above]
    percentiles: FloatArray = low + share * (high - low)
    return percentiles


def percentile_weights(values: FloatArray, percentile: float) -> FloatArray:
    """Return the weight of each hour in the percentile over the last axis: its derivative by the load of that hour.

    Args:
        values: loads by hour, shape (..., hours).
        percentile: 0 to 100.
    """
    below, share = percentile_position(values.shape[-1], percentile)
    order = np.argsort(values, axis=-1, kind="stable")
    weights = np.zeros_like(values)
    np.put_along_axis(weights, order[..., [below]], 1 - share, axis=-1)
    if share:
        np.put_along_axis(weights, order[..., [below + 1]], share, axis=-1)
    return weights

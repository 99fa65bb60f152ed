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
    below, share = percentile_position(values.shape[-1], percentile)
    # A whole sort of a few hours takes less time than np.partition for two of them.
    ordered = np.sort(values, axis=-1)
    low = ordered[..., below].astype(np.float64)
    if share == 0:
        return low
    percentiles: FloatArray = low + share * (ordered[..., below + 1] - low)
    return percentiles


def percentile_hours(values: FloatArray, percentile: float) -> tuple[IntArray, FloatArray]:
    """Return the hours of which the percentile over the last axis is a weighted sum, and their weights.

    Args:
        values: loads by hour, shape (..., hours).
        percentile: 0 to 100.

    Returns:
        the hours, shape (..., 1 or 2), and the weights, (1 or 2,).
    """
    below, share = percentile_position(values.shape[-1], percentile)
    order = np.argsort(values, axis=-1, kind="stable")
    if share:
        return order[..., [below, below + 1]], np.array([1.0 - share, share])
    return order[..., [below]], np.ones(1)

"""Slow brokers by the log flush times of the past hours, minute by minute."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from planning.balance.arrays import FloatArray
from planning.balance.slow_brokers.slow_brokers import (
    GIVES_REPLICAS_AT,
    LEAST_BYTES_PER_S,
    SLOW_FLUSH_S,
    FlushTimes,
    is_slow,
)

# Fewer earlier rounds say little of what is usual for a broker.
LEAST_ROUNDS = 60
_OWN_PERCENTILE = 90.0


@dataclass(frozen=True, eq=False)
class FlushReadings:
    """Log flush times of brokers by round, R rounds of a minute in order and B brokers.

    Attributes:
        brokers: ids.
        flush_s: 99.9th percentile of the log flush times, seconds, (R, B); NaN if unknown.
        bytes_in_per_s: bytes received per second, (R, B); NaN if unknown.
        missing: why there are none; None if there are.
    """

    brokers: Sequence[int]
    flush_s: FloatArray
    bytes_in_per_s: FloatArray
    missing: str | None = None


def no_flush_readings(missing: str) -> FlushReadings:
    """Return readings without a round.

    Args:
        missing: why there are none.
    """
    return FlushReadings((), np.zeros((0, 0)), np.zeros((0, 0)), missing)


def slow_rounds_of(readings: FlushReadings) -> dict[int, int]:
    """Return the slow rounds of each broker after all rounds: one more for a slow one, one less for another.

    The result is that of ``slow_rounds`` round by round, but for its maximum: a broker that is well again is spared for
    less than an hour, however long it was slow. A round in which its values are unknown changes nothing.

    Args:
        readings: log flush times of all brokers.
    """
    rounds = np.zeros(len(readings.brokers), dtype=np.int64)
    known = np.isfinite(readings.flush_s) & np.isfinite(readings.bytes_in_per_s)
    # Only these can be slow. There are few of them, and only they are compared with others.
    high = known & (readings.flush_s > SLOW_FLUSH_S) & (readings.bytes_in_per_s > LEAST_BYTES_PER_S)
    for number in range(len(high)):
        slow = np.zeros(len(rounds), dtype=np.bool_)
        for broker in np.flatnonzero(high[number]).tolist():
            slow[broker] = _is_slow(readings, number, broker)
        change = np.where(slow, 1, -1) * known[number]
        rounds = np.clip(rounds + change, 0, GIVES_REPLICAS_AT)
    return dict(zip(readings.brokers, rounds.tolist(), strict=True))


def _is_slow(readings: FlushReadings, number: int, broker: int) -> bool:
    times = [_times(readings, number, at) for at in range(len(readings.brokers))]
    own = times.pop(broker)
    return is_slow(_with_past(readings, number, broker, own), times)


def _times(readings: FlushReadings, number: int, broker: int) -> FlushTimes:
    flush_s, bytes_in = readings.flush_s[number, broker], readings.bytes_in_per_s[number, broker]
    return FlushTimes(
        readings.brokers[broker],
        float(flush_s) if np.isfinite(flush_s) else None,
        float(bytes_in) if np.isfinite(bytes_in) else None,
    )


def _with_past(readings: FlushReadings, number: int, broker: int, own: FlushTimes) -> FlushTimes:
    """Return a broker's times with the percentiles of its earlier ones, if there are enough of these."""
    flush_s, bytes_in = readings.flush_s[:number, broker], readings.bytes_in_per_s[:number, broker]
    usable = np.isfinite(flush_s) & (bytes_in > 0)
    if usable.sum() < LEAST_ROUNDS:
        return own
    flush_p90, ratio_p90 = (
        float(np.percentile(values, _OWN_PERCENTILE))
        for values in (flush_s[usable], flush_s[usable] / bytes_in[usable])
    )
    return FlushTimes(own.broker, own.flush_p999_s, own.bytes_in_per_s, flush_p90, ratio_p90)

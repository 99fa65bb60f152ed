"""Samples of one replication quota, with the same rules as in Kafka."""

from __future__ import annotations

import math
from collections.abc import Sequence

from headroom.planning.quotas.limits import QuotaWindow

WINDOW_S = QuotaWindow().length_s
# In-sync followers fetch several times per second, and a sample ends with the first fetch after its time.
_FETCH_INTERVAL_S = 0.03
# Every new fetch reads the mean, several times per second.
_READ_INTERVAL_S = 0.25
# Delay of the next quota check, so that rounding never makes it too early.
_TICK_S = 1e-3


class QuotaSamples:
    """Samples of one quota. Times are in seconds on any one clock, amounts in bytes.

    Follows ``SampledStat``: a sample is complete after its time, and the next one starts with the next amount. A sample
    whose last amount is older than a window is reset when the mean is read. The mean follows ``SimpleRate``: it covers
    the time since the start of the oldest sample.

    Args:
        starts_s: start of each sample, oldest first; one more than the samples that count.
        amounts: amount of each sample; a non-empty sample got its amounts up to its end.
        at_s: now.
        settings: number and length of the samples.
    """

    def __init__(self, starts_s: Sequence[float], amounts: Sequence[float], at_s: float, settings: QuotaWindow) -> None:
        self.settings = settings
        self._length_s = settings.length_s
        self._starts = list(starts_s)
        self._amounts = list(amounts)
        samples = zip(self._starts, self._amounts, strict=True)
        self._ends = [min(at_s, start + settings.sample_s) if amount else start for start, amount in samples]
        self._current = len(self._starts) - 1
        self._total = sum(amounts)
        self._counted_s = at_s
        self._scan()

    def copy(self) -> QuotaSamples:
        """Return an independent copy."""
        other = QuotaSamples(self._starts, self._amounts, self._counted_s, self.settings)
        other._ends, other._current = list(self._ends), self._current
        other._scan()
        return other

    @property
    def total_bytes(self) -> float:
        """Return the sum of all samples."""
        return self._total

    def elapsed_s(self, at_s: float, read_every_s: float = _READ_INTERVAL_S) -> float:
        """Return the time span of the mean, in seconds, after a reset of expired samples.

        Args:
            at_s: now.
            read_every_s: interval at which the mean is read and samples are reset, seconds.
        """
        if at_s >= self._leaves_s:
            for index, end in enumerate(self._ends):
                if at_s - end >= self._length_s:
                    over_s = end + self._length_s * ((at_s - end) // self._length_s)
                    self._clear(index, min(at_s, over_s + read_every_s))
            self._scan()
        return max(self.settings.sample_s, at_s - self._oldest_s)

    def advance(self, at_s: float, bytes_per_s: float) -> None:
        """Count steady traffic since the last call."""
        if bytes_per_s > 0:
            complete_s = self.settings.sample_s + _FETCH_INTERVAL_S / 2
            while at_s - self._starts[self._current] >= complete_s:
                begins_s = max(self._counted_s, self._starts[self._current] + complete_s)
                if begins_s > self._counted_s:
                    self._add(begins_s, bytes_per_s * (begins_s - self._counted_s))
                    self._ends[self._current] -= _FETCH_INTERVAL_S
                self._counted_s = begins_s
                self._next(begins_s)
            self._add(at_s, bytes_per_s * (at_s - self._counted_s))
        self._counted_s = at_s

    def record(self, at_s: float, amount: float) -> None:
        """Count an amount."""
        if at_s - self._starts[self._current] >= self.settings.sample_s:
            self._next(at_s)
        self._add(at_s, amount)

    def room(self, at_s: float, bytes_per_s: float) -> float:
        """Return by how many bytes the mean is below a rate; negative if the quota is exceeded. At 0 it is not
        exceeded.

        Source: ``Quota.acceptable``.
        """
        return bytes_per_s * self.elapsed_s(at_s) - self._total

    def unused_bytes(self, bytes_per_s: float) -> float:
        """Return the part of a rate that a whole window has left; negative if its mean is higher.

        A quota younger than its window has used nothing before.

        Args:
            bytes_per_s: rate.
        """
        elapsed_s, mean_s = self.copy().elapsed_s(self._counted_s), self.settings.mean_s
        if elapsed_s < self._length_s:
            return bytes_per_s * mean_s - self._total
        return mean_s * (bytes_per_s - self._total / elapsed_s)

    def next_check_s(self, at_s: float, room_bytes: float, gains_bytes_per_s: float) -> float:
        """Return the earliest time at which an exceeded quota may have room.

        Args:
            at_s: now.
            room_bytes: current room, negative.
            gains_bytes_per_s: rate minus steady traffic.
        """
        grown_s = at_s - room_bytes / gains_bytes_per_s if gains_bytes_per_s > 0 else math.inf
        return max(min(min(self._ends) + self._length_s, grown_s), at_s) + _TICK_S

    def scale(self, ratio: float) -> None:
        """Multiply all amounts by a ratio."""
        self._amounts = [amount * ratio for amount in self._amounts]
        self._total *= ratio

    def _add(self, at_s: float, amount: float) -> None:
        self._amounts[self._current] += amount
        self._ends[self._current] = at_s
        self._total += amount

    def _next(self, at_s: float) -> None:
        self._current = (self._current + 1) % len(self._starts)
        self._clear(self._current, at_s)
        self._scan()

    def _clear(self, index: int, at_s: float) -> None:
        self._total -= self._amounts[index]
        self._amounts[index] = 0.0
        self._starts[index] = self._ends[index] = at_s

    def _scan(self) -> None:
        """Update the start of the oldest sample, and the earliest time at which a sample expires."""
        self._oldest_s = min(self._starts)
        self._leaves_s = min(self._ends) + self._length_s


def steady(bytes_per_s: float, at_s: float, settings: QuotaWindow, phase: float = 0.5) -> QuotaSamples:
    """Return samples with the same traffic in each of them.

    Args:
        bytes_per_s: mean.
        at_s: now.
        settings: number and length of the samples.
        phase: elapsed part of the youngest sample, 0 to 1.
    """
    kept = settings.samples + 1
    starts = [at_s - (age + phase) * settings.sample_s for age in reversed(range(kept))]
    amounts = [bytes_per_s * min(settings.sample_s, at_s - start) for start in starts]
    return QuotaSamples(starts, amounts, at_s, settings)


def empty_samples(reset_s: float, at_s: float, settings: QuotaWindow) -> QuotaSamples:
    """Return empty samples that were all reset or created at the same time.

    Args:
        reset_s: time of the reset.
        at_s: now.
        settings: number and length of the samples.
    """
    kept = settings.samples + 1
    return QuotaSamples([reset_s] * kept, [0.0] * kept, at_s, settings)

"""The samples of one replication quota, as Kafka keeps them."""

from __future__ import annotations

import math
from collections.abc import Sequence

from planning.finish.limits import QuotaWindow

WINDOW_S = QuotaWindow().length_s
# Followers in sync fetch some times a second: a sample ends with the first of these fetches after its time.
_FETCH_INTERVAL_S = 0.03
# The mean is read with every fetch that is built, some times a second.
_READ_INTERVAL_S = 0.25
# A quota that may have room is checked this much later at the earliest, so that rounding never checks it too early.
_TICK_S = 1e-3


class QuotaSamples:
    """The samples of one quota. Times in seconds on any one clock, amounts in bytes.

    Does what ``SampledStat`` does: a sample is complete after its time, the next one begins with the next amount, and
    one that got its last amount a window ago is reset when the mean is read. The mean is that of ``SimpleRate``: over
    the time since the oldest sample began.

    Args:
        starts_s: when each sample began, oldest first; one more than the samples that count.
        amounts: what each contains; a sample that contains something has got it until its end.
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
        """Return a window that goes on from here by itself."""
        other = QuotaSamples(self._starts, self._amounts, self._counted_s, self.settings)
        other._ends, other._current = list(self._ends), self._current
        other._scan()
        return other

    @property
    def total_bytes(self) -> float:
        """Return what all samples contain."""
        return self._total

    def elapsed_s(self, at_s: float, read_every_s: float = _READ_INTERVAL_S) -> float:
        """Return the time that the mean is over, in seconds; samples that are over are reset first.

        Args:
            at_s: now.
            read_every_s: how often the mean is read, at which samples are reset, seconds.
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
        """Return how many bytes the mean is below a rate; negative: the quota is exceeded, at 0 it is not.

        Source: ``Quota.acceptable``.
        """
        return bytes_per_s * self.elapsed_s(at_s) - self._total

    def next_check_s(self, at_s: float, room_bytes: float, gains_bytes_per_s: float) -> float:
        """Return the earliest time at which an exceeded quota may have room.

        Args:
            at_s: now.
            room_bytes: its room now, negative.
            gains_bytes_per_s: what the rate leaves of steady traffic.
        """
        grown_s = at_s - room_bytes / gains_bytes_per_s if gains_bytes_per_s > 0 else math.inf
        return max(min(min(self._ends) + self._length_s, grown_s), at_s) + _TICK_S

    def scale(self, ratio: float) -> None:
        """Multiply all that the samples contain."""
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
        """Note when the oldest sample began, and until when none is over for sure."""
        self._oldest_s = min(self._starts)
        self._leaves_s = min(self._ends) + self._length_s


def steady(bytes_per_s: float, at_s: float, settings: QuotaWindow, phase: float = 0.5) -> QuotaSamples:
    """Return a window that has counted the same in every sample.

    Args:
        bytes_per_s: the mean.
        at_s: now.
        settings: number and length of the samples.
        phase: how much of the youngest sample is over, 0 to 1.
    """
    kept = settings.samples + 1
    starts = [at_s - (age + phase) * settings.sample_s for age in reversed(range(kept))]
    amounts = [bytes_per_s * min(settings.sample_s, at_s - start) for start in starts]
    return QuotaSamples(starts, amounts, at_s, settings)


def unused(reset_s: float, at_s: float, settings: QuotaWindow) -> QuotaSamples:
    """Return a window that has counted nothing, all its samples reset or made at the same time.

    Args:
        reset_s: when.
        at_s: now.
        settings: number and length of the samples.
    """
    kept = settings.samples + 1
    return QuotaSamples([reset_s] * kept, [0.0] * kept, at_s, settings)

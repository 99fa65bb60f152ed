"""Bucket counts of a Prometheus histogram."""

from __future__ import annotations

from bisect import bisect_left
from dataclasses import dataclass, replace
from itertools import accumulate


@dataclass(frozen=True)
class BucketCounts:
    """Counts of durations by bucket.

    Attributes:
        bounds: upper bounds of the buckets in seconds, ascending, without the infinite one.
        counts: number of durations in each bucket, the infinite one last.
        total_s: sum of all durations, seconds.
    """

    bounds: tuple[float, ...]
    counts: tuple[int, ...]
    total_s: float = 0.0

    def add(self, seconds: float) -> BucketCounts:
        """Return the counts with one more duration; a value equal to a bound is in the bucket below it."""
        bucket = bisect_left(self.bounds, seconds)
        counts = (*self.counts[:bucket], self.counts[bucket] + 1, *self.counts[bucket + 1 :])
        return replace(self, counts=counts, total_s=self.total_s + seconds)

    def cumulative(self) -> list[tuple[str, float]]:
        """Return the upper bounds with their cumulative counts, as in the text exposition format."""
        return list(zip([*map(str, self.bounds), "+Inf"], accumulate(self.counts), strict=True))


def empty_counts(bounds: tuple[float, ...]) -> BucketCounts:
    """Return counts without durations."""
    return BucketCounts(bounds, (0,) * (len(bounds) + 1))

"""Counts by bucket, as a Prometheus histogram tells them."""

from __future__ import annotations

from bisect import bisect_left
from dataclasses import dataclass, replace
from itertools import accumulate


@dataclass(frozen=True)
class BucketCounts:
    """How often which length was seen.

    Attributes:
        bounds: upper bounds of the buckets, rising, without the infinite one.
        counts: how many in each bucket, the infinite one last.
        total_s: sum of all, seconds.
    """

    bounds: tuple[float, ...]
    counts: tuple[int, ...]
    total_s: float = 0.0

    def add(self, seconds: float) -> BucketCounts:
        """Return the counts with one more; a bound belongs to the bucket below it."""
        bucket = bisect_left(self.bounds, seconds)
        counts = (*self.counts[:bucket], self.counts[bucket] + 1, *self.counts[bucket + 1 :])
        return replace(self, counts=counts, total_s=self.total_s + seconds)

    def cumulative(self) -> list[tuple[str, float]]:
        """Return upper bound and count of all that are not above it, as the exposition writes them."""
        return list(zip([*map(str, self.bounds), "+Inf"], accumulate(self.counts), strict=True))


def empty_counts(bounds: tuple[float, ...]) -> BucketCounts:
    """Return counts that have seen nothing."""
    return BucketCounts(bounds, (0,) * (len(bounds) + 1))

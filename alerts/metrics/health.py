"""Health check of the alert path for probes: whether verdicts are fresh."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from headroom.alerts.metrics.state import Limits, MetricsSnapshot


@dataclass(frozen=True)
class Health:
    """Result of the health check.

    Attributes:
        status: ``ok``, ``starting`` (a cluster has had no tick yet) or ``unhealthy``.
        reasons: reasons for ``unhealthy``; empty if healthy.
        clusters: by cluster, the age of its last tick in seconds (None if there was none) and the limit.
        batch_s: how long the current micro-batch has been running, seconds; None if none is.
    """

    status: str
    reasons: tuple[str, ...]
    clusters: Mapping[str, Mapping[str, float | None]]
    batch_s: float | None

    @property
    def healthy(self) -> bool:
        """Return whether there are no reasons for ``unhealthy``."""
        return not self.reasons

    def as_json(self) -> dict[str, Any]:
        """Return the result ready for JSON."""
        return {
            "status": self.status,
            "reasons": list(self.reasons),
            "clusters": {name: dict(numbers) for name, numbers in self.clusters.items()},
            "batch_s": self.batch_s,
        }


def health(now: MetricsSnapshot, clusters: Mapping[str, Limits]) -> Health:
    """Check that every cluster's ticks are fresh and no micro-batch hangs.

    Args:
        now: state of the alert path.
        clusters: age limits by configured cluster.
    """
    reasons = (*_old_ticks(now, clusters), *_long_batch(now, clusters))
    starting = any(name not in now.ticks for name in clusters)
    status = "unhealthy" if reasons else "starting" if starting else "ok"
    numbers = {}
    for name, limits in clusters.items():
        tick = now.ticks.get(name)
        age_s = None if tick is None else tick.age_s(now.now_ms)
        numbers[name] = {"tick_age_s": age_s, "limit_s": limits.first_s if tick is None else limits.stale_s}
    return Health(status, reasons, numbers, now.batch_s)


def _old_ticks(now: MetricsSnapshot, clusters: Mapping[str, Limits]) -> Iterator[str]:
    since_start_s = (now.now_ms - now.start_ms) / 1000
    for name, limits in clusters.items():
        tick = now.ticks.get(name)
        if tick is None and since_start_s >= limits.first_s:
            yield f"cluster {name}: no tick was evaluated in the {since_start_s:.0f} s since the start"
        elif tick is not None and tick.age_s(now.now_ms) >= limits.stale_s:
            age_s = tick.age_s(now.now_ms)
            yield f"cluster {name}: its last evaluated tick is {age_s:.0f} s old, limit {limits.stale_s:.0f} s"


def _long_batch(now: MetricsSnapshot, clusters: Mapping[str, Limits]) -> Iterator[str]:
    # The first micro-batch may take as long as the first tick.
    limit_s = max((lim.stale_s if now.ticks else lim.first_s for lim in clusters.values()), default=None)
    if limit_s is not None and now.batch_s is not None and now.batch_s >= limit_s:
        yield f"the alert path has worked on a batch for {now.batch_s:.0f} s, limit {limit_s:.0f} s"

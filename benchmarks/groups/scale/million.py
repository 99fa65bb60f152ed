"""Group ``million``: a cluster of a million partitions, and its cost per row over that of 200,000.

Both sizes are measured in one run, with fewer ticks than in ``scale``, because a tick of the larger one has 4 million
rows in 250 MB. Heaps have 4 GB (``--driver-memory``).
"""

from __future__ import annotations

from dataclasses import dataclass

from benchmarks.fixtures.bench_cluster import OnProgress
from benchmarks.groups.scale.group import Schedule, figures_of, measured
from benchmarks.options.fields import heap_option
from benchmarks.results import Figure

_SMALL, _LARGE = 200_000, 1_000_000
_SCHEDULES = {
    _SMALL: Schedule(warm=10, at_once=6, paced=1),
    _LARGE: Schedule(warm=4, at_once=3, paced=2, interval_s=30.0),
}


@dataclass(frozen=True)
class MillionOptions:
    """Options of the group ``million``."""

    driver_memory: str = heap_option("4g")


def measure(on_progress: OnProgress, options: MillionOptions) -> list[Figure]:
    """Return the figures of a million partitions, and the growth of the cost per row.

    Raises:
        HeadroomError: ticks were not evaluated or recorded in time, or a verdict was wrong.
    """
    runs = {size: measured(size, own, on_progress, options.driver_memory) for size, own in _SCHEDULES.items()}
    small, large = (run.at_once_s_per_tick / run.rows_per_tick for run in runs.values())
    growth = Figure("cost_growth_ratio", large / small, "ratio", _SCHEDULES[_LARGE].at_once)
    return [*figures_of(runs[_LARGE]), growth]

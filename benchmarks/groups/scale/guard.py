"""Group ``guard``: the main figures of ``scale`` at 200,000 partitions in a few minutes, for changes of the pipeline.

Fewer ticks warm the JVMs up than in ``scale``, so the figures are higher, and are to be compared with each other only:
``python -m benchmarks.compare --only guard``.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from benchmarks.fixtures.bench_cluster import OnProgress
from benchmarks.groups.scale.group import Schedule, figures_of, measured
from benchmarks.options.fields import heap_option
from benchmarks.results import Figure

_SIZE = 200_000
_SCHEDULE = Schedule(warm=10, at_once=6, paced=4)
_MAIN = ("sustained_interval_s", "ceiling_rows_ratio", "history_path_s", "balance_path_s", "alert_path_s")


@dataclass(frozen=True)
class GuardOptions:
    """Options of the group ``guard``."""

    driver_memory: str = heap_option("2g")


def measure(on_progress: OnProgress, options: GuardOptions) -> list[Figure]:
    """Return the main figures of 200,000 partitions, and the peak of memory.

    Raises:
        HeadroomError: ticks were not evaluated or recorded in time, or a verdict was wrong.
    """
    figures = figures_of(measured(_SIZE, _SCHEDULE, on_progress, options.driver_memory))
    return [
        replace(figure, name=f"guard_{figure.name}")
        for figure in figures
        if figure.name.startswith((*_MAIN, "peak_memory_bytes"))
    ]

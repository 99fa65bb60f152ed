"""Group ``memory``: growth of the memory of ``headroom watch`` over an hour of ticks at its default interval.

A move is running all the time.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass

from benchmarks.fixtures.bench_cluster import BenchCluster, OnProgress
from benchmarks.fixtures.processes import resident_bytes
from benchmarks.fixtures.throttled_move import MovedPartition, ThrottledMove
from benchmarks.options.fields import SECONDS, option
from benchmarks.results import Figure, slope_per_s
from headroom.cli.common.watch_process import WatchProcess
from headroom.schemas.config import CollectSettings

# The throttle is below in-sync use (0.3 MB/s), so nothing is copied and the move never ends.
_PARTITION = MovedPartition((1, 2), (1, 3), 0.3e6, 20_000_000)
_THROTTLE_BYTES_PER_S = 0.2e6
_SAMPLE_S = 5.0
_LOG_EVERY = 12
# At first the memory grows because JVMs fill their heaps.
_WARM_UP_RATIO = 0.25
_BEGINNING_RATIO = 0.1
Sample = tuple[float, float]


@dataclass(frozen=True)
class MemoryOptions:
    """Options of the group ``memory``."""

    length_s: float = option(3600.0, SECONDS, "Measured time, seconds.")
    interval_s: float = option(CollectSettings().interval_s, SECONDS, "Interval of ticks, seconds.")


def measure(on_progress: OnProgress, options: MemoryOptions) -> list[Figure]:
    """Return growth and peak of the memory of all processes of the watch.

    Raises:
        HeadroomError: the watch gave no verdict, or ended.
    """
    with BenchCluster(3) as bench, ThrottledMove(bench, "memory", [_PARTITION]) as move:
        bench.configure(options.interval_s)
        with bench.watch() as watch:
            move.start_move(_THROTTLE_BYTES_PER_S)
            watch.wait(lambda: bool(watch.verdicts()), 180, "first verdict")
            samples = _sample(watch, options.length_s, on_progress)
    used = after_warm_up(samples)
    return [
        Figure("memory_growth_ratio_per_hour", growth_ratio_per_hour(used), "ratio/h", len(used)),
        Figure("memory_peak_bytes", max(rss for _, rss in samples), "bytes", len(samples)),
        Figure("memory_measured_s", samples[-1][0], "s", len(samples)),
        Figure("memory_tick_interval_s", options.interval_s, "s", 1),
    ]


def _sample(watch: WatchProcess, length_s: float, on_progress: OnProgress) -> list[Sample]:
    samples: list[Sample] = []
    began_s = time.monotonic()
    while (at_s := time.monotonic() - began_s) < length_s:
        rss_by_process = resident_bytes(watch.processes())
        samples.append((at_s, float(sum(rss_by_process.values()))))
        if len(samples) % _LOG_EVERY == 1:
            by_process = ", ".join(f"{name} {rss / 1e6:.0f}" for name, rss in sorted(rss_by_process.items()))
            on_progress(f"{at_s:5.0f} s: {samples[-1][1] / 1e6:.0f} MB ({by_process})")
        watch.require_running()
        time.sleep(max(0.0, began_s + len(samples) * _SAMPLE_S - time.monotonic()))
    return samples


def after_warm_up(samples: Sequence[Sample]) -> list[Sample]:
    """Return the (seconds, bytes) samples after the warm-up, which is the first quarter of the time."""
    from_s = samples[0][0] + (samples[-1][0] - samples[0][0]) * _WARM_UP_RATIO
    return [sample for sample in samples if sample[0] >= from_s]


def growth_ratio_per_hour(samples: Sequence[Sample]) -> float:
    """Return the slope of (seconds, bytes) samples per hour, divided by the mean of the first tenth."""
    beginning = samples[: max(1, round(len(samples) * _BEGINNING_RATIO))]
    return slope_per_s(samples) * 3600 / (sum(rss for _, rss in beginning) / len(beginning))

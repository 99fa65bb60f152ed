"""Group ``start``: time from the start of ``headroom watch`` to its first verdict, while a move is running."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from benchmarks.fixtures.bench_cluster import BenchCluster, OnProgress
from benchmarks.fixtures.throttled_move import MovedPartition, ThrottledMove
from benchmarks.options.fields import AT_LEAST_ONE, option
from benchmarks.results import Figure, percentile
from headroom.cli.common.watch_output import Line, WatchLines

# In-sync use is 2 MB/s and the required rate is 4 MB/s, so the move never ends under 3 MB/s.
_PARTITION = MovedPartition((1, 2), (1, 3), 2e6, 40_000_000)
_THROTTLE_BYTES_PER_S = 3e6
_UNDECIDED = ("no_data", "idle")


@dataclass(frozen=True)
class StartOptions:
    """Options of the group ``start``."""

    starts: int = option(5, AT_LEAST_ONE, "Starts of a watch.")


def measure(on_progress: OnProgress, options: StartOptions) -> list[Figure]:
    """Return medians over starts, each with new tables.

    The first line may have no_data for every broker and role. The first verdict is neither no_data nor idle.

    Raises:
        HeadroomError: a start gave no verdict.
    """
    count = options.starts
    with BenchCluster(3) as bench, ThrottledMove(bench, "start", [_PARTITION]) as move:
        move.start_move(_THROTTLE_BYTES_PER_S)
        starts = [_start(bench, number, on_progress) for number in range(count)]
    return [
        Figure("start_to_first_verdict_s", percentile([verdict for _, verdict in starts], 0.5), "s", count),
        Figure("start_to_first_verdict_s_max", max(verdict for _, verdict in starts), "s", count),
        Figure("start_to_first_line_s", percentile([line for line, _ in starts], 0.5), "s", count),
    ]


def _start(bench: BenchCluster, number: int, on_progress: OnProgress) -> tuple[float, float]:
    """Return the seconds to the first line of verdicts, and to the first verdict on the move."""
    with bench.watch(bench.folder / f"store-{number}") as watch:
        line = watch.wait(lambda: _first(watch, lambda verdict: True), 180, "first line")
        verdict = watch.wait(lambda: _first(watch, lambda verdict: verdict not in _UNDECIDED), 180, "first verdict")
        line_s, verdict_s = line.at_s - watch.started_s, verdict.at_s - watch.started_s
    on_progress(f"start {number + 1}: first line after {line_s:.1f} s, first verdict after {verdict_s:.1f} s")
    return line_s, verdict_s


def _first(watch: WatchLines, accepts: Callable[[str], bool]) -> Line | None:
    lines = (line for line in watch.lines if line.fields["type"] == "verdicts")
    return next(
        (line for line in lines if any(accepts(broker_role["verdict"]) for broker_role in line.fields["sides"])), None
    )

"""Group ``busy``: the same machine with programs beside Headroom that only compute; all settings are the defaults.

1. ``busy_alert_s_median``, ``_p95``: as ``switch_to_alert_s``, beside two of them.
2. ``busy_history_first_row_s``: from the start of ``headroom watch`` to a first row of ``silver/messages``, beside one.
3. ``demo_ok_busy_ratio``: share of demos in which everything came true, times apart; beside none, one and two in turn.
   ``demo_in_range_busy_ratio`` is the share of their moves that ended within the promised range.
"""

from __future__ import annotations

import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

from benchmarks.fixtures.bench_cluster import BenchCluster, OnProgress
from benchmarks.fixtures.processes import busy_cores
from benchmarks.groups.alert_latency import warm_switches
from benchmarks.options.fields import COUNT, option
from benchmarks.results import Figure, percentile
from headroom.alerts.stored_event import recommendation_of
from headroom.cli.demo.command import run_demo
from headroom.cli.demo.outcome import failures
from headroom.schemas.errors import HeadroomError
from headroom.schemas.tables import MESSAGES
from headroom.streaming.delta.query_table import query

_DEMOS_BESIDE = (0, 1, 2)
# Longer than anybody waits, so that the figure is a time and not an error.
_FIRST_ROW_S = 900.0
_POLL_S = 1.0


@dataclass(frozen=True)
class _Demo:
    """What became of one demo.

    Attributes:
        ok: everything but its times came true.
        in_range: whether the move ended within the promised range; without a promise or an end it did not.
    """

    ok: bool
    in_range: bool


@dataclass(frozen=True)
class BusyOptions:
    """Options of the group ``busy``."""

    switches: int = option(10, COUNT, "Leader switches, beside two busy processes.")
    starts: int = option(3, COUNT, "Starts of a watch, beside one busy process.")
    demos: int = option(10, COUNT, "Demos beside each of none, one and two busy processes.")


def measure(on_progress: OnProgress, options: BusyOptions) -> list[Figure]:
    """Return the figures of switches, of starts, and of demos.

    Raises:
        HeadroomError: a move was not healthy before its switch, or an alert did not fire or is not in the table.
    """
    figures: list[Figure] = []
    if options.switches:
        figures += _alerts(options.switches, on_progress)
    if starts := options.starts:
        first_s = [_first_row_s(number, on_progress) for number in range(starts)]
        figures += [
            Figure("busy_history_first_row_s", percentile(first_s, 0.5), "s", starts),
            Figure("busy_history_first_row_s_max", max(first_s), "s", starts),
        ]
    if options.demos:
        figures += _demos(options.demos, on_progress)
    return figures


def _alerts(count: int, on_progress: OnProgress) -> list[Figure]:
    with BenchCluster(3) as bench, busy_cores(2):
        delays_s = warm_switches(bench, count, on_progress)
    return [
        Figure("busy_alert_s_median", percentile(delays_s, 0.5), "s", count),
        Figure("busy_alert_s_p95", percentile(delays_s, 0.95), "s", count),
    ]


def _first_row_s(number: int, on_progress: OnProgress) -> float:
    """Return the seconds from the start of a watch to the first row of silver that a reader sees."""
    with BenchCluster(3) as bench, busy_cores(1), bench.watch() as watch:
        sql = "SELECT kind FROM data LIMIT 1"
        watch.wait(lambda: query(bench.store, MESSAGES.path, sql), _FIRST_ROW_S, "a row of silver", _POLL_S)
        took_s = time.monotonic() - watch.started_s
    on_progress(f"start {number + 1}, beside 1: first row of silver after {took_s:.0f} s")
    return took_s


def _demos(count: int, on_progress: OnProgress) -> list[Figure]:
    played = [_demo(number, beside, on_progress) for number in range(count) for beside in _DEMOS_BESIDE]
    return [
        Figure("demo_ok_busy_ratio", sum(demo.ok for demo in played) / len(played), "ratio", len(played)),
        Figure("demo_in_range_busy_ratio", sum(demo.in_range for demo in played) / len(played), "ratio", len(played)),
    ]


def _demo(number: int, beside: int, on_progress: OnProgress) -> _Demo:
    name = f"demo {number + 1}, beside {beside}"
    try:
        with busy_cores(beside), tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
            outcome = run_demo(Path(folder))
    except HeadroomError as error:
        on_progress(f"{name}: {error}")
        return _Demo(False, False)
    failed, promise = failures(outcome), recommendation_of(outcome.alert).finish
    low_s, high_s = promise.finish_low_s, promise.finish_high_s
    in_range, text = False, "no range"
    if low_s is not None and high_s is not None:
        in_range, text = low_s <= outcome.finish_s <= high_s, f"promised {low_s:.0f} to {high_s:.0f} s"
    on_progress(f"{name}: ended after {outcome.finish_s:.0f} s, {text}{''.join('; ' + one for one in failed)}")
    return _Demo(not failed, in_range)

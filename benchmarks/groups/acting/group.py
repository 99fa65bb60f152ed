"""Group ``acting``: what the page changes, beside what the commands change, on four real brokers.

- ``dashboard_clicks_max``: most clicks of five tasks in Chromium, from an open page to the end: raise a throttle from
  its alert, drain a broker, cancel a running move, elect the preferred leaders, start a proposal of a balance cut at
  its third action.
- ``dashboard_journal_differs``: rows of the journal that only the page or only the equal command has written, over all
  tasks; times, numbers and ids aside. A step of a throttled list is a row for each of its entries: what ends between
  two looks leaves it in one step.
- ``dashboard_forged_changes``: forged, stale, repeated and cross-site requests that changed or began anything, of 51.
- ``dashboard_kill_unfinished``: moves (`--moves`) whose page, worker and command got a ``kill -9`` at a random moment,
  and that were not done, or had left a throttle, after the page was started again and *Go on* was chosen.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from benchmarks.fixtures.bench_cluster import BenchCluster, OnProgress
from benchmarks.groups.acting.forged import ForgedRequests
from benchmarks.groups.acting.killed import KilledMoves
from benchmarks.groups.acting.served_page import CountingBrowser, ServedPage
from benchmarks.groups.acting.tasks import Tasks
from benchmarks.groups.dashboard.page_process import chromium
from benchmarks.options.fields import COUNT, option
from benchmarks.results import Figure
from headroom.schemas.tables import THROTTLE_HEADROOM

_BROKERS = 4
_VERDICT_S = 180.0


@dataclass(frozen=True)
class ActingOptions:
    """Options of the group ``acting``."""

    moves: int = option(10, COUNT, "Moves whose processes are killed.")


def measure(on_progress: OnProgress, options: ActingOptions) -> list[Figure]:
    """Return the figures of what the page changes.

    Raises:
        HeadroomError: there is no Chromium, or a task did not come to its end.
    """
    executable = chromium()
    # Only here: other groups need no browser.
    from playwright.sync_api import sync_playwright

    with BenchCluster(_BROKERS) as bench:
        bench.add_section("reassign", {"pause_s": 0.0})
        bench.add_section("elections", {"pause_s": 0.0})
        with bench.watch() as watch, ServedPage(bench) as served, sync_playwright() as playwright:
            verdicts = Path(bench.store) / THROTTLE_HEADROOM.path / "_delta_log"
            watch.wait(verdicts.exists, _VERDICT_S, "the table of verdicts")
            opened = playwright.chromium.launch(executable_path=executable, args=["--no-sandbox"])
            browser = CountingBrowser(opened.new_page(), served)
            browser.log_in()
            done = list(Tasks(bench, served, browser, on_progress).run())
            opened.close()
            sent, changed = ForgedRequests(bench, served).changed(on_progress)
            killed = KilledMoves(bench, served)
            moves = [killed.record(number, on_progress) for number in range(options.moves)]
    figures = [
        Figure("dashboard_clicks_max", max(task.clicks for task in done), "clicks", len(done)),
        Figure("dashboard_journal_differs", sum(t.differing for t in done), "rows", sum(t.rows for t in done)),
        Figure("dashboard_forged_changes", changed, "requests", sent),
    ]
    if moves:
        unfinished = sum(move.unfinished or bool(move.left) for move in moves)
        figures.append(Figure("dashboard_kill_unfinished", unfinished, "moves", len(moves)))
    return figures

"""Group ``dashboard``: what the page costs at a move of 2,000 partitions, and whether it shows what the tables have.

The store has a day of ticks, every 5 s, with 2,000 moving partitions (`--partitions`) and 12 brokers. Headless Chromium
opens the page.

- ``dashboard_start_s``: from the command to the first answer, median of 5 starts.
- ``dashboard_first_view_s``: from an address to headline and rows on the screen, median of 10 loads.
- ``dashboard_update_s_p95``: from the last commit of a tick to its time on the page, 20 ticks; beside 20 other clients
  that open a stream and do not read (`--idle-clients`).
- ``dashboard_range_s_p95``: an hour of one broker, its chart and its partitions, over all brokers and roles.
- ``dashboard_lag_200k_s``: an hour of lag between 30 brokers with 200,000 partitions of RF 3 (`--lag-partitions`), one
  tick each 15 s, as a heat map, in a store of its own; p95 of 10 loads of the whole page. ``dashboard_lag_sum_s``: sums
  of one tick for it, which the pipeline makes.
- ``dashboard_long_task_ms_max``: longest task of the browser while a table of 5,000 rows is loaded, scrolled, sorted,
  paged, and replaced by further ticks, in a store of its own.
- ``dashboard_page_bytes``: page, style and script, compressed, with an empty store.
- ``dashboard_memory_bytes``: resident memory after 8 clients have gone through the day for 10 minutes (`--replay-s`).
- ``dashboard_wrong_numbers``: 238 figures of the API that differ from the tables, read by a query of their own: of
  every view in a store of its own, and of moves and throttles at 8 moments of the day.
- ``dashboard_axe_violations``: serious and critical findings of axe in all views, at moments of them, in what a click
  opens, in every form, and in the screen before a command and after it, light and dark.
"""

from __future__ import annotations

import random
import socket
import subprocess
import tempfile
import threading
import time
import urllib.request
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import psutil

from benchmarks.fixtures.bench_cluster import OnProgress
from benchmarks.groups.dashboard.accessibility import form_paths, grave_findings, paths
from benchmarks.groups.dashboard.day_store import BROKERS, TICK_MS, DayStore, make_day
from benchmarks.groups.dashboard.lag_store import make_hour
from benchmarks.groups.dashboard.page_process import chromium, start_page
from benchmarks.groups.dashboard.shown_figures import OF_ALL_VIEWS, OF_MOVE, wrong_figures
from benchmarks.groups.dashboard.views_store import make_views
from benchmarks.options.fields import AT_LEAST_ONE, COUNT, SECONDS, option
from benchmarks.results import Figure, percentile
from headroom.schemas.keys import Role
from tests.unit.builders.dashboard_store import CLUSTER, DashboardStore, event, new_replica
from tests.unit.builders.throttle_status import partition, status

_STARTS, _LOADS, _UPDATES, _MOMENTS, _REPLAYING = 5, 10, 20, 8, 8
_WAIT_S, _REPLAY_EVERY_S = 30.0, 1.0
_LONG_ROWS = 5000
_TOKEN = "a-token-of-a-benchmark"
_DAY_MS = 86_400_000
# In the page: the longest task since it was loaded, milliseconds.
_OBSERVE = """
window.longest = 0;
new PerformanceObserver((list) => {
  for (const entry of list.getEntries()) window.longest = Math.max(window.longest, entry.duration);
}).observe({ type: "longtask", buffered: true });
"""


@dataclass(frozen=True)
class DashboardOptions:
    """Options of the group ``dashboard``."""

    partitions: int = option(2000, AT_LEAST_ONE, "Moving partitions.")
    lag_partitions: int = option(200_000, AT_LEAST_ONE, "Partitions whose lag is summed.")
    idle_clients: int = option(20, COUNT, "Clients that open a stream and do not read.")
    replay_s: float = option(600.0, SECONDS, "Time that 8 clients go through the day, seconds.")


def measure(on_progress: OnProgress, options: DashboardOptions) -> list[Figure]:
    """Return the figures of the page.

    Raises:
        HeadroomError: there is no Chromium, or the page did not answer.
    """
    browser = chromium()
    with tempfile.TemporaryDirectory(prefix="headroom-bench-") as folder, ExitStack() as stack:
        last_ms = int(time.time() * 1000) // TICK_MS * TICK_MS
        store = make_day(Path(folder), last_ms, options.partitions, on_progress)
        starts_s = [_start_s(store.path) for _ in range(_STARTS)]
        figures = [Figure("dashboard_start_s", percentile(starts_s, 0.5), "s", _STARTS)]
        empty_bytes = _page_bytes(stack.enter_context(_served(Path(folder) / "empty"))[1])
        figures.append(Figure("dashboard_page_bytes", empty_bytes, "bytes", 1))
        process, url = stack.enter_context(_served(store.path))
        figures += [_range(url), _wrong_numbers(store, url, Path(folder) / "views", last_ms)]
        figures += _lag(Path(folder) / "lag", last_ms, options.lag_partitions)
        figures += _in_browser(browser, store, url, options, on_progress)
        figures.append(_memory(store, url, process, options.replay_s, on_progress))
        return figures


@contextmanager
def _served(store: Path, token: str | None = None) -> Iterator[tuple[subprocess.Popen[str], str]]:
    """Serve the page on a store, and yield the process with its address once it answers.

    Args:
        store: folder of the store.
        token: token with which it carries out commands; None: it carries out none.
    """
    store.parent.mkdir(parents=True, exist_ok=True)
    config = store.parent / f"{store.name}.toml"
    config.write_text(
        f'[cluster]\nname = "{CLUSTER}"\nbootstrap_servers = "127.0.0.1:9092"\n[store]\npath = "{store}"\n',
        encoding="utf-8",
    )
    process, url = start_page(config, environment=None if token is None else {"HEADROOM_DASHBOARD__TOKEN": token})
    try:
        yield process, url
    finally:
        process.terminate()
        process.wait()


def _get(url: str) -> bytes:
    content: bytes = urllib.request.urlopen(url, timeout=_WAIT_S).read()
    return content


def _start_s(store: Path) -> float:
    began_s = time.monotonic()
    with _served(store) as (_, url):
        _get(f"{url}/moves")
        return time.monotonic() - began_s


def _page_bytes(url: str) -> int:
    """Return the compressed size of a page with all that it loads."""
    paths = ("/moves", "/static/style.css", "/static/page.js", "/static/icon.svg")
    total = 0
    for path in paths:
        request = urllib.request.Request(url + path, headers={"Accept-Encoding": "gzip"})
        total += len(urllib.request.urlopen(request, timeout=_WAIT_S).read())
    return total


def _range(url: str) -> Figure:
    times_s = []
    for broker in BROKERS:
        for role in ("leader", "follower"):
            began_s = time.monotonic()
            _get(f"{url}/throttles?broker={broker}&role={role}&span=3600")
            times_s.append(time.monotonic() - began_s)
    return Figure("dashboard_range_s_p95", percentile(times_s, 0.95), "s", len(times_s))


def _lag(folder: Path, last_ms: int, partitions: int) -> list[Figure]:
    """Load the heat map of an hour again and again."""
    lags = make_hour(folder, last_ms, partitions)
    times_s = []
    with _served(folder) as (_, url):
        for _ in range(_LOADS):
            began_s = time.monotonic()
            _get(f"{url}/lag?at={last_ms}")
            times_s.append(time.monotonic() - began_s)
    return [
        Figure("dashboard_lag_200k_s", percentile(times_s, 0.95), "s", len(times_s)),
        Figure("dashboard_lag_sum_s", lags.summed_s, "s", 1),
    ]


def _wrong_numbers(store: DayStore, url: str, views: Path, last_ms: int) -> Figure:
    """Compare figures of every view with the tables, and those of a move at random moments of the day."""
    wrong = compared = 0
    ticks_ms = make_views(views, last_ms)
    with _served(views) as (_, views_url):
        # Of the first tick no alert has ended.
        for tick_ms in ticks_ms[1:]:
            for one in OF_ALL_VIEWS:
                wrong += wrong_figures(views, lambda path: _get(views_url + path), one, tick_ms)
                compared += len(one.columns)
    random_ = random.Random(2611)
    for _ in range(_MOMENTS):
        tick_ms = store.last_ms - random_.randrange(_DAY_MS // TICK_MS) * TICK_MS
        for one in OF_MOVE:
            wrong += wrong_figures(store.path, lambda path: _get(url + path), one, tick_ms)
            compared += len(one.columns)
    return Figure("dashboard_wrong_numbers", wrong, "figures", compared)


def _in_browser(
    executable: str, store: DayStore, url: str, options: DashboardOptions, on_progress: OnProgress
) -> list[Figure]:
    # Only here: other groups need no browser.
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=executable, args=["--no-sandbox"])
        page = browser.new_page()
        views_s = []
        for _ in range(_LOADS):
            began_s = time.monotonic()
            page.goto(f"{url}/moves", wait_until="commit")
            page.wait_for_selector("#content tbody tr")
            page.wait_for_selector("#headline .sentence")
            views_s.append(time.monotonic() - began_s)
        on_progress(f"first view: {percentile(views_s, 0.5):.2f} s")
        updates_s = _updates(page, store, url, options.idle_clients, on_progress)
        longest_ms = _long_task_ms(browser, store.path.parent / "large")
        violations, pages = _axe(page, store.path.parent / "views", on_progress)
        browser.close()
    return [
        Figure("dashboard_first_view_s", percentile(views_s, 0.5), "s", len(views_s)),
        Figure("dashboard_update_s_p95", percentile(updates_s, 0.95), "s", len(updates_s)),
        Figure("dashboard_long_task_ms_max", longest_ms, "ms", 1),
        Figure("dashboard_axe_violations", violations, "findings", pages),
    ]


def _axe(page: Any, views: Path, on_progress: OnProgress) -> tuple[int, int]:
    """Return the number of grave findings, and of the pages that were looked at."""
    violations = pages = 0
    # An acknowledgement needs no cluster; one for each scheme.
    at_ms = int(time.time() * 1000)
    DashboardStore(views).alerts(*(event(one, "firing", at_ms, subject=f"broker {one}") for one in "45"))

    def look(where: str, scheme: str) -> None:
        nonlocal violations, pages
        grave = grave_findings(page)
        violations, pages = violations + len(grave), pages + 1
        for one in grave:
            on_progress(f"axe, {where}, {scheme}: {one}")

    with _served(views, _TOKEN) as (_, url):
        page.goto(f"{url}/login")
        for scheme in ("light", "dark"):
            page.emulate_media(color_scheme=scheme)
            look("/login", scheme)
        page.get_by_label("Token").fill(_TOKEN)
        with page.expect_navigation():
            page.get_by_role("button", name="Open").click()
        for scheme in ("light", "dark"):
            page.emulate_media(color_scheme=scheme)
            for path in (*paths(at_ms, 1, "r0"), *form_paths()):
                page.goto(url + path)
                look(path, scheme)
            page.goto(f"{url}/alerts")
            page.evaluate("document.querySelectorAll('details').forEach((one) => { one.open = true; })")
            with page.expect_navigation():
                page.locator("#content .command", has_text="alerts ack").get_by_role(
                    "button", name="Run…"
                ).first.click()
            page.get_by_role("button", name="Carry it out").wait_for()
            look("before a command", scheme)
            page.get_by_role("button", name="Carry it out").click()
            page.get_by_text("Done.").first.wait_for()
            look("after a command", scheme)
    return violations, pages


def _updates(page: Any, store: DayStore, url: str, idle_clients: int, on_progress: OnProgress) -> list[float]:
    """Return the times from the commit of a tick to its time on the page, in seconds."""
    with ExitStack() as stack:
        for _ in range(idle_clients):
            stack.enter_context(_not_reading(url))
        page.goto(f"{url}/moves")
        took_s = []
        for number in range(1, _UPDATES + 1):
            tick_ms = store.last_ms + number * TICK_MS
            store.append_tick(tick_ms)
            began_s = time.monotonic()
            page.wait_for_selector(f'[data-age-of="{tick_ms}"]', state="attached")
            took_s.append(time.monotonic() - began_s)
    on_progress(f"updates: {percentile(took_s, 0.5):.2f} s in the median")
    return took_s


def _long_task_ms(browser: Any, folder: Path) -> float:
    """Return the longest task of a page while a large table is looked through, milliseconds."""
    large, tick_ms = DashboardStore(folder), int(time.time() * 1000)
    large.throttles(status(1, Role.LEADER, 60, 40, partition()), tick_ms=tick_ms)
    large.replicas(*(new_replica(n, remaining_bytes=n * 7919 % 10**6) for n in range(_LONG_ROWS)), tick_ms=tick_ms)
    with _served(folder) as (_, url):
        page = browser.new_page()
        page.add_init_script(_OBSERVE)
        longest = []
        # Another tick while it is open replaces the rows.
        for address in ("/moves?rows=5000", "/moves?rows=5000&sort=-remaining_bytes", "/moves?rows=5000&page=3"):
            page.goto(url + address)
            for _ in range(20):
                page.mouse.wheel(0, 4000)
                page.wait_for_timeout(50)
            tick_ms += TICK_MS
            large.replicas(*(new_replica(n) for n in range(_LONG_ROWS)), tick_ms=tick_ms)
            large.throttles(status(1, Role.LEADER, 60, 40, partition()), tick_ms=tick_ms)
            page.wait_for_selector(f'[data-age-of="{tick_ms}"]', state="attached")
            longest.append(page.evaluate("window.longest"))
        page.close()
    return float(max(longest))


@contextmanager
def _not_reading(url: str) -> Iterator[None]:
    """Open a stream of changes, and read nothing of it."""
    address = urlsplit(url)
    with socket.create_connection((str(address.hostname), address.port or 80)) as connection:
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        connection.sendall(f"GET /events/moves?rows=5000 HTTP/1.1\r\nHost: {address.netloc}\r\n\r\n".encode())
        yield


def _memory(
    store: DayStore, url: str, process: subprocess.Popen[str], replay_s: float, on_progress: OnProgress
) -> Figure:
    """Return the memory of the server after clients have gone through the day."""
    until_s = time.monotonic() + replay_s

    def replay(client: int) -> None:
        tick_ms = store.last_ms - _DAY_MS + client * 3_600_000
        while time.monotonic() < until_s:
            tick_ms += 60_000
            _get(f"{url}/moves?at={tick_ms}")
            time.sleep(_REPLAY_EVERY_S)

    clients = [threading.Thread(target=replay, args=(number,)) for number in range(_REPLAYING)]
    for client in clients:
        client.start()
    for client in clients:
        client.join()
    resident = psutil.Process(process.pid).memory_info().rss
    on_progress(f"memory after the replay: {resident / 1e6:.0f} MB")
    return Figure("dashboard_memory_bytes", resident, "bytes", 1)

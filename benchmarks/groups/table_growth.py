"""Group ``tables``: size of the tables and speed of queries over a simulated week of ticks.

Two clusters of 2,000 partitions and 12 brokers send ticks. The real jobs write them: gold commits once per tick, bronze
and silver once per six ticks. Maintenance runs after each simulated day.

- A day has only 6 ticks (`--day-ticks`), to save time. The week has 7 days (`--days`).
- The last hour has 60 ticks (`--hour-ticks`). It comes after the last maintenance, so queries read the tables
  as they are just before the next maintenance.
- Silver and gold keep 4 days, bronze 3 days, so all tables reach their retention within the week.
- The same gold rows also go to tables without maintenance, for comparison.

A query reads the last hour of one cluster with ``deltalake``, without Spark. It runs in a process of its own, and the
figure is the time of the whole process. ``dashboard_query_s`` reads the headroom of every broker from gold,
``dashboard_lag_query_s`` the greatest lag of every broker from silver.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any

from benchmarks.fixtures.bench_cluster import OnProgress, failure
from benchmarks.fixtures.synthetic.simulated_week import (
    BROKERS,
    CLUSTERS,
    MAINTAINED,
    PLAIN,
    RETENTION,
    SimulatedTime,
)
from benchmarks.options.fields import AT_LEAST_ONE, option
from benchmarks.results import Figure
from headroom.cli.common.output import print_table

_QUERIES = 5
# Days differ by a few files, because compaction leaves large files as they are.
_MOST_GROWTH = 1.2
Day = dict[str, Any]


@dataclass(frozen=True)
class TablesOptions:
    """Options of the group ``tables``."""

    days: int = option(7, AT_LEAST_ONE, "Simulated days.")
    day_ticks: int = option(6, AT_LEAST_ONE, "Ticks of each day.")
    hour_ticks: int = option(60, AT_LEAST_ONE, "Ticks of the last hour.")


def measure(on_progress: OnProgress, options: TablesOptions) -> list[Figure]:
    """Return sizes of tables and logs at the end, and times of maintenance and of queries.

    Raises:
        HeadroomError: a table outgrew its retention, or a query did not return all rows.
    """
    simulated = SimulatedTime(options.days, options.day_ticks, options.hour_ticks)
    with tempfile.TemporaryDirectory(prefix="headroom-bench-") as folder:
        *days, end = _simulate(Path(folder), simulated, on_progress)
        _print(days)
        require_bounded(days)
        return [*_table_figures(days, end), *_query_figures(Path(folder), simulated, on_progress)]


def _simulate(folder: Path, simulated: SimulatedTime, on_progress: OnProgress) -> list[Day]:
    """Run the simulation, and return its report of each day and of the end."""
    command = [sys.executable, "-m", "benchmarks.fixtures.synthetic.simulated_week", str(folder)]
    command += map(str, (simulated.days, simulated.day_ticks, simulated.hour_ticks))
    days: list[Day] = []
    with (folder / "week.log").open("w+", encoding="utf-8") as log:
        with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=log, text=True) as process:
            assert process.stdout is not None
            for line in process.stdout:
                days.append(json.loads(line))
                on_progress(_describe_day(days[-1]))
        log.seek(0)
        if process.returncode != 0:
            raise failure(f"the week could not be simulated: {log.read().strip()[-300:]}")
    return days


def _describe_day(day: Day) -> str:
    sizes = f"{day['disk_bytes'] / 1e6:.1f} MB on disk, {day['log_bytes'] / 1e6:.1f} MB of it log"
    if "day" not in day:
        return f"the last hour: {sizes}"
    files = sum(one["files_after"] for one in day["done"])
    return f"day {day['day']}: maintained in {_maintain_s(day):.1f} s, {files} files, {sizes}"


def _maintain_s(day: Day) -> float:
    return float(sum(one["took_s"] for one in day["done"]))


def _print(days: Sequence[Day]) -> None:
    """Print the files and bytes of every table after each day."""
    rows = []
    for number, one in enumerate(days[0]["done"]):
        after = [day["done"][number] for day in days]
        rows.append((one["table"], *(f"{day['files_after']} / {day['bytes_after'] / 1e6:.2f} MB" for day in after)))
    print_table("", ("table: files / size", *(f"day {day['day']}" for day in days)), rows)


def require_bounded(days: Sequence[Day]) -> None:
    """Check that no table grows once its retention is reached.

    Raises:
        HeadroomError: a table has more files or bytes at the end than on the first day with its full retention.
    """
    for number, one in enumerate(days[-1]["done"]):
        kept_days = RETENTION.keep_days(one["table"])
        if not 0 < kept_days < len(days):
            continue
        full = days[kept_days - 1]["done"][number]
        for what in ("files_after", "bytes_after"):
            if one[what] > _MOST_GROWTH * full[what]:
                raise failure(f"{one['table']} grew beyond its {kept_days} days: {what} {full[what]} to {one[what]}")


def _table_figures(days: Sequence[Day], end: Day) -> list[Figure]:
    last = days[-1]["done"]
    gold = sum(one["files_after"] for one in last if one["table"].startswith("gold/"))
    count = len(days)
    return [
        Figure("maintain_s", median(_maintain_s(day) for day in days), "s", count),
        Figure("maintain_s_max", max(_maintain_s(day) for day in days), "s", count),
        Figure("tables_files", sum(one["files_after"] for one in last), "files", 1),
        Figure("tables_bytes", sum(one["bytes_after"] for one in last), "bytes", 1),
        Figure("tables_log_bytes", end["log_bytes"], "bytes", 1),
        Figure("tables_log_files", end["log_files"], "files", 1),
        Figure("tables_disk_bytes", end["disk_bytes"], "bytes", 1),
        Figure("gold_files_without_maintenance_ratio", end["plain_files"] / gold, "ratio", 1),
    ]


def _query_figures(folder: Path, simulated: SimulatedTime, on_progress: OnProgress) -> list[Figure]:
    broker_roles = simulated.hour_ticks * BROKERS * 2
    queries = (
        ("dashboard_query_s", MAINTAINED, "headroom", broker_roles),
        ("dashboard_query_without_maintenance_s", PLAIN, "headroom", broker_roles),
        # Every broker is a follower of some partition.
        ("dashboard_lag_query_s", MAINTAINED, "lag", simulated.hour_ticks * BROKERS),
    )
    took: dict[str, list[float]] = {name: [] for name, *_ in queries}
    for _ in range(_QUERIES):
        for name, store, query, rows in queries:
            took[name].append(_query_s(folder / store, query, simulated.last_hour_ms, rows))
    for name, seconds in took.items():
        on_progress(f"{name}: " + ", ".join(f"{s:.2f}" for s in seconds))
    middle = {name: median(seconds) for name, seconds in took.items()}
    ratio = middle["dashboard_query_without_maintenance_s"] / middle["dashboard_query_s"]
    return [
        *(Figure(name, value, "s", _QUERIES) for name, value in middle.items()),
        Figure("dashboard_query_s_max", max(took["dashboard_query_s"]), "s", _QUERIES),
        Figure("dashboard_without_maintenance_ratio", ratio, "ratio", _QUERIES),
    ]


def _query_s(store: Path, name: str, from_ms: int, rows: int) -> float:
    """Return the seconds of a process that runs one query."""
    command = [sys.executable, "-m", "benchmarks.groups.dashboard_query", str(store), name, CLUSTERS[0], str(from_ms)]
    began_s = time.monotonic()
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    took_s = time.monotonic() - began_s
    if done.returncode != 0 or int(done.stdout) != rows:
        raise failure(f"query {name} must give {rows} rows, but printed {(done.stdout or done.stderr).strip()[-300:]}")
    return took_s

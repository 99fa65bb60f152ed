"""Group ``gold``: time until the rows of a tick are in the gold tables, for readers without Spark, with a move running.

1. `gold_first_row_s`: from the start of ``headroom watch`` on three brokers to its first rows in
   `gold/throttle_headroom`, with new tables at each start.
2. `gold_age_s_2k`: from the end of a tick in Kafka to its rows in `gold/throttle_headroom`. The ticks are synthetic: a
   cluster of 2,000 partitions, 60 of which move, at the default interval of ticks. `gold_progress_age_s_2k` is the same
   for `gold/reassignment_progress`. Ticks of the first half minute are left out.

All other settings are the defaults. A reader polls the tables twenty times a second.
"""

from __future__ import annotations

import time
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

from deltalake import DeltaTable
from deltalake.exceptions import TableNotFoundError

from benchmarks.fixtures.bench_cluster import BenchCluster, OnProgress
from benchmarks.fixtures.synthetic.synthetic_producer import PreparedTick, TickProducer, prepare
from benchmarks.fixtures.synthetic.synthetic_ticks import Workload
from benchmarks.fixtures.throttled_move import MovedPartition, ThrottledMove
from benchmarks.groups.scale.group import START_S, alert_path_started
from benchmarks.options.fields import AT_LEAST_ONE, option
from benchmarks.results import Figure, percentile
from headroom.cli.common.watch_process import WatchProcess
from headroom.schemas.config import CollectSettings
from headroom.schemas.tables import REASSIGNMENT_PROGRESS, THROTTLE_HEADROOM, Table
from headroom.streaming.delta import query as delta_query

# In-sync use is 2 MB/s and the required rate is 4 MB/s, so the move never ends under 3 MB/s.
_PARTITION = MovedPartition((1, 2), (1, 3), 2e6, 40_000_000)
_THROTTLE_BYTES_PER_S = 3e6
_SIZE, _MOVING_RATIO = 2000, 0.03
_WARM_TICKS = 4
_POLL_S = 0.05
_DEADLINE_S = 180.0


class TicksOfTable:
    """Ticks in a table, with the times at which a reader without Spark first saw them.

    Args:
        store: folder of the tables.
        table: table.

    Attributes:
        seen_s: monotonic seconds by ``tick_ms``.
    """

    def __init__(self, store: str, table: Table) -> None:
        self.seen_s: dict[int, float] = {}
        self._path = f"{store}/{table.path}"
        self._opened: DeltaTable | None = None
        self._version = -1

    def poll(self) -> None:
        """Read the ticks, if the table has changed."""
        try:
            self._opened = self._opened or DeltaTable(self._path)
        except TableNotFoundError:
            return
        self._opened.update_incremental()
        if self._opened.version() == self._version:
            return
        self._version = self._opened.version()
        rows = delta_query.rows({"data": self._opened}, "SELECT DISTINCT tick_ms FROM data")
        now_s = time.monotonic()
        for row in rows:
            self.seen_s.setdefault(row["tick_ms"], now_s)


@dataclass(frozen=True)
class GoldOptions:
    """Options of the group ``gold``."""

    starts: int = option(3, AT_LEAST_ONE, "Starts of a watch.")
    ticks: int = option(14, AT_LEAST_ONE, "Measured ticks.")


def measure(on_progress: OnProgress, options: GoldOptions) -> list[Figure]:
    """Return the times over starts and over ticks.

    Raises:
        HeadroomError: rows did not come in time.
    """
    starts, ticks = options.starts, options.ticks
    first_s = _first_rows(starts, on_progress)
    ages = _ages(ticks, on_progress)
    figures = [Figure("gold_first_row_s", percentile(first_s, 0.5), "s", starts)]
    figures.append(Figure("gold_first_row_s_max", max(first_s), "s", starts))
    for name, table in (("gold_age_s", THROTTLE_HEADROOM), ("gold_progress_age_s", REASSIGNMENT_PROGRESS)):
        figures += [Figure(f"{name}_{at}_2k", percentile(ages[table], p), "s", ticks) for at, p in _QUANTILES.items()]
    return figures


_QUANTILES = {"median": 0.5, "p95": 0.95}


def _first_rows(count: int, on_progress: OnProgress) -> list[float]:
    """Return the seconds from each start of a watch to its first gold rows."""
    with BenchCluster(3) as bench, ThrottledMove(bench, "gold", [_PARTITION]) as move:
        bench.configure(CollectSettings().interval_s)
        move.start_move(_THROTTLE_BYTES_PER_S)
        return [_first_row_s(bench, bench.folder / f"store-{number}", on_progress) for number in range(count)]


def _first_row_s(bench: BenchCluster, store: Path, on_progress: OnProgress) -> float:
    ticks = TicksOfTable(str(store), THROTTLE_HEADROOM)
    with bench.watch(store) as watch:
        _wait_for(watch, [ticks], 1)
        took_s = min(ticks.seen_s.values()) - watch.started_s
    on_progress(f"first rows {took_s:.1f} s after the start")
    return took_s


def _ages(count: int, on_progress: OnProgress) -> dict[Table, list[float]]:
    """Return the seconds from the end of each measured tick to its rows, by table."""
    interval_s = CollectSettings().interval_s
    with BenchCluster(1) as bench:
        bench.configure(interval_s)
        prepared = _prepare_ticks(bench, _WARM_TICKS + count, interval_s)
        tables = {table: TicksOfTable(bench.store, table) for table in (THROTTLE_HEADROOM, REASSIGNMENT_PROGRESS)}
        # The producer creates the topic, which must exist when the watch starts.
        with (
            closing(TickProducer(bench.settings, bench.settings.cluster.name)) as producer,
            bench.watch(options=["--without-collector"]) as watch,
        ):
            watch.wait(lambda: alert_path_started(bench), START_S, "the alert path to start")
            began_s = time.monotonic()
            for number, tick in enumerate(prepared):
                while time.monotonic() < began_s + number * interval_s:
                    _poll(watch, list(tables.values()))
                producer.send(tick)
            _wait_for(watch, list(tables.values()), len(prepared))
        measured = [tick.tick_ms for tick in prepared[_WARM_TICKS:]]
        ages = {table: [t.seen_s[ms] - producer.ended_s[ms] for ms in measured] for table, t in tables.items()}
    for table, of_table in ages.items():
        on_progress(f"{table.path}: {', '.join(f'{age:.1f}' for age in of_table)} s")
    return ages


def _prepare_ticks(bench: BenchCluster, count: int, interval_s: float) -> list[PreparedTick]:
    """Return ticks of which the first is of now, after the start of a watch."""
    workload = Workload(
        brokers=6,
        topics=_SIZE // 20,
        partitions=_SIZE,
        moving_ratio=_MOVING_RATIO,
        interval_s=interval_s,
        cluster=bench.settings.cluster.name,
        begin_ms=int(time.time() * 1000),
    )
    return prepare(workload, count)


def _poll(watch: WatchProcess, tables: list[TicksOfTable]) -> None:
    watch.require_running()
    for table in tables:
        table.poll()
    time.sleep(_POLL_S)


def _wait_for(watch: WatchProcess, tables: list[TicksOfTable], count: int) -> None:
    """Wait until each table has so many ticks."""

    def have_come() -> bool:
        for table in tables:
            table.poll()
        return all(len(table.seen_s) >= count for table in tables)

    watch.wait(have_come, _DEADLINE_S, "rows in the gold tables", poll_s=_POLL_S)

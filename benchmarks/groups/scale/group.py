"""Group ``scale``: the whole pipeline on synthetic ticks of growing clusters, compared with Spark and Delta alone.

Each size runs on a real broker with the real ``headroom watch``, its history process included:

1. Some ticks are sent at once. Measured is the time until all of them are evaluated and recorded.
2. Ticks are sent at their interval. Measured is the time from each tick to its printed verdict and to its rows in the
   tables (silver and gold: the history path; leader imbalance; of the first tick of a minute the broker loads).
3. The ceiling is measured: Spark reads the same messages with ``from_json`` and appends them to one table. A second
   ceiling (`ceiling_rows`) decodes the messages into the same rows and appends them to one table per kind.

Gold, bronze and silver commit every second, so that the figures contain work and little waiting.
"""

from __future__ import annotations

import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from statistics import median

from benchmarks.fixtures.bench_cluster import BenchCluster, OnProgress, failure
from benchmarks.fixtures.processes import resident_bytes
from benchmarks.fixtures.synthetic.synthetic_producer import PreparedTick, TickProducer, prepare
from benchmarks.fixtures.synthetic.synthetic_ticks import BrokerRole, LeaderCounts, Workload
from benchmarks.options.fields import PARTITIONS, CommaSeparated, heap_option, option
from benchmarks.results import Figure
from headroom.cli.common.watch_process import VerdictProcess, WatchProcess
from headroom.schemas.config import SparkSettings
from headroom.schemas.tables import BROKER_LOAD, LEADER_IMBALANCE, MESSAGES, THROTTLE_HEADROOM, Table
from headroom.streaming.delta.query_table import query

_SIZES = (2000, 20_000, 100_000, 200_000)
# On two busy cores an executor is up after two minutes, and the alert path reads one minute later.
START_S = 300.0
_DEADLINE_S = 600.0
# Reading the tables takes CPU time from the pipeline.
_POLL_S = 0.5


@dataclass(frozen=True)
class Schedule:
    """Number of ticks of a run.

    Attributes:
        warm: ticks before the measured ones. Many, because a JVM takes minutes to compile its code. The ceiling counts
            its second pass for the same reason.
        at_once: measured ticks that are sent at once.
        paced: measured ticks that are sent at their interval.
        interval_s: interval of ticks, seconds.
    """

    warm: int = 30
    at_once: int = 10
    paced: int = 6
    interval_s: float = 10.0

    @property
    def every(self) -> int:
        """Return the number of all ticks."""
        return self.warm + self.at_once + self.paced


@dataclass
class Run:
    """Results of one size, in seconds and bytes."""

    size: int
    schedule: Schedule
    rows_per_tick: int = 0
    sent_bytes_per_tick: int = 0
    wire_bytes_per_tick: float = 0
    delta_bytes_per_tick: float = 0
    at_once_s_per_tick: float = 0
    alert_s: list[float] = field(default_factory=list)
    history_s: list[float] = field(default_factory=list)
    balance_s: list[float] = field(default_factory=list)
    load_s: list[float] = field(default_factory=list)
    switch_s: float | None = None
    peak_bytes: int = 0
    ceiling_s_per_tick: float = 0
    ceiling_rows_s_per_tick: float = 0


@dataclass(frozen=True)
class ScaleOptions:
    """Options of the group ``scale``."""

    partitions: tuple[int, ...] = option(_SIZES, CommaSeparated(PARTITIONS), "Sizes of clusters, comma-separated.")
    driver_memory: str = heap_option("2g")


def measure(on_progress: OnProgress, options: ScaleOptions) -> list[Figure]:
    """Return the figures of every size.

    Raises:
        HeadroomError: ticks were not evaluated or recorded in time, or a verdict was wrong.
    """
    runs = [measured(size, Schedule(), on_progress, options.driver_memory) for size in options.partitions]
    return [figure for run in runs for figure in figures_of(run)]


def figures_of(run: Run) -> list[Figure]:
    """Return the figures of a size."""
    name = f"{run.size // 1000}k"
    every, at_once = run.schedule.every, run.schedule.at_once
    figures = [
        Figure(f"sustained_interval_s_{name}", run.at_once_s_per_tick, "s", at_once),
        Figure(f"ceiling_s_{name}", run.ceiling_s_per_tick, "s", every),
        Figure(f"ceiling_ratio_{name}", run.ceiling_s_per_tick / run.at_once_s_per_tick, "ratio", at_once),
        Figure(f"ceiling_rows_s_{name}", run.ceiling_rows_s_per_tick, "s", every),
        Figure(f"ceiling_rows_ratio_{name}", run.ceiling_rows_s_per_tick / run.at_once_s_per_tick, "ratio", at_once),
        Figure(f"rows_per_s_{name}", run.rows_per_tick / run.at_once_s_per_tick, "rows/s", at_once),
        Figure(f"history_path_s_{name}", median(run.history_s), "s", len(run.history_s)),
        Figure(f"balance_path_s_{name}", median(run.balance_s), "s", len(run.balance_s)),
        Figure(f"history_path_growth_s_{name}", run.history_s[-1] - run.history_s[0], "s", len(run.history_s)),
        Figure(f"peak_memory_bytes_{name}", run.peak_bytes, "bytes", 1),
        Figure(f"message_bytes_per_tick_{name}", run.sent_bytes_per_tick, "bytes", every),
        Figure(f"wire_bytes_per_tick_{name}", run.wire_bytes_per_tick, "bytes", every),
        Figure(f"delta_bytes_per_tick_{name}", run.delta_bytes_per_tick, "bytes", every),
    ]
    if run.alert_s:
        figures.append(Figure(f"alert_path_s_{name}", median(run.alert_s), "s", len(run.alert_s)))
    if run.load_s:
        figures.append(Figure(f"broker_load_path_s_{name}", median(run.load_s), "s", len(run.load_s)))
    if run.switch_s is not None:
        figures.append(Figure(f"synthetic_switch_to_alert_s_{name}", run.switch_s, "s", 1))
    return figures


def measured(size: int, schedule: Schedule, on_progress: OnProgress, driver_memory: str) -> Run:
    """Measure a cluster with a number of partitions.

    Args:
        size: number of partitions.
        schedule: number of ticks.
        on_progress: prints the progress.
        driver_memory: limit of both heaps.

    Raises:
        HeadroomError: ticks were not evaluated or recorded in time, or a verdict was wrong.
    """
    run = Run(size, schedule)
    with BenchCluster(1) as bench:
        often = {"record_trigger_s": 1.0, "gold_trigger_s": 1.0}
        # The broker has hardly any of the partitions of the ticks, and would pass for a small cluster.
        small = SparkSettings().small_cluster_partitions
        spark = {**often, "small_cluster_partitions": small if size <= small else 0}
        bench.configure(schedule.interval_s, {"driver_memory": driver_memory, **spark})
        ticks = prepared(size, bench, schedule.every, now=schedule.warm, interval_s=schedule.interval_s)
        run.rows_per_tick = round(sum(tick.rows for tick in ticks) / len(ticks))
        run.sent_bytes_per_tick = round(sum(tick.size_bytes for tick in ticks) / len(ticks))
        on_progress(f"{size} partitions: {run.rows_per_tick} rows, {run.sent_bytes_per_tick / 1e6:.1f} MB a tick")
        # The producer creates the topic, which must exist when the watch starts.
        with (
            closing(TickProducer(bench.settings, bench.settings.cluster.name)) as producer,
            bench.watch(options=["--without-collector"]) as watch,
            PeakMemory(watch) as peak,
        ):
            _measure_watch(bench, watch, producer, ticks, run, on_progress)
        run.peak_bytes = peak.bytes
        require_truth(bench, ticks)
        run.wire_bytes_per_tick = _topic_bytes(bench) / len(ticks)
        run.delta_bytes_per_tick = _folder_bytes(Path(bench.store)) / len(ticks)
        run.ceiling_s_per_tick, run.ceiling_rows_s_per_tick = (s / len(ticks) for s in _ceiling_s(bench))
    on_progress(
        f"{size} partitions: {run.at_once_s_per_tick:.2f} s a tick, ceiling {run.ceiling_s_per_tick:.2f} s "
        f"({run.ceiling_rows_s_per_tick:.2f} s for the rows), "
        f"alert path {median(run.alert_s or [0]):.2f} s, {run.peak_bytes / 1e6:.0f} MB"
    )
    return run


def workload(size: int, bench: BenchCluster, begin_ms: int, interval_s: float = Schedule.interval_s) -> Workload:
    """Return the workload of a size, with the cluster name of the benchmark.

    Args:
        size: number of partitions.
        bench: cluster that gets the ticks.
        begin_ms: time of the first tick, epoch milliseconds.
        interval_s: interval of ticks, seconds.
    """
    return Workload(
        brokers=max(6, min(100, size // 2000)),
        topics=max(10, size // 100),
        partitions=size,
        # Frequent changes, because the watch prints only changed verdicts.
        throttle_changes_per_minute=30,
        interval_s=interval_s,
        cluster=bench.settings.cluster.name,
        begin_ms=begin_ms,
    )


def prepared(
    size: int, bench: BenchCluster, count: int, now: int, interval_s: float = Schedule.interval_s
) -> Sequence[PreparedTick]:
    """Return the ticks of a run. The tick ``now`` has the time at which the preparation ends.

    Headroom accepts only ticks near the time of their record, and large ticks take minutes to prepare.

    Args:
        size: number of partitions.
        bench: cluster that gets the ticks.
        count: number of ticks.
        now: index of the tick with the current time.
        interval_s: interval of ticks, seconds.
    """
    processes = os.cpu_count() or 1
    began_s = time.monotonic()
    prepare(workload(size, bench, 0, interval_s), 1)
    # One tick with the creation of the cluster stands for one tick each of all processes, which disturb each other.
    preparation_s = (time.monotonic() - began_s) * (count / processes + 1)
    begin_ms = int((time.time() + preparation_s - now * interval_s) * 1000)
    return prepare(workload(size, bench, begin_ms, interval_s), count, processes)


def _measure_watch(
    bench: BenchCluster,
    watch: WatchProcess,
    producer: TickProducer,
    ticks: Sequence[PreparedTick],
    run: Run,
    on_progress: OnProgress,
) -> None:
    warm, first_paced = run.schedule.warm, run.schedule.warm + run.schedule.at_once
    run.at_once_s_per_tick = at_once_s_per_tick(bench, watch, producer, ticks[:first_paced], warm, on_progress)
    _measure_paced(bench, watch, producer, ticks[first_paced:], run)


def at_once_s_per_tick(
    bench: BenchCluster,
    process: VerdictProcess,
    producer: TickProducer,
    ticks: Sequence[PreparedTick],
    warm: int,
    on_progress: OnProgress,
) -> float:
    """Return the seconds per tick until many ticks sent at once are evaluated and recorded.

    Args:
        bench: cluster that gets the ticks.
        process: process that evaluates and records them.
        producer: producer of the ticks.
        ticks: ticks to send.
        warm: number of ticks before the measured ones.
        on_progress: prints the progress.

    Raises:
        HeadroomError: ticks were not evaluated or recorded in time.
    """
    process.wait(lambda: alert_path_started(bench), START_S, "the alert path to start")
    _send_all(producer, ticks[:warm])
    _wait_recorded(bench, process, ticks[:warm])
    counted = ticks[warm:]
    began_s = time.monotonic()
    _send_all(producer, counted)
    sent_s = time.monotonic() - began_s
    _wait_recorded(bench, process, counted)
    took_s = (time.monotonic() - began_s) / len(counted)
    on_progress(f"{len(counted)} ticks at once: sent in {sent_s:.1f} s, {took_s:.2f} s each until recorded")
    return took_s


def alert_path_started(bench: BenchCluster) -> bool:
    """Return whether the alert path has started. It skips all records before its start."""
    first = Path(bench.settings.store.checkpoints()) / "alert_path" / "sources" / "0" / "0"
    return first.is_file()


def _send_all(producer: TickProducer, ticks: Sequence[PreparedTick]) -> None:
    for tick in ticks:
        producer.send(tick)


def _measure_paced(
    bench: BenchCluster, watch: WatchProcess, producer: TickProducer, ticks: Sequence[PreparedTick], run: Run
) -> None:
    began_s = time.monotonic()
    recorded: dict[int, float] = {}
    balanced: dict[int, float] = {}
    loaded: dict[int, float] = {}
    noted = (
        (partial(_recorded_ticks, bench), recorded),
        (partial(_ticks_in, bench, LEADER_IMBALANCE), balanced),
        (partial(_ticks_in, bench, BROKER_LOAD), loaded),
    )
    for number, tick in enumerate(ticks):
        while time.monotonic() < began_s + number * run.schedule.interval_s:
            _note_new_ticks(noted)
            time.sleep(_POLL_S)
        producer.send(tick)
    wanted = {tick.tick_ms for tick in ticks}

    def all_recorded() -> bool:
        _note_new_ticks(noted)
        return wanted <= recorded.keys()

    watch.wait(all_recorded, _DEADLINE_S, "the paced ticks to be recorded", poll_s=_POLL_S)
    run.balance_s = [balanced[tick_ms] - producer.ended_s[tick_ms] for tick_ms in sorted(wanted)]
    # Only the first tick of a minute has broker loads.
    run.load_s = [loaded[tick_ms] - producer.ended_s[tick_ms] for tick_ms in sorted(wanted & loaded.keys())]
    run.history_s = [recorded[tick_ms] - producer.ended_s[tick_ms] for tick_ms in sorted(wanted)]
    printed = {line.fields["tick_ms"]: line.at_s for line in watch.lines if line.fields["type"] == "verdicts"}
    run.alert_s = [printed[tick_ms] - producer.ended_s[tick_ms] for tick_ms in sorted(wanted & printed.keys())]


def _note_new_ticks(noted: Sequence[tuple[Callable[[], set[int]], dict[int, float]]]) -> None:
    """Note the time for new ticks.

    Args:
        noted: functions that read ticks, each with the times of those that were seen.
    """
    now_s = time.monotonic()
    for read, times in noted:
        for tick_ms in read():
            times.setdefault(tick_ms, now_s)


def _recorded_ticks(bench: BenchCluster) -> set[int]:
    """Return the ticks that are in silver and in gold."""
    ends = query(bench.store, MESSAGES.path, "SELECT tick_ms FROM data WHERE kind = 'tick_end'") or []
    gold = _ticks_in(bench, THROTTLE_HEADROOM) & _ticks_in(bench, LEADER_IMBALANCE)
    return {row["tick_ms"] for row in ends} & gold


def _ticks_in(bench: BenchCluster, table: Table) -> set[int]:
    rows = query(bench.store, table.path, "SELECT DISTINCT tick_ms FROM data") or []
    return {row["tick_ms"] for row in rows}


def _wait_recorded(bench: BenchCluster, process: VerdictProcess, ticks: Sequence[PreparedTick]) -> None:
    wanted = {tick.tick_ms for tick in ticks}
    process.wait(
        lambda: wanted <= _recorded_ticks(bench), _DEADLINE_S, f"{len(wanted)} ticks to be recorded", poll_s=_POLL_S
    )


def require_truth(bench: BenchCluster, ticks: Sequence[PreparedTick]) -> None:
    """Check all verdicts and leader counts in gold.

    Raises:
        HeadroomError: one is wrong; the text has the first difference.
    """
    _require_balance(bench, ticks)
    rows = query(bench.store, THROTTLE_HEADROOM.path, "SELECT tick_ms, broker, role, verdict FROM data") or []
    verdicts: dict[int, dict[BrokerRole, str]] = {}
    for row in rows:
        verdicts.setdefault(row["tick_ms"], {})[(row["broker"], row["role"])] = row["verdict"]
    for number, tick in enumerate(ticks):
        wrong = [
            broker_role
            for broker_role, verdict in tick.truth.items()
            if verdicts.get(tick.tick_ms, {}).get(broker_role) != verdict
        ]
        if wrong:
            broker, role = wrong[0]
            evaluated = verdicts.get(tick.tick_ms, {}).get(wrong[0])
            true = tick.truth[wrong[0]]
            raise failure(
                f"tick {number}: {len(wrong)} verdicts are wrong: broker {broker} as {role}: {evaluated}, not {true}"
            )


def _require_balance(bench: BenchCluster, ticks: Sequence[PreparedTick]) -> None:
    names = "preferred_partitions, non_preferred_partitions, waiting_for_move"
    rows = query(bench.store, LEADER_IMBALANCE.path, f"SELECT tick_ms, broker, {names} FROM data") or []
    counts: dict[int, dict[int, LeaderCounts]] = {}
    for row in rows:
        counts.setdefault(row["tick_ms"], {})[row["broker"]] = LeaderCounts(*(row[name] for name in names.split(", ")))
    for number, tick in enumerate(ticks):
        if counts.get(tick.tick_ms) != tick.leader_counts:
            raise failure(
                f"tick {number}: leader counts are wrong: {counts.get(tick.tick_ms)}, not {tick.leader_counts}"
            )


def _topic_bytes(bench: BenchCluster) -> int:
    """Return the size of the ticks topic on the broker's disk, which equals the size on the wire."""
    return sum(
        partition["partition_size"]
        for broker in bench.admin.describe_log_dirs()
        for folder in broker["log_dirs"]
        for topic in folder["topics"]
        if topic["name"] == bench.settings.ticks.topic
        for partition in topic["partitions"]
    )


def _folder_bytes(folder: Path) -> int:
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file() and "_checkpoints" not in path.parts)


def _ceiling_s(bench: BenchCluster) -> tuple[float, float]:
    """Return the seconds of Spark and Delta alone for all ticks, as messages and as rows, from a separate process."""
    module = "benchmarks.groups.scale.spark_baseline"
    command = [sys.executable, "-m", module, str(bench.config), str(bench.folder / "ceiling")]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise failure(f"the ceiling could not be measured: {done.stderr.strip()[-300:]}")
    messages_s, rows_s = (float(line) for line in done.stdout.strip().splitlines()[-2:])
    return messages_s, rows_s


class PeakMemory:
    """Greatest resident memory of a watch with all its processes, sampled twice a second."""

    def __init__(self, watch: WatchProcess) -> None:
        self.bytes = 0
        self._watch = watch
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._sample, name="peak-memory", daemon=True)

    def __enter__(self) -> PeakMemory:
        """Start sampling."""
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        """Stop sampling."""
        self._stop.set()
        self._thread.join()

    def _sample(self) -> None:
        while not self._stop.wait(0.5):
            self.bytes = max(self.bytes, sum(resident_bytes(self._watch.processes()).values()))

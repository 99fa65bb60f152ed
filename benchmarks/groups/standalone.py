"""Group ``standalone``: the same ticks with local Spark and with a standalone Spark cluster.

One process runs all jobs in both cases: with ``local[2]``, and with ``spark-submit`` and two workers of one core each.
Both cases use the cores of this machine. In the second case master, workers, executors and driver share them. The ratio
is the cost of running tasks outside the driver's process; it does not show the gain from more machines.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import ExitStack, closing
from dataclasses import dataclass
from functools import partial

from benchmarks.fixtures.bench_cluster import BenchCluster, OnProgress
from benchmarks.fixtures.spark_standalone import SparkCluster, SubmittedJobs, packaged
from benchmarks.fixtures.synthetic.synthetic_producer import TickProducer
from benchmarks.groups.scale.group import START_S, at_once_s_per_tick, prepared, require_truth
from benchmarks.options.fields import PARTITIONS, heap_option, option
from benchmarks.results import Figure
from headroom.cli.common.child_process import headroom_command
from headroom.cli.common.watch_process import VerdictProcess

_WORKERS = 2
_WARM, _AT_ONCE = 2, 10
_EXECUTOR_MEMORY = "1g"
# Short, so that the time contains work and little waiting for the next batch.
_TRIGGER_S = 1.0

Start = Callable[[BenchCluster, ExitStack], VerdictProcess]


@dataclass(frozen=True)
class StandaloneOptions:
    """Options of the group ``standalone``."""

    partitions: int = option(20_000, PARTITIONS, "Partitions of the cluster.")
    driver_memory: str = heap_option("2g")


def measure(on_progress: OnProgress, options: StandaloneOptions) -> list[Figure]:
    """Return seconds per tick in both cases and their ratio.

    Raises:
        HeadroomError: ticks were not evaluated or recorded in time, a verdict was wrong, or an executor is missing.
    """
    local_s = _s_per_tick("local[2]", _local, options, on_progress)
    submitted = partial(_submit, options.driver_memory)
    standalone_s = _s_per_tick(f"{_WORKERS} workers", submitted, options, on_progress)
    return [
        Figure("local_s_per_tick", local_s, "s", _AT_ONCE),
        Figure("standalone_s_per_tick", standalone_s, "s", _AT_ONCE),
        Figure("standalone_over_local_ratio", standalone_s / local_s, "ratio", _AT_ONCE),
        Figure("standalone_partitions", options.partitions, "partitions", 1),
    ]


def _s_per_tick(name: str, start: Start, options: StandaloneOptions, on_progress: OnProgress) -> float:
    on_progress(f"{options.partitions} partitions, {name}")
    often = {"record_trigger_s": _TRIGGER_S, "gold_trigger_s": _TRIGGER_S}
    with BenchCluster(1) as bench, ExitStack() as running:
        bench.configure(1.0, {"driver_memory": options.driver_memory, **often})
        ticks = prepared(options.partitions, bench, _WARM + _AT_ONCE, now=0)
        # The producer creates the topic, which must exist when the jobs start.
        producer = running.enter_context(closing(TickProducer(bench.settings, bench.settings.cluster.name)))
        jobs = start(bench, running)
        took_s = at_once_s_per_tick(bench, jobs, producer, ticks, _WARM, on_progress)
        require_truth(bench, ticks)
    return took_s


def _arguments(bench: BenchCluster) -> list[str]:
    return ["run", "watch", "record", "--config", str(bench.config), "--format", "json"]


def _local(bench: BenchCluster, running: ExitStack) -> VerdictProcess:
    command = headroom_command(*_arguments(bench), "--with-parent")
    master = {"HEADROOM_SPARK__MASTER": "local[2]"}
    return running.enter_context(VerdictProcess("headroom run", command, bench.folder / "local.log", master))


def _submit(driver_memory: str, bench: BenchCluster, running: ExitStack) -> VerdictProcess:
    cluster = running.enter_context(SparkCluster(bench.folder / "spark", _WORKERS, _EXECUTOR_MEMORY))
    package = packaged(bench.folder / "package")
    memory = ("--driver-memory", driver_memory, "--executor-memory", _EXECUTOR_MEMORY)
    log = bench.folder / "submitted.log"
    jobs = running.enter_context(SubmittedJobs(cluster.master, package, _arguments(bench), log, memory))
    jobs.wait(lambda: cluster.cores_in_use() == _WORKERS, START_S, f"{_WORKERS} executors")
    return jobs

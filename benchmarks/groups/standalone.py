"""Group ``standalone``: the same ticks through Spark on one machine and through a standalone Spark cluster.

One process runs all jobs in either case: with ``local[2]``, and by ``spark-submit`` with its tasks on two workers of
one core each. Both have the cores of this machine, which in the second case master, workers, executors and driver
share: the ratio is what it costs to leave the driver's process, not what more machines give.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from contextlib import ExitStack, closing

from benchmarks.fixtures.bench_cluster import Ground, Say
from benchmarks.fixtures.spark_standalone import SparkCluster, SubmittedJobs, packaged
from benchmarks.fixtures.synthetic.synthetic_producer import Feed
from benchmarks.groups.scale.group import START_S, at_once_s_per_tick, prepared, require_truth
from benchmarks.results import Figure
from cli.common.child_process import headroom_command
from cli.common.watch_process import VerdictProcess

_SIZE = "20000"
_WORKERS = 2
_WARM, _AT_ONCE = 2, 10
_MEMORY = os.environ.get("BENCH_DRIVER_MEMORY", "2g")
_EXECUTOR_MEMORY = "1g"
# Short, so that the time is that of the work and not that of waiting for the next batch.
_TRIGGER_S = 1.0

Start = Callable[[Ground, ExitStack], VerdictProcess]


def measure(say: Say) -> list[Figure]:
    """Return the seconds a tick takes in both, and their ratio, for the first size of BENCH_PARTITIONS (20000).

    Raises:
        HeadroomError: ticks were not judged or recorded in time, a verdict was not the true one, or an executor is
            missing.
    """
    size = int(os.environ.get("BENCH_PARTITIONS", _SIZE).split(",")[0])
    local_s = _s_per_tick("local[2]", size, _local, say)
    standalone_s = _s_per_tick(f"{_WORKERS} workers", size, _submitted, say)
    return [
        Figure("local_s_per_tick", local_s, "s", _AT_ONCE),
        Figure("standalone_s_per_tick", standalone_s, "s", _AT_ONCE),
        Figure("standalone_over_local_ratio", standalone_s / local_s, "ratio", _AT_ONCE),
        Figure("standalone_partitions", size, "partitions", 1),
    ]


def _s_per_tick(name: str, size: int, start: Start, say: Say) -> float:
    say(f"{size} partitions, {name}")
    with Ground(1) as ground, ExitStack() as running:
        ground.configure(1.0, {"driver_memory": _MEMORY, "record_trigger_s": _TRIGGER_S, "gold_trigger_s": _TRIGGER_S})
        ticks = prepared(size, ground, _WARM + _AT_ONCE, now=0)
        # The feed makes the topic, which has to be there when the jobs start.
        feed = running.enter_context(closing(Feed(ground.settings, ground.settings.cluster.name)))
        jobs = start(ground, running)
        took_s = at_once_s_per_tick(ground, jobs, feed, ticks, _WARM, say)
        require_truth(ground, ticks)
    return took_s


def _arguments(ground: Ground) -> list[str]:
    return ["run", "watch", "record", "--config", str(ground.config), "--format", "json"]


def _local(ground: Ground, running: ExitStack) -> VerdictProcess:
    command = headroom_command(*_arguments(ground), "--with-parent")
    master = {"HEADROOM_SPARK__MASTER": "local[2]"}
    return running.enter_context(VerdictProcess("headroom run", command, ground.folder / "local.log", master))


def _submitted(ground: Ground, running: ExitStack) -> VerdictProcess:
    cluster = running.enter_context(SparkCluster(ground.folder / "spark", _WORKERS, _EXECUTOR_MEMORY))
    package = packaged(ground.folder / "package")
    memory = ("--driver-memory", _MEMORY, "--executor-memory", _EXECUTOR_MEMORY)
    log = ground.folder / "submitted.log"
    jobs = running.enter_context(SubmittedJobs(cluster.master, package, _arguments(ground), log, memory))
    jobs.wait(lambda: cluster.cores_in_use() == _WORKERS, START_S, f"{_WORKERS} executors")
    return jobs

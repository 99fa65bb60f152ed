"""Moves of the page whose processes are all killed at a random moment, and that go on then."""

from __future__ import annotations

import random
import time
from typing import NamedTuple

from benchmarks.fixtures.bench_cluster import BenchCluster, OnProgress
from benchmarks.groups.acting.served_page import ServedPage
from benchmarks.groups.acting.tasks import MB, write_records
from benchmarks.groups.reassign.throttle_state import throttles_in_force

_TOPIC, _PARTITIONS, _BYTES = "killed", 4, 6 * MB
_THROTTLE = "2MB"
# A run of such a move takes some 15 s after some seconds in which it begins.
_LATEST_S = 14.0
_MOST_TIMES = 4
# Fixed, so that every run of the benchmark kills at the same times.
_SEED = 40


class KilledMove(NamedTuple):
    """What was left of a move.

    Attributes:
        processes: how many processes were killed.
        unfinished: whether it was not done in the end, or its partitions still moved.
        left: rates and entries of lists that were left.
    """

    processes: int
    unfinished: bool
    left: int


class KilledMoves:
    """Moves a topic to and fro.

    Args:
        bench: the cluster.
        served: its page.
    """

    def __init__(self, bench: BenchCluster, served: ServedPage) -> None:
        self._bench = bench
        self._served = served
        self._draw = random.Random(_SEED)
        replicas = {n: [1 + n % 2, 3 + n % 2] for n in range(_PARTITIONS)}
        bench.admin.create_topics({_TOPIC: {"assignments": replicas}}, wait_for_metadata=True)
        write_records(bench, _TOPIC, _PARTITIONS, _BYTES)

    def record(self, number: int, on_progress: OnProgress) -> KilledMove:
        """Begin a move, kill all that carries it out, serve the page again, and let it go on.

        Raises:
            HeadroomError: it could not be begun, or did not end.
        """
        drained = 3 + number % 2
        values = {"topics": _TOPIC, "drain": str(drained), "throttle": _THROTTLE}
        action = self._served.post("/new/move", {"cluster": self._served.cluster, "values": values})
        self._served.await_progress(action, "shown")
        self._served.post(f"{action}/change", {})
        after_s = self._draw.uniform(0, _LATEST_S)
        time.sleep(after_s)
        processes = self._served.kill_all()
        self._served.start()
        progress, times = self._served.await_progress(action), 0
        while progress != "done" and times < _MOST_TIMES:
            self._served.post(f"{action}/change", {})
            progress, times = self._served.await_progress(action), times + 1
        left = throttles_in_force(self._bench.settings)
        unfinished = progress != "done" or bool(self._bench.admin.list_partition_reassignments())
        on_progress(
            f"move {number + 1}: {processes} processes killed after {after_s:.1f} s; {progress} after going on "
            f"{times} times, {len(left)} throttles left"
        )
        return KilledMove(processes, unfinished, len(left))

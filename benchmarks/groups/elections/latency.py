"""Produce latency during elections after a restart: in Headroom's batches, and with one request for all partitions.

Both ways take turns on the same brokers under the same load, each after its own restart. The producer waits for all
in-sync replicas (``acks=all``). The latency is the time from ``send`` to the acknowledgement.
"""

from __future__ import annotations

import subprocess
import sys
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from types import TracebackType
from typing import Any

from kafka import KafkaAdminClient, KafkaProducer
from kafka.errors import KafkaError

from benchmarks.fixtures.bench_cluster import BenchCluster, OnProgress, await_true, failure
from benchmarks.fixtures.preferred_leaders import PREFERRED
from benchmarks.results import CHECKOUT, Figure, percentile

_TOPIC = "elections"
_PARTITIONS = 400
BROKERS = 4
_REPLICAS = 3
_RECORD_BYTES = 200
_RECORDS_PER_S = 400
_STEP_S = 0.05
_POLL_S = 0.1
# Covers the time from the first to the last moved leader; the defaults take about 20 s for 100 partitions.
_WINDOW_S = 40.0
# Records sent just before or after their leader moves wait for the move too.
_BEFORE_S, _AFTER_S = 0.5, 2.0
# Time for the latencies to settle after the restart of the broker.
_STEADY_S = 5.0
# log.index.interval.bytes is 4096: the next batch after that many bytes gets an index entry.
_INDEX_BYTES, _FILLS = 4200, 3

_Sent = tuple[float, float]


@dataclass(frozen=True)
class LatencyRun:
    """Effect of one way of electing on the producer.

    Attributes:
        during_s: latencies of the records sent from just before the first leader moves until just after the last.
        window_s: latencies of all records in a window of ``_WINDOW_S`` with the same beginning.
        length_s: seconds from the first moved leader to the last.
    """

    during_s: tuple[float, ...]
    window_s: tuple[float, ...]
    length_s: float


def measure_latency(rounds: int, on_progress: OnProgress) -> list[Figure]:
    """Return the 99th percentile of produce latency of both ways over some rounds.

    Raises:
        HeadroomError: leaders were not elected, or records were lost.
    """
    batched: list[LatencyRun] = []
    at_once: list[LatencyRun] = []
    with BenchCluster(BROKERS) as bench:
        make_topic(bench)
        _fill(bench)
        for number in range(rounds):
            ways = [(batched, elect_in_batches), (at_once, _all_at_once)]
            for runs, elect in ways if number % 2 else reversed(ways):
                runs.append(_measure_run(bench, 1 + number % BROKERS, elect))
                on_progress(f"round {number + 1}: {_describe_run(elect.__name__, runs[-1])}")
    return figures(batched, at_once)


def figures(batched: Sequence[LatencyRun], at_once: Sequence[LatencyRun]) -> list[Figure]:
    """Return the figures of both ways, each over the latencies of all its rounds."""
    during = [_p99([s for run in way for s in run.during_s]) for way in (batched, at_once)]
    window = [_p99([s for run in way for s in run.window_s]) for way in (batched, at_once)]
    rounds = len(batched)
    return [
        Figure("produce_p99_ratio_batched_over_all_at_once", during[0] / during[1], "ratio", rounds),
        Figure("produce_p99_batched_s", during[0], "s", rounds),
        Figure("produce_p99_all_at_once_s", during[1], "s", rounds),
        Figure("produce_p99_same_window_ratio", window[0] / window[1], "ratio", rounds),
    ]


def _p99(latencies_s: Sequence[float]) -> float:
    return percentile(latencies_s, 0.99)


def _describe_run(name: str, run: LatencyRun) -> str:
    way = name.strip("_").replace("_", " ")
    during = f"p99 {_p99(run.during_s):.3f} s of {len(run.during_s)} records during the elections"
    window = f"{_p99(run.window_s):.3f} s over {_WINDOW_S:.0f} s"
    return f"{way}: leaders moved within {run.length_s:.1f} s, {during}, {window}"


def restart(bench: BenchCluster, broker: int) -> None:
    """Kill a broker, restart it once others lead all partitions, and return once all replicas are in sync."""
    bench.kill(broker)
    leadership = LeadershipReader(bench)
    await_true(lambda: leadership.leads_none(broker), 60, f"others lead in place of broker {broker}")
    bench.restart(broker)
    await_true(leadership.all_in_sync, 120, f"the replicas of broker {broker} are in sync")
    leadership.close()


def _measure_run(bench: BenchCluster, broker: int, elect: Callable[[BenchCluster], None]) -> LatencyRun:
    """Restart a broker, elect its leaders again, and return the latencies."""
    restart(bench, broker)
    with SteadyLoad(bench.bootstrap_servers) as load, PreferredLeaderRecorder(bench) as watcher:
        time.sleep(_STEADY_S)
        elect(bench)
        await_true(lambda: watcher.non_preferred() == 0, 60, "all leaders are back")
        first_s, last_s = watcher.moved_s()
        time.sleep(max(0.0, first_s + _WINDOW_S - time.monotonic()))
    sent = load.sent()
    begins_s = first_s - _BEFORE_S
    return LatencyRun(
        tuple(latency for at, latency in sent if begins_s <= at < last_s + _AFTER_S),
        tuple(latency for at, latency in sent if begins_s <= at < begins_s + _WINDOW_S),
        last_s - first_s,
    )


def make_topic(bench: BenchCluster) -> None:
    """Create the topic. All brokers are the preferred leader of the same number of partitions."""
    replicas = {p: [1 + (p + i) % BROKERS for i in range(_REPLICAS)] for p in range(_PARTITIONS)}
    bench.admin.create_topics({_TOPIC: {"assignments": replicas}}, wait_for_metadata=True)


def _fill(bench: BenchCluster) -> None:
    """Write enough to every partition that its indexes have their first entries.

    The first entry of an index touches a new page of a mapped file. With the same load on all partitions, these
    writes come together some seconds after the load begins, and stop the brokers for up to a minute.
    """
    producer = KafkaProducer(bootstrap_servers=bench.bootstrap_servers, acks="all")
    for _ in range(_FILLS):
        for partition in range(_PARTITIONS):
            producer.send(_TOPIC, bytes(_INDEX_BYTES), partition=partition)
        producer.flush(timeout=120)
    producer.close()


def elect_in_batches(bench: BenchCluster) -> None:
    """Elect preferred leaders with ``headroom elections --execute`` and its defaults."""
    words = ["elections", "--config", str(bench.config), "--execute", "--yes"]
    command = [sys.executable, "-m", "headroom.cli.main", *words]
    done = subprocess.run(command, cwd=CHECKOUT, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise failure(f"headroom elections ended with {done.returncode}: {done.stderr.strip().splitlines()[-1:]}")


def _all_at_once(bench: BenchCluster) -> None:
    bench.admin.elect_leaders(PREFERRED, {_TOPIC: list(range(_PARTITIONS))})


class LeadershipReader:
    """Reads leaders and ISR of the partitions with a client of its own."""

    def __init__(self, bench: BenchCluster) -> None:
        self._connect = bench.connect
        self._admin: KafkaAdminClient | None = None

    def partitions(self) -> list[dict[str, Any]]:
        """Return the partitions; none while the connected broker is down."""
        try:
            self._admin = self._admin or self._connect()
            partitions: list[dict[str, Any]] = self._admin.describe_topics([_TOPIC])[0]["partitions"]
        except KafkaError:
            self.close()
            return []
        return partitions

    def leads_none(self, broker: int) -> bool:
        """Return whether a broker leads no partition while every partition has a leader."""
        partitions = self.partitions()
        return bool(partitions) and all(p["leader_id"] not in (broker, -1) for p in partitions)

    def all_in_sync(self) -> bool:
        """Return whether all replicas of every partition are in sync."""
        partitions = self.partitions()
        return bool(partitions) and all(len(p["isr_nodes"]) == _REPLICAS for p in partitions)

    def non_preferred(self) -> int | None:
        """Return the number of partitions not led by their preferred leader; None if unknown."""
        partitions = self.partitions()
        return sum(p["leader_id"] != p["replica_nodes"][0] for p in partitions) if partitions else None

    def close(self) -> None:
        """Close the connection. The next read opens a new one."""
        admin, self._admin = self._admin, None
        if admin is not None:
            with suppress(KafkaError):
                admin.close()


class PreferredLeaderRecorder:
    """Records ten times a second how many leaders have moved back."""

    def __init__(self, bench: BenchCluster) -> None:
        self._leadership = LeadershipReader(bench)
        self._observations: list[tuple[float, int]] = []
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._run, name="election-watch", daemon=True)

    def __enter__(self) -> PreferredLeaderRecorder:
        """Start recording, and return this."""
        self._thread.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        """Stop recording."""
        self._ended.set()
        self._thread.join()
        self._leadership.close()

    def non_preferred(self) -> int | None:
        """Return the last number of partitions not led by their preferred leader; None before the first read."""
        return self._observations[-1][1] if self._observations else None

    def moved_s(self) -> tuple[float, float]:
        """Return the monotonic times at which the first and the last leader moved."""
        moved = [
            now for before, now in zip(self._observations, self._observations[1:], strict=False) if now[1] < before[1]
        ]
        if not moved:
            raise failure("no leader moved")
        return moved[0][0], moved[-1][0]

    def _run(self) -> None:
        while not self._ended.wait(_POLL_S):
            non_preferred = self._leadership.non_preferred()
            if non_preferred is not None:
                self._observations.append((time.monotonic(), non_preferred))


class SteadyLoad:
    """Sends records to all partitions in turn at a steady rate, and records their latencies."""

    def __init__(self, bootstrap_servers: str) -> None:
        self._producer = KafkaProducer(bootstrap_servers=bootstrap_servers, acks="all")
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._run, name="election-load", daemon=True)
        self._latencies: list[_Sent] = []
        self._errors: list[BaseException] = []

    def __enter__(self) -> SteadyLoad:
        """Start sending, and return this."""
        self._thread.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        """Stop sending, and wait for the records in flight."""
        self._ended.set()
        self._thread.join()
        self._producer.flush(timeout=30)
        self._producer.close(timeout=5)

    def sent(self) -> list[_Sent]:
        """Return the monotonic time and the latency in seconds of each record.

        Raises:
            HeadroomError: records were not acknowledged.
        """
        if self._errors:
            raise failure(f"{len(self._errors)} records were not acknowledged: {self._errors[0]!r}")
        return list(self._latencies)

    def _run(self) -> None:
        begun_s, count = time.monotonic(), 0
        while not self._ended.wait(_STEP_S):
            due = int((time.monotonic() - begun_s) * _RECORDS_PER_S)
            for number in range(count, due):
                self._send(number % _PARTITIONS)
            count = due

    def _send(self, partition: int) -> None:
        at_s = time.monotonic()

        def answered(_metadata: object) -> None:
            self._latencies.append((at_s, time.monotonic() - at_s))

        future = self._producer.send(_TOPIC, bytes(_RECORD_BYTES), partition=partition)
        future.add_callback(answered).add_errback(self._errors.append)

"""Produce latency while leaders are elected back after a restart: in Headroom's batches, and all of them at once.

Both ways in turn, on the same brokers under the same load, each after a restart of its own. A producer waits for all
replicas in sync (``acks=all``); what counts is the time from ``send`` to the answer.
"""

from __future__ import annotations

import os
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
from benchmarks.results import CHECKOUT, Figure, percentile

_TOPIC = "elections"
_PARTITIONS = 400
BROKERS = 4
_REPLICAS = 3
_PREFERRED = 0
_RECORD_BYTES = 200
_RECORDS_PER_S = 400
_STEP_S = 0.05
_POLL_S = 0.1
# Between the first election and the last leader seen to have moved; the defaults take some 20 s for 100 partitions.
_WINDOW_S = 40.0
# A record that was sent just before its leader moved, or just after, waits for the move too.
_BEFORE_S, _AFTER_S = 0.5, 2.0
_STEADY_S = 5.0
# log.index.interval.bytes: the batch after so many bytes has an entry.
_INDEX_BYTES, _FILLS = 4200, 3

_Sent = tuple[float, float]


@dataclass(frozen=True)
class LatencyRun:
    """What one way of electing did to the producer.

    Attributes:
        during_s: latency of every record from just before the first leader moved until just after the last.
        window_s: of every record of a window of ``_WINDOW_S`` from the same moment on.
        length_s: from the first leader that moved to the last.
    """

    during_s: tuple[float, ...]
    window_s: tuple[float, ...]
    length_s: float


def measure_latency(on_progress: OnProgress) -> list[Figure]:
    """Return the 99th percentiles of produce latency of both ways over BENCH_ELECTION_ROUNDS rounds (default 3).

    Raises:
        HeadroomError: leaders were not elected, or records were lost.
    """
    rounds = int(os.environ.get("BENCH_ELECTION_ROUNDS", "3"))
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
    """Return the figures of both ways, each with the latencies of all its rounds together."""
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
    during = f"p99 {_p99(run.during_s):.3f} s of {len(run.during_s)} records meanwhile"
    window = f"{_p99(run.window_s):.3f} s over {_WINDOW_S:.0f} s"
    return f"{way}: leaders moved within {run.length_s:.1f} s, {during}, {window}"


def restart(bench: BenchCluster, broker: int) -> None:
    """Kill a broker, start it again once others lead in its place, and return once all replicas are in sync."""
    bench.kill(broker)
    leadership = LeadershipReader(bench)
    await_true(lambda: leadership.leads_none(broker), 60, f"others lead in place of broker {broker}")
    bench.restart(broker)
    await_true(leadership.all_in_sync, 120, f"the replicas of broker {broker} are in sync")
    leadership.close()


def _measure_run(bench: BenchCluster, broker: int, elect: Callable[[BenchCluster], None]) -> LatencyRun:
    """Return what an election of all leads of a broker that was restarted did."""
    restart(bench, broker)
    with SteadyLoad(bench.bootstrap_servers) as load, LeaderWatcher(bench) as watcher:
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
    """Make the topic, whose partitions prefer all brokers alike."""
    replicas = {p: [1 + (p + i) % BROKERS for i in range(_REPLICAS)] for p in range(_PARTITIONS)}
    bench.admin.create_topics({_TOPIC: {"assignments": replicas}}, wait_for_metadata=True)


def _fill(bench: BenchCluster) -> None:
    """Write so much to every partition that its indexes have their first entries.

    The first entry takes a page of a file that is mapped and empty. Under a load that is the same for all partitions
    these come all at once, some seconds after it begins, and stop the brokers for up to a minute.
    """
    producer = KafkaProducer(bootstrap_servers=bench.bootstrap_servers, acks="all")
    for _ in range(_FILLS):
        for partition in range(_PARTITIONS):
            producer.send(_TOPIC, bytes(_INDEX_BYTES), partition=partition)
        producer.flush(timeout=120)
    producer.close()


def elect_in_batches(bench: BenchCluster) -> None:
    """Elect by ``headroom elections --execute`` with its defaults."""
    command = [sys.executable, "-m", "cli.main", "elections", "--config", str(bench.config), "--execute", "--yes"]
    done = subprocess.run(command, cwd=CHECKOUT, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise failure(f"headroom elections ended with {done.returncode}: {done.stderr.strip().splitlines()[-1:]}")


def _all_at_once(bench: BenchCluster) -> None:
    bench.admin.elect_leaders(_PREFERRED, {_TOPIC: list(range(_PARTITIONS))})


class LeadershipReader:
    """Asks who leads the partitions, by a client of its own."""

    def __init__(self, bench: BenchCluster) -> None:
        self._connect = bench.connect
        self._admin: KafkaAdminClient | None = None

    def partitions(self) -> list[dict[str, Any]]:
        """Return the partitions; none while the broker that was asked is away."""
        try:
            self._admin = self._admin or self._connect()
            found: list[dict[str, Any]] = self._admin.describe_topics([_TOPIC])[0]["partitions"]
        except KafkaError:
            self.close()
            return []
        return found

    def leads_none(self, broker: int) -> bool:
        """Return whether a broker leads none of the partitions, and all have a leader."""
        found = self.partitions()
        return bool(found) and all(p["leader_id"] not in (broker, -1) for p in found)

    def all_in_sync(self) -> bool:
        """Return whether every partition has all its replicas in sync."""
        found = self.partitions()
        return bool(found) and all(len(p["isr_nodes"]) == _REPLICAS for p in found)

    def non_preferred(self) -> int | None:
        """Return how many partitions their preferred broker does not lead; None: not known."""
        found = self.partitions()
        return sum(p["leader_id"] != p["replica_nodes"][0] for p in found) if found else None

    def close(self) -> None:
        """Close the connection; the next question opens one anew."""
        admin, self._admin = self._admin, None
        if admin is not None:
            with suppress(KafkaError):
                admin.close()


class LeaderWatcher:
    """Notes when leaders move back, some ten times a second."""

    def __init__(self, bench: BenchCluster) -> None:
        self._leadership = LeadershipReader(bench)
        self._observations: list[tuple[float, int]] = []
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._run, name="election-watch", daemon=True)

    def __enter__(self) -> LeaderWatcher:
        """Return this, watching."""
        self._thread.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        """Watch no more."""
        self._ended.set()
        self._thread.join()
        self._leadership.close()

    def non_preferred(self) -> int | None:
        """Return how many partitions their preferred broker did not lead when last seen; None: not seen yet."""
        return self._observations[-1][1] if self._observations else None

    def moved_s(self) -> tuple[float, float]:
        """Return when the first leader was seen to have moved, and the last one."""
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
    """Sends records to all partitions in turn at a steady rate, and notes how long each took."""

    def __init__(self, bootstrap_servers: str) -> None:
        self._producer = KafkaProducer(bootstrap_servers=bootstrap_servers, acks="all")
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._run, name="election-load", daemon=True)
        self._latencies: list[_Sent] = []
        self._errors: list[BaseException] = []

    def __enter__(self) -> SteadyLoad:
        """Return this, sending."""
        self._thread.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        """Send no more, and wait for what is under way."""
        self._ended.set()
        self._thread.join()
        self._producer.flush(timeout=30)
        self._producer.close(timeout=5)

    def sent(self) -> list[_Sent]:
        """Return when each record was sent, monotonic seconds, and how many seconds its answer took.

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

"""Runs of reassignment plans, one after the other, and what Kafka shows of them."""

from __future__ import annotations

import json
import os
import subprocess
import threading
import time
from contextlib import suppress
from pathlib import Path
from types import TracebackType

import psutil
from kafka import KafkaProducer
from kafka.errors import KafkaError

from benchmarks.fixtures.bench_cluster import BenchCluster
from benchmarks.fixtures.headroom_commands import HeadroomCommands
from benchmarks.fixtures.processes import kill_tree
from headroom.planning.reassignments.plan import PLAN_VERSION

TOPIC = "runs"
_PARTITIONS = 4
_BATCHES = ((0, 1), (2, 3))
_RECORD_BYTES = 50_000
# Above the rates in force, so that rates are steps of a run too.
_THROTTLE = "9MB"
_POLL_S = 0.1
# The commands would otherwise leave the history no time on two cores.
_PAUSE_S = 5.0
_SHOWN_CHARS = 400


class EndlessRuns:
    """Moves the partitions of a topic back and forth between two brokers, by one ``headroom reassign run`` at a time.

    Args:
        bench: the cluster; the topic is created here.
        brokers: the two brokers.

    Attributes:
        failed: last output of each run that failed by itself.
    """

    def __init__(self, bench: BenchCluster, brokers: tuple[int, int]) -> None:
        self.failed: list[str] = []
        self._bench = bench
        self._brokers = brokers
        self._commands = HeadroomCommands(bench.config)
        self._admin = bench.connect()
        self._to = 1
        self._number = 0
        # First broker of each partition, as Kafka last showed it.
        self._seen: dict[int, int] = dict.fromkeys(range(_PARTITIONS), brokers[0])
        self._acted: dict[int, int] = {}
        self._is_cut = False
        self._closing = threading.Event()
        self._process: subprocess.Popen[bytes] | None = None
        self._done = 0
        self._lock = threading.Lock()
        self._powered = threading.Event()
        self._thread = threading.Thread(target=self._loop, name="endless-runs", daemon=True)

    def __enter__(self) -> EndlessRuns:
        """Create the topic, and return this with the first run under way."""
        replicas = {partition: [self._brokers[0]] for partition in range(_PARTITIONS)}
        self._bench.admin.create_topics({TOPIC: {"assignments": replicas}}, wait_for_metadata=True)
        producer = KafkaProducer(bootstrap_servers=self._bench.bootstrap_servers)
        for partition in range(_PARTITIONS):
            producer.send(TOPIC, os.urandom(_RECORD_BYTES), partition=partition)
        producer.close()
        self._powered.set()
        self._thread.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        """Kill the current run."""
        self._closing.set()
        self.kill()
        self._powered.set()
        self._thread.join()
        with suppress(KafkaError):
            self._admin.close()

    @property
    def done(self) -> int:
        """Return the number of runs that have ended as planned."""
        return self._done

    @property
    def acted(self) -> dict[int, int]:
        """Return by partition the broker to which Kafka was last seen to move it; none that never moved."""
        return dict(self._acted)

    def pause(self) -> None:
        """Start no run until ``resume``; that the current one fails is expected."""
        with self._lock:
            self._powered.clear()
            self._is_cut = True

    def kill(self) -> None:
        """Kill the current run, and start none until ``resume``."""
        self.pause()
        with self._lock:
            if self._process is not None:
                with suppress(psutil.NoSuchProcess):
                    kill_tree(psutil.Process(self._process.pid))

    def resume(self) -> None:
        """Start the killed run again, with the same command."""
        self._powered.set()

    def _loop(self) -> None:
        while not self._closing.is_set():
            self._powered.wait()
            if self._closing.is_set():
                return
            log = self._bench.folder / "runs.log"
            with self._lock:
                if not self._powered.is_set():
                    continue
                self._is_cut = False
                self._process = self._commands.start(*self._words(), log=log)
            while self._process.poll() is None:
                self._observe()
                time.sleep(_POLL_S)
            self._settle(self._process.returncode, log)

    def _settle(self, code: int, log: Path) -> None:
        if self._is_cut:
            return
        if code:
            self.failed.append(log.read_text(encoding="utf-8", errors="replace").strip()[-_SHOWN_CHARS:])
            self._closing.wait(_PAUSE_S)
            return
        self._observe()
        self._done += 1
        self._number += 1
        self._to = 1 - self._to
        self._closing.wait(_PAUSE_S)

    def _observe(self) -> None:
        """Note which partitions Kafka moves, or has moved."""
        with suppress(KafkaError):
            for description in self._admin.describe_topics([TOPIC])[0]["partitions"]:
                partition, first = description["partition_index"], description["replica_nodes"][0]
                if first != self._seen[partition]:
                    self._seen[partition] = self._acted[partition] = first

    def _words(self) -> list[str]:
        target, files = self._brokers[self._to], []
        for batch, partitions in enumerate(_BATCHES):
            rows = [{"topic": TOPIC, "partition": p, "replicas": [target]} for p in partitions]
            files.append(self._bench.folder / f"run-{self._number}-{batch}.json")
            files[-1].write_text(json.dumps({"version": PLAN_VERSION, "partitions": rows}), encoding="utf-8")
        # The move of the alerts is not of this run, and its throttles stay too low.
        return [
            "reassign",
            "run",
            *map(str, files),
            "--throttle",
            _THROTTLE,
            "--execute",
            "--yes",
            "--adopt",
            "--force",
        ]

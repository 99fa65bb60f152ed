"""One migration under faults, and what became of its records."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

from kafka.errors import KafkaError

from benchmarks.fixtures.bench_cluster import BenchCluster, OnProgress, await_true
from benchmarks.fixtures.migrations.brokers import BROKERS
from benchmarks.fixtures.migrations.processes import ClientProcess, ReaderProcess, WriterProcess
from benchmarks.groups.migrations.clusters import TwoClusters, switch_leader
from benchmarks.groups.migrations.record import MigrationRecord
from benchmarks.groups.migrations.run_process import RunProcess
from benchmarks.groups.migrations.schedule import PARTITIONS, WRITERS, FaultKind, PlannedFault, faults_of
from benchmarks.groups.migrations.tally import tally
from headroom.schemas.errors import HeadroomError

# Acknowledged records of a migration, at least; and records a second of each producer.
RECORDS, PER_S = 105_000, 1_000.0
# How far ahead the end offset is agreed.
PREPARE_S = 25.0
_MIN_INSYNC = 2
_BEGUN_S, _MIGRATED_S, _WRITTEN_S = 120.0, 600.0, 600.0


@dataclass(frozen=True)
class PlannedMigration:
    """A migration that is to be measured.

    Attributes:
        number: its number, from 0.
    """

    number: int

    @property
    def name(self) -> str:
        """Return its name, that of its topic and of its record too."""
        return f"migration-{self.number:02d}"

    def play(self, clusters: TwoClusters, on_progress: OnProgress) -> MigrationRecord:
        """Migrate a new topic, and return what became of its records."""
        record, began_s = MigrationRecord(self.number), time.monotonic()
        try:
            with ExitStack() as stack:
                _Stage(clusters, self, stack, record, on_progress).play()
        except (HeadroomError, KafkaError) as error:
            record.failed = str(error)
        record.played_s = round(time.monotonic() - began_s, 1)
        return record


class _Stage:
    """A topic of a migration with its clients, its run and its faults."""

    def __init__(
        self,
        clusters: TwoClusters,
        planned: PlannedMigration,
        stack: ExitStack,
        record: MigrationRecord,
        on_progress: OnProgress,
    ) -> None:
        self._clusters, self._topic, self._record, self._on_progress = clusters, planned.name, record, on_progress
        self._stack = stack
        self._folder: Path = clusters.folder / planned.name
        self._folder.mkdir()
        self._faults = faults_of(planned.number)
        names = [f"{planned.name}-writer-{number}" for number in range(WRITERS)]
        self._writers = [
            WriterProcess(name, clusters.servers, self._topic, PARTITIONS, PER_S, self._folder) for name in names
        ]
        self._reader = self._new_reader("reader")
        routers = [*names, self._reader.name]
        command = clusters.run_command([self._topic], planned.name, routers)
        self._run = RunProcess(command, self._folder / "run.log")
        stack.callback(self._run.kill)
        for client in (*self._writers, self._reader):
            stack.callback(client.kill)
        self._began_s = 0.0
        self._errors: list[BaseException] = []

    def _new_reader(self, name: str) -> ReaderProcess:
        return ReaderProcess(f"{self._topic}-{name}", self._clusters.servers, self._topic, self._folder)

    def play(self) -> None:
        """Play the migration, and fill its record.

        Raises:
            HeadroomError: something did not come to its end.
        """
        in_turn = {p: [1 + (p + shift) % BROKERS for shift in range(BROKERS)] for p in range(PARTITIONS)}
        self._clusters.create(self._topic, in_turn, _MIN_INSYNC)
        clients: tuple[ClientProcess, ...] = (*self._writers, self._reader)
        for client in clients:
            client.start()
        self._await(lambda: all(client.noted() for client in clients), _BEGUN_S, "records are written and read")
        self._begin()
        self._await(self._has_migrated, _MIGRATED_S, "all partitions are migrated")
        self._note("the run has ended")
        enough = f"{RECORDS:,} records are acknowledged"
        self._await(lambda: sum(writer.noted() for writer in self._writers) >= RECORDS, _WRITTEN_S, enough)
        for writer in self._writers:
            writer.end()
        self._count()

    def _begin(self) -> None:
        self._began_s = time.monotonic()
        self._run.start()
        threads = [threading.Thread(target=self._guarded, args=(fault,)) for fault in self._faults]
        for thread in threads:
            # Whatever happens, no fault outlives the migration: brokers have to be up for the next one.
            self._stack.callback(thread.join)
            thread.start()
        self._threads = threads

    def _has_migrated(self) -> bool:
        return not any(thread.is_alive() for thread in self._threads) and self._run.has_succeeded()

    def _count(self) -> None:
        acknowledged, record = [], self._record
        for writer in self._writers:
            own, refused = writer.acknowledged()
            acknowledged += own
            record.refused += refused
        ends = self._clusters.client_ends(self._topic)
        new = self._new_reader("new")
        self._stack.callback(new.kill)
        new.start()
        found = tally(acknowledged, new.read_to(ends))
        live = tally(acknowledged, self._reader.read_to(ends))
        for name in ("acknowledged", "lost", "doubled", "out_of_order", "elsewhere", "unknown", "unknown_doubled"):
            setattr(record, name, getattr(found, name))
        record.skipped, record.read_again = live.lost, live.doubled + live.unknown_doubled

    def _await(self, condition: Callable[[], object], deadline_s: float, description: str) -> None:
        """Wait for a condition while clients and faults do what they should.

        Raises:
            HeadroomError: it did not hold in time, or a client or a fault has failed.
        """
        at_s = 0.0

        def holds() -> bool:
            nonlocal at_s
            if self._errors:
                raise self._errors[0]
            # Files of many records are read: not ten times a second.
            if time.monotonic() < at_s:
                return False
            at_s = time.monotonic() + 1.0
            for client in (*self._writers, self._reader):
                client.require_running()
            return bool(condition())

        await_true(holds, deadline_s, f"{self._topic}: {description}")

    def _note(self, text: str) -> None:
        line = f"{time.monotonic() - self._began_s:.1f} s: {text}"
        self._record.notes.append(line)
        self._on_progress(f"    {line}")

    def _guarded(self, fault: PlannedFault) -> None:
        try:
            time.sleep(fault.at_s)
            self._inject(fault)
        except Exception as error:  # raised by the thread that waits
            self._errors.append(error)

    def _inject(self, fault: PlannedFault) -> None:
        kind = fault.kind
        if kind == FaultKind.LEADER_SWITCH:
            self._note(f"{kind.value}: {self._topic}-{fault.which}")
            leader = switch_leader(self._clusters.origin, self._topic, fault.which)
            self._note(f"{self._topic}-{fault.which} is led by broker {leader}")
        elif kind == FaultKind.KILL_ON_ORIGIN:
            self._kill_broker(self._clusters.origin, fault)
        elif kind == FaultKind.KILL_ON_TARGET:
            self._kill_broker(self._clusters.target, fault)
        elif kind == FaultKind.KILL_RUN:
            was_running = self._run.kill()
            self._note(f"{kind.value}{'' if was_running else ', which had ended'}")
            time.sleep(fault.down_s)
            self._run.start()
        else:
            client = self._reader if kind == FaultKind.KILL_READER else self._writers[fault.which]
            client.kill()
            self._note(f"{kind.value} {client.name}")
            time.sleep(fault.down_s)
            client.start()
            self._note(f"{client.name} is started again")

    def _kill_broker(self, cluster: BenchCluster, fault: PlannedFault) -> None:
        cluster.kill(fault.which)
        self._note(f"{fault.kind.value}, {fault.which}")
        time.sleep(fault.down_s)
        cluster.restart(fault.which)
        self._note(f"broker {fault.which} is up again")

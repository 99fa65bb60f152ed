"""A migration between two clusters in memory, whose run may be killed at any of its effects."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import pytest

from headroom.operations.journal import journalled_change
from headroom.operations.migration.running import agreements as agreements_module
from headroom.operations.migration.running.clusters import RunningClusters
from headroom.operations.migration.running.run import MigrationRunRequest, MigrationRunResult, run_migration
from headroom.operations.migration.running.watch import MigrationWatch
from headroom.planning.migration.run.next_step import RunGoal
from headroom.planning.migration.run.seen import RunTerms
from headroom.planning.reassignments.run.journal import JournalRow
from headroom.routing.agreement import AgreementReader, AgreementWriter
from headroom.schemas.config import ClusterSettings, MigrationSettings, OriginSettings, Settings
from headroom.schemas.keys import TopicPartition
from headroom.schemas.migrations import MIGRATIONS_TOPIC, MigrationMethod, PartitionAgreement, RouterReport
from tests.unit.fakes.kafka_clients import FakeCluster, FakeConsumer, FakeProducer, Stored
from tests.unit.fakes.migration_clusters import FakeMigrationCluster, QuietProgress

ORDERS = (TopicPartition("orders", 0), TopicPartition("orders", 1))
BEGAN_MS = 1_000_000
# Of readers that reach the end of the topic in no time.
_MOST_WAITS = 2_000


class KilledError(BaseException):
    """The process was killed: no handler of errors sees it."""


class StageStop:
    """Event that ends a run; a wait lets the clusters go on."""

    def __init__(self, stage: MigrationStage) -> None:
        self._stage = stage
        self._waits = 0
        self.is_stopped = False

    def is_set(self) -> bool:
        return self.is_stopped

    def wait(self, seconds: float) -> bool:
        self._waits += 1
        assert self._waits < _MOST_WAITS, (self._stage.progress.notes[-3:], self._stage.agreed())
        self._stage.go_on(seconds)
        return self.is_stopped


class _KillableWriter(AgreementWriter):
    """Writer whose process may be killed before and after each of its transactions."""

    effect: Callable[[], object]

    def write(self, *changes: Any) -> None:
        self.effect()
        super().write(*changes)
        self.effect()


@dataclass
class MigrationStage:
    """Two clusters, the agreement topic, routers, and producers that write to the origin.

    Attributes:
        origin: the origin, with orders of two partitions.
        target: the target.
        settings: all settings.
        offsets_per_s: what producers write to each partition of the origin, offsets per second.
        hangs: whether a follower of each partition hangs there, so that only leaders have what is written.
        now_s: time.
        routers: names of routers that agree to whatever is agreed.
        before_wait: called with the stage before time goes on.
        kill_at: number of the effect at which the process is killed; None: it is not.
        rows: rows of the journal.
    """

    origin: FakeMigrationCluster = field(default_factory=lambda: FakeMigrationCluster("old"))
    target: FakeMigrationCluster = field(default_factory=lambda: FakeMigrationCluster("new"))
    settings: Settings = field(
        default_factory=lambda: Settings(
            cluster=ClusterSettings(name="new", bootstrap_servers="new1:9092"),
            migration=MigrationSettings(
                prepare=20.0, quiet_s=10.0, origin=OriginSettings(name="old", bootstrap_servers="old1:9092")
            ),
        )
    )
    offsets_per_s: float = 10.0
    hangs: bool = False
    now_s: float = 0.0
    routers: tuple[str, ...] = ("writer", "reader")
    before_wait: Callable[[MigrationStage], object] = lambda stage: None
    kill_at: int | None = None
    rows: list[JournalRow] = field(default_factory=list)
    progress: QuietProgress = field(default_factory=QuietProgress)
    notes: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.topic = FakeCluster("id of new", {})
        self._effects = 0
        self._kept: dict[TopicPartition, float] = {}
        for name in ORDERS:
            self.origin.fill(name.topic, name.partition, range(100))
        self.origin.before_effect = self.target.before_effect = self.effect

    def connect(self, monkeypatch: pytest.MonkeyPatch) -> MigrationStage:
        """Let the operations use this stage."""
        monkeypatch.setattr(agreements_module, "new_agreement_reader", lambda cluster: self.reader())
        monkeypatch.setattr(agreements_module, "new_writer", lambda settings, name, reader: self.writer(name, reader))
        monkeypatch.setattr(agreements_module, "_PATIENCE_S", 0.0)
        monkeypatch.setattr(agreements_module, "_PAUSE_S", 0.0)
        monkeypatch.setattr(journalled_change, "ActionJournal", lambda path: self)
        return self

    def append(self, rows: list[JournalRow]) -> None:
        """Keep rows of the journal."""
        self.rows += rows

    def effect(self) -> None:
        """Kill the process, if this is the effect for it."""
        self._effects += 1
        if self._effects == self.kill_at:
            raise KilledError

    def reader(self) -> AgreementReader:
        if TopicPartition(MIGRATIONS_TOPIC, 0) in self.target.logs:
            self.topic.topics_ = {MIGRATIONS_TOPIC: 1}
        return AgreementReader(FakeConsumer(self.topic))

    def writer(self, migration: str, reader: AgreementReader) -> AgreementWriter:
        writer = _KillableWriter(migration, FakeProducer(self.topic, transactional_id=migration), reader)
        writer.effect = self.effect
        return writer

    def agreed(self) -> dict[TopicPartition, PartitionAgreement]:
        """Return what is agreed, by partition."""
        reader = self.reader()
        if not self.topic.topics_:
            return {}
        reader.read_to_end(1.0)
        return {name: one for (_, name), one in sorted(reader.agreements.items(), key=lambda item: item[0][1])}

    def go_on(self, seconds: float) -> None:
        """Let time go on: routers agree, and producers write; routed ones leave an origin that is at its end."""
        self.before_wait(self)
        self.now_s += seconds
        self.origin.now_s = self.now_s
        left = {n for n, one in self.agreed().items() if one.method == "routed" and one.status in ("migrated", "aged")}
        for name in ORDERS:
            if name in self.origin.logs and name not in left:
                exact = self._kept.get(name, 0.0) + self.offsets_per_s * seconds
                self._kept[name] = exact - int(exact)
                if self.hangs:
                    self.origin.unreplicated[name] = self.origin.unreplicated.get(name, 0) + int(exact)
                else:
                    self.origin.ends[name] = self.origin.leader_end_of(name) + int(exact)
                    self.origin.unreplicated.pop(name, None)
        numbers: dict[str, int] = {}
        for one in self.agreed().values():
            numbers[one.migration] = max(one.number, numbers.get(one.migration, 0))
        log = self.topic.logs[TopicPartition(MIGRATIONS_TOPIC, 0)]
        for router in self.routers if numbers else ():
            report = RouterReport(router, router, "producer", "all", agreed=numbers)
            log.append(Stored(report.key(), report.value()))

    def running(self) -> RunningClusters:
        return RunningClusters(self.origin, self.target)  # type: ignore[arg-type]

    def watch(self) -> MigrationWatch:
        clock_ms = lambda: BEGAN_MS + round(self.now_s * 1000)  # noqa: E731
        return MigrationWatch(self.settings, *self.running(), clock_s=lambda: self.now_s, clock_ms=clock_ms)

    def run(
        self,
        method: str = "routed",
        goal: RunGoal = RunGoal.MIGRATED,
        *,
        stop: Any = None,
        drop: bool = False,
        **terms: Any,
    ) -> MigrationRunResult:
        """Run the migration "move" of orders in a new process."""
        own = {"migration": "move", "routers": self.routers if method == "routed" else (), "prepare_s": 20.0, **terms}
        request = MigrationRunRequest(("orders",), RunTerms(method=MigrationMethod(method), **own), goal, drop)
        return run_migration(
            self.running(),
            self.settings,
            request,
            self.watch(),
            self.progress,
            stop or StageStop(self),  # type: ignore[arg-type]
            self.notes.append,
        )

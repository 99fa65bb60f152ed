"""A cluster, its journal and the runs of plans on them, all in memory."""

from __future__ import annotations

import threading
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import TypeVar

import pytest

from headroom.cluster.reassignment.execution.cleaning import CleanOutcome, clean_run
from headroom.cluster.reassignment.execution.control import RunOutput, RunPolicy
from headroom.cluster.reassignment.execution.executor import ReassignmentExecutor, RunOutcome
from headroom.cluster.reassignment.execution.run_journal import RunJournal
from headroom.planning.reassignments.cluster_state import PartitionPlacement
from headroom.planning.reassignments.plan import ReassignmentPlan, TargetAssignment
from headroom.planning.reassignments.run.record import RecordedRun, RunState
from headroom.schemas.keys import TopicPartition
from tests.unit.fakes.reassigned_cluster import Crash, FakeJournal, FakeReassignedCluster, Killed, SteppedTime

Replicas = Mapping[TopicPartition, tuple[int, ...]]


def stage_of(before: Replicas, *batches: Replicas, brokers: int = 4, policy: RunPolicy | None = None) -> RunStage:
    """Return a stage whose partitions are led by their first replica, with the targets of some batches."""
    placed = {name: PartitionPlacement(*name, r[0], r, r) for name, r in before.items()}
    plans = [ReassignmentPlan(tuple(TargetAssignment(n, r) for n, r in batch.items())) for batch in batches]
    cluster = FakeReassignedCluster(placed, set(range(1, brokers + 1)))
    return RunStage(cluster, plans, policy or RunPolicy(10_000_000, pause_s=0))


@dataclass
class RunStage:
    """A cluster, its journal and the runs of them; a killed run leaves both as they were then."""

    cluster: FakeReassignedCluster
    batches: list[ReassignmentPlan]
    policy: RunPolicy
    journal: FakeJournal = field(default_factory=FakeJournal)
    time: SteppedTime = field(default_factory=SteppedTime)
    lines: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    stop: threading.Event = field(default_factory=threading.Event)
    # Called at every step at which nothing is killed.
    on_step: Callable[[], None] | None = None

    def record(self) -> RecordedRun:
        unfinished = [record for record in self.journal.records() if record.state is not RunState.DONE]
        return unfinished[-1] if unfinished else RecordedRun(f"run-{len(self.journal.records())}")

    def run_journal(self, command: str = "reassign run") -> RunJournal:
        return self._journal_of(self.record(), command)

    def _journal_of(self, record: RecordedRun, command: str) -> RunJournal:
        return RunJournal(self.journal, record, "orders", command, "anna@host", self.clock_ms)

    def clock_ms(self) -> int:
        """Return the time now, epoch milliseconds: no two commits have the same, as those of two real commands."""
        return int(self.time.now_s * 1000) + len(self.journal.kept)

    def run(self, crash_at: int = 0, policy: RunPolicy | None = None) -> RunOutcome:
        self.cluster.crash = self.journal.crash = Crash(crash_at, on_step=self.on_step)
        return ReassignmentExecutor(
            self.cluster,
            self.run_journal(),
            self.batches,
            "fingerprint",
            policy or self.policy,
            self.stop,
            self.output(),
            clock=self.time.clock,
            sleep=self.time.sleep,
        ).run()

    def go_on(self, policy: RunPolicy | None = None) -> None:
        """Run the same command again, unless the one that was killed had come to its end."""
        if [record.state for record in self.journal.records()] != [RunState.DONE]:
            self.run(policy=policy)

    def steps(self) -> int:
        """Return the number of steps at each of which a run can be killed."""
        self.run()
        return self.cluster.crash.steps

    def clean(self, crash_at: int = 0) -> CleanOutcome:
        self.cluster.crash = self.journal.crash = Crash(crash_at, on_step=self.on_step)
        return self._cleaned(self.record(), ())

    def clean_all(self) -> None:
        """Clean all runs that are unfinished or have left something behind, the newest first."""
        self.cluster.crash = self.journal.crash = Crash(on_step=self.on_step)
        records = self.journal.records()
        unfinished = {record.run_id: record for record in records if record.state is RunState.UNFINISHED}
        for record in reversed(records):
            if record.leaves_behind or record.run_id in unfinished:
                unfinished.pop(record.run_id, None)
                outcome = self._cleaned(record, unfinished.values())
                if outcome.record.state is RunState.UNFINISHED:
                    unfinished[record.run_id] = outcome.record

    def _cleaned(self, record: RecordedRun, others: Collection[RecordedRun]) -> CleanOutcome:
        journal = self._journal_of(record, "reassign clean")
        return clean_run(self.cluster, journal, self.output(), 60, self.time.clock, self.time.sleep, tuple(others))

    def fork(self) -> RunStage:
        """Return the stage as a kill at this moment leaves it; it goes on from here by itself."""
        return replace(
            self,
            cluster=self.cluster.fork(),
            journal=self.journal.fork(),
            time=SteppedTime(self.time.now_s),
            lines=[],
            notes=[],
            stop=threading.Event(),
            on_step=None,
        )

    def output(self) -> RunOutput:
        raise_command = lambda rate, brokers: f"raise {rate} {list(brokers)}"  # noqa: E731
        return RunOutput(self.notes.append, self.lines.append, raise_command)

    def throttles(self) -> tuple[object, object]:
        return self.cluster.rates, self.cluster.lists

    def replicas(self) -> dict[tuple[str, int], tuple[int, ...]]:
        return {tuple(name): p.replicas for name, p in self.cluster.partitions.items()}  # type: ignore[misc]

    def end_topic_and_make_it_again(self, topic: str) -> None:
        """Delete a topic with its moves and lists, and make another one with the same partitions and replicas."""
        self.cluster.remade[topic] = self.cluster.remade.get(topic, 0) + 1
        for name in [name for name in self.cluster.left if name.topic == topic]:
            self.cluster._cancel(name)
        self.cluster.lists = {name: text for name, text in self.cluster.lists.items() if name.topic != topic}

    def left_behind(self) -> list[RecordedRun]:
        return [record for record in self.journal.records() if record.leaves_behind]


_Stage = TypeVar("_Stage", bound=RunStage)


def killed_at_each_step(make: Callable[[], _Stage]) -> Iterator[_Stage]:
    """Yield a stage for each step of its run, which was killed there."""
    for step in range(1, make().steps() + 1):
        stage = make()
        with pytest.raises(Killed):
            stage.run(step)
        yield stage


def killed_while_moving(make: Callable[[], _Stage], name: TopicPartition) -> _Stage:
    """Return a stage whose run was killed at the first step at which a partition moves."""
    for stage in killed_at_each_step(make):
        if name in stage.cluster.left and stage.journal.records():
            return stage
    raise AssertionError(f"{name} did not move")

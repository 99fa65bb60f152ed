"""A plan with its batches, and what each of them would change now: complete before anything is changed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from cli.reassign.plan_files import whole_plan
from planning.reassignments.plan import ANY_LOG_DIR, ReassignmentPlan
from planning.reassignments.run.changes import BatchChanges, batch_changes
from planning.reassignments.run.conditions import foreign_moves, partitions_text
from planning.reassignments.run.loads import loads_of_batch, required_bytes_per_s
from planning.reassignments.run.record import RecordedRun, RunState
from planning.reassignments.run.snapshot import RunSnapshot
from planning.throttles.recommendation import ACCURATE_BYTES_PER_S
from schemas.errors import HeadroomError


@dataclass(frozen=True)
class PlannedRun:
    """A run before it begins.

    Attributes:
        batches: the plan, in parts.
        changes: what each batch changes, by the cluster as it is now.
        snapshot: the cluster now.
        record: the run that goes on; without rows if it is a new one.
        fingerprint: fingerprint of the whole plan.
        throttle_bytes_per_s: rate of the throttle; None: no throttle.
    """

    batches: Sequence[ReassignmentPlan]
    changes: Sequence[BatchChanges]
    snapshot: RunSnapshot
    record: RecordedRun
    fingerprint: str
    throttle_bytes_per_s: int | None

    @property
    def resumes(self) -> bool:
        """Whether an earlier run of the same plan goes on."""
        return self.record.rows > 0

    @property
    def empty(self) -> bool:
        """Whether every partition has its target replicas already."""
        return not any(changes.moves for changes in self.changes)

    def required_bytes_per_s(self, changes: BatchChanges) -> float | None:
        """Return the rate that the throttle of a batch has to exceed; None if write rates are unknown."""
        loads = loads_of_batch(self.snapshot, changes.moves, changes.rates)
        limited = [load for load in loads if load.limited_replicas]
        if any(load.required_bytes_per_s is None for load in limited):
            return None
        return max((required_bytes_per_s(load) for load in limited), default=0.0)

    def notes(self) -> list[str]:
        """Return what the operator should know before the run, in sentences."""
        notes = []
        if self.throttle_bytes_per_s is None and not self.empty:
            notes.append("Without --throttle the partitions move as fast as brokers and network allow.")
        elif self.throttle_bytes_per_s is not None and self.throttle_bytes_per_s < ACCURATE_BYTES_PER_S:
            notes.append("Below 1 MB/s Kafka enforces a throttle inaccurately.")
        if self.throttle_bytes_per_s is not None and any(self.required_bytes_per_s(c) is None for c in self.changes):
            notes.append("Write rates are unknown, so whether the throttle is enough is not checked.")
        foreign = foreign_moves(self.snapshot, self.record)
        if foreign:
            notes.append(f"Reassignments that are not of this run are running: {partitions_text(foreign)}.")
        missing = [name for changes in self.changes for name in changes.missing]
        if missing:
            notes.append(f"Partitions of the plan that do not exist: {partitions_text(missing)}.")
        return notes


def planned_run(
    batches: Sequence[ReassignmentPlan],
    snapshot: RunSnapshot,
    record: RecordedRun,
    fingerprint: str,
    throttle_bytes_per_s: int | None,
) -> PlannedRun:
    """Return what a run of the batches changes, by the cluster as it is now.

    Raises:
        HeadroomError: the plan names log directories, or, in a new run, unknown partitions or brokers.
    """
    changes = [batch_changes(batch, snapshot, record, throttle_bytes_per_s) for batch in batches]
    _require_no_directories(whole_plan(batches))
    if record.state is not RunState.UNFINISHED:
        _require_existing(batches, snapshot)
    return PlannedRun(batches, changes, snapshot, record, fingerprint, throttle_bytes_per_s)


def _require_no_directories(plan: ReassignmentPlan) -> None:
    named = [a.name for a in plan if any(path != ANY_LOG_DIR for path in a.log_dirs or ())]
    if named:
        remedy = 'Leave "log_dirs" out, or move between directories afterwards.'
        raise HeadroomError(partitions_text(named), "names log directories, which a run does not choose", remedy)


def _require_existing(batches: Sequence[ReassignmentPlan], snapshot: RunSnapshot) -> None:
    assignments = [assignment for batch in batches for assignment in batch]
    missing = [a.name for a in assignments if a.name not in snapshot.partitions]
    if missing:
        raise HeadroomError(partitions_text(missing), "is not in the cluster", "Correct the plan, or plan again.")
    known = snapshot.alive | {broker for p in snapshot.partitions.values() for broker in p.replicas}
    unknown = sorted({broker for a in assignments for broker in a.replicas} - known)
    if unknown:
        there = ", ".join(map(str, sorted(known)))
        raise HeadroomError(f"broker {unknown[0]}", "is not in the cluster", f"Name others; there are: {there}.")

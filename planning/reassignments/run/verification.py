"""Where each partition of a plan is on its way to its target replicas."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from enum import Enum

from headroom.planning.log_dirs.progress import DirectoryProgress, DirectoryState
from headroom.planning.reassignments.plan import ReassignmentPlan, TargetAssignment
from headroom.planning.reassignments.run.directories import directory_states
from headroom.planning.reassignments.run.snapshot import RunSnapshot
from headroom.schemas.keys import TopicPartition


class AssignmentStatus(str, Enum):
    """Status of one partition of a plan.

    Attributes:
        DONE: it has its target replicas, and they are in the log directories that the plan names.
        MOVING: its reassignment to them is running, or a copy to such a directory.
        MOVING_ELSEWHERE: a reassignment to other replicas is running.
        NOT_STARTED: it has other replicas, or one is in another log directory, and does not move.
        MISSING: it does not exist.
    """

    DONE = "done"
    MOVING = "moving"
    MOVING_ELSEWHERE = "moving_elsewhere"
    NOT_STARTED = "not_started"
    MISSING = "missing"


@dataclass(frozen=True)
class VerifiedAssignment:
    """One partition of a plan, as it is now.

    Attributes:
        name: topic and number of the partition.
        status: status.
        replicas: its replicas now; empty if it does not exist.
        target: target replicas of the plan.
        missing: target replicas that are not in sync yet.
        directories: replicas for which the plan names a log directory.
    """

    name: TopicPartition
    status: AssignmentStatus
    replicas: tuple[int, ...]
    target: tuple[int, ...]
    missing: tuple[int, ...]
    directories: tuple[DirectoryProgress, ...] = ()


def verify_plan(assignments: Iterable[TargetAssignment], snapshot: RunSnapshot) -> list[VerifiedAssignment]:
    """Return the status of each partition of a plan, in the order of the plan."""
    return [_with_directories(_verify(assignment, snapshot), assignment, snapshot) for assignment in assignments]


def _with_directories(
    verified: VerifiedAssignment, assignment: TargetAssignment, snapshot: RunSnapshot
) -> VerifiedAssignment:
    """Return the status with that of the log directories, which decides where the replicas are done."""
    if assignment.log_dirs is None or verified.status is AssignmentStatus.MISSING:
        return verified
    directories = tuple(directory_states(ReassignmentPlan((assignment,)), snapshot))
    states = {progress.state for progress in directories}
    status = verified.status
    is_at_rest = status in (AssignmentStatus.DONE, AssignmentStatus.NOT_STARTED)
    if is_at_rest and DirectoryState.MOVING in states:
        status = AssignmentStatus.MOVING
    elif status is AssignmentStatus.DONE and states - {DirectoryState.DONE}:
        status = AssignmentStatus.NOT_STARTED
    return replace(verified, status=status, directories=directories)


def _verify(assignment: TargetAssignment, snapshot: RunSnapshot) -> VerifiedAssignment:
    partition, target = snapshot.partitions.get(assignment.name), assignment.replicas
    if partition is None:
        return VerifiedAssignment(assignment.name, AssignmentStatus.MISSING, (), target, target)
    if partition.moving:
        same = partition.target == target
        status = AssignmentStatus.MOVING if same else AssignmentStatus.MOVING_ELSEWHERE
    else:
        status = AssignmentStatus.DONE if partition.replicas == target else AssignmentStatus.NOT_STARTED
    out_of_sync = tuple(broker for broker in target if broker not in partition.isr)
    return VerifiedAssignment(assignment.name, status, partition.replicas, target, out_of_sync)

"""The next step of a partition in a migration, and whether it has come as far as a run is to bring it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from enum import Enum

from headroom.planning.migration.run.planned_step import planned_step
from headroom.planning.migration.run.reopened_step import reopened_step
from headroom.planning.migration.run.seen import RunStep, RunTerms, SeenPartition
from headroom.planning.migration.run.used_step import is_short, used_step
from headroom.schemas.migrations import MigrationStatus, PartitionAgreement

_ORDER = tuple(MigrationStatus)


class RunGoal(str, Enum):
    """How far a run brings its partitions.

    STARTED: the target is in use. MIGRATED: the origin has reached its end offset. AGED: retention has passed there.
    """

    STARTED = "started"
    MIGRATED = "migrated"
    AGED = "aged"


_STATUS_OF = {
    RunGoal.STARTED: MigrationStatus.MIGRATING,
    RunGoal.MIGRATED: MigrationStatus.MIGRATED,
    RunGoal.AGED: MigrationStatus.AGED,
}


def next_step(
    agreement: PartitionAgreement, seen: SeenPartition, agreed: Mapping[str, int], terms: RunTerms, number: int
) -> RunStep:
    """Return the next step of a partition. Steps are small: the one after it follows from another reading.

    Args:
        agreement: what was agreed about it.
        seen: both clusters; the target was read first, and the origin after the routers' reports.
        agreed: number of the migration's agreement that each router keeps to, by its name.
        terms: what the run is asked for.
        number: number of the next agreement of the migration.
    """
    if agreement.reopened_end is not None:
        step = reopened_step(agreement, seen, agreed, terms, number)
    elif agreement.status == MigrationStatus.PLANNED:
        step = planned_step(agreement, seen, agreed, terms, number)
    else:
        step = _with_seal(agreement, used_step(agreement, seen, agreed, terms, number), seen.now_ms)
    if agreement.shielded and step.waits_for and not seen.is_origin_up:
        return replace(step, waits_for="the end of its shield: headroom migration shield --off")
    return step


def _with_seal(agreement: PartitionAgreement, step: RunStep, now_ms: int) -> RunStep:
    """Return a step with the time at which the origin was seen at its end, if it is the one that follows from that."""
    after = step.after
    if after is None or after.ignore_origin or agreement.status != MigrationStatus.MIGRATING:
        return step
    is_sealed = has_reached(after, RunGoal.MIGRATED)
    return step if not is_sealed else replace(step, after=replace(after, sealed_ms=now_ms))


def is_done(agreement: PartitionAgreement, seen: SeenPartition, terms: RunTerms, goal: RunGoal) -> bool:
    """Return whether a run has nothing left to do: its goal is reached, and so is what it may give up.

    Args:
        agreement: what is agreed about a partition now.
        seen: both clusters.
        terms: what the run is asked for.
        goal: how far it brings its partitions.
    """
    if not has_reached(agreement, goal) or agreement.status == MigrationStatus.AGED:
        return has_reached(agreement, goal)
    is_given_up = agreement.status == MigrationStatus.MIGRATED or not seen.is_origin_up
    if terms.ignore_origin and is_given_up:
        return False
    # It may be a moment after a leader switch: that is waited for.
    return not is_short(agreement, seen)


def has_reached(agreement: PartitionAgreement, goal: RunGoal) -> bool:
    """Return whether a partition has come so far."""
    return _ORDER.index(MigrationStatus(agreement.status)) >= _ORDER.index(_STATUS_OF[goal])

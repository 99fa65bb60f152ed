"""A nearer end offset for a routed partition whose log does not get to the agreed one, and the steps until it holds.

The partition is planned again, with the end offset before it in the record. Routers that know the nearer one hold what
lands from there on, and readers wait there. Those that do not know it yet keep to the one before. So either of the two
may hold in the end: the nearer one once all routers have agreed to it and nothing has got so far, the other one at any
time.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from headroom.planning.migration.run.planned_step import (
    LEADER_END,
    NO_ANSWER,
    agreed_again,
    reading_of,
    routed_step,
)
from headroom.planning.migration.run.seen import RunStep, RunTerms, SeenPartition
from headroom.schemas.migrations import MigrationMethod, MigrationStatus, PartitionAgreement

# An end offset is far if the log does not get there in so many times of a preparation. One that is agreed now is one
# time ahead, so that it is not given up for another one at once.
_FAR = 2


def nearer_end(
    agreement: PartitionAgreement, seen: SeenPartition, terms: RunTerms, number: int
) -> PartitionAgreement | None:
    """Return an agreement that opens the end offset of a migrating partition again; None if it is not to be opened.

    Args:
        agreement: what was agreed about it.
        seen: both clusters; the target was read before the origin.
        terms: what the run is asked for.
        number: number of the next agreement of the migration.
    """
    end, base, log_end = agreement.end_offset, agreement.target_base_offset, seen.leader_end
    is_open = agreement.method == MigrationMethod.ROUTED and not agreement.origin_closed
    if not is_open or agreement.status != MigrationStatus.MIGRATING or agreement.origin_end is not None:
        return None
    # A record on the target has passed the end offset.
    if end is None or base is None or log_end is None or log_end >= end or seen.target.end != base:
        return None
    again = agreed_again(agreement, reading_of(seen), terms, number)
    if again is None or again.end_offset is None or end - log_end <= _FAR * (again.end_offset - log_end):
        return None
    return replace(again, status=MigrationStatus.PLANNED.value, reopened_end=end)


def reopened_step(
    agreement: PartitionAgreement, seen: SeenPartition, agreed: Mapping[str, int], terms: RunTerms, number: int
) -> RunStep:
    """Return the next step of a partition whose end offset is open again.

    If producers write on, another nearer end offset is agreed. If they get to the one before, or if a record is on the
    target, that one holds. If the origin is given up, that is one step with it: in between, routers would acknowledge
    what they hold, and nobody would read it there.

    Args:
        agreement: what was agreed about it.
        seen: both clusters; the origin was read after the routers' reports, and the target before them.
        agreed: number of the migration's agreement that each router keeps to, by its name.
        terms: what the run is asked for.
        number: number of the next agreement of the migration.
    """
    before = agreement.reopened_end or 0
    settled = replace(agreement, status=MigrationStatus.MIGRATING.value, end_offset=before, reopened_end=None)
    if not seen.is_origin_up:
        # It is given up by the end offset that holds for every router.
        left = replace(settled, status=MigrationStatus.AGED.value, ignore_origin=True)
        return RunStep(left) if terms.ignore_origin and seen.is_origin_down else RunStep(waits_for=NO_ANSWER)
    if seen.leader_end is None or seen.target.end is None:
        return RunStep(waits_for=LEADER_END if seen.leader_end is None else "the log end of the target")
    if seen.leader_end >= before or seen.target.end != agreement.target_base_offset:
        return RunStep(settled)
    step = routed_step(agreement, seen, agreed, terms, number)
    after = step.after
    if after is None:
        return step
    if after.status == MigrationStatus.MIGRATING:
        return RunStep(replace(after, reopened_end=None))
    return step if after.end_offset is not None and after.end_offset < before else RunStep(settled)

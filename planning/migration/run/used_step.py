"""Next step of a partition whose target is in use: sealed, aged, or ended before its end offset."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from headroom.planning.migration.agreement import missing_routers
from headroom.planning.migration.run.reopened_step import nearer_end
from headroom.planning.migration.run.seen import RunStep, RunTerms, SeenPartition
from headroom.schemas.errors import HeadroomError
from headroom.schemas.migrations import MigrationMethod, MigrationStatus, PartitionAgreement
from headroom.schemas.text.amounts import join_names


def used_step(
    agreement: PartitionAgreement, seen: SeenPartition, agreed: Mapping[str, int], terms: RunTerms, number: int
) -> RunStep:
    """Return the next step of a partition whose target is in use.

    Args:
        agreement: what was agreed about it.
        seen: both clusters; the origin was read after the routers' reports.
        agreed: number of the migration's agreement that each router keeps to, by its name.
        terms: what the run is asked for.
        number: number of the next agreement of the migration.
    """
    if agreement.status == MigrationStatus.AGED:
        return RunStep()
    is_migrated = agreement.status == MigrationStatus.MIGRATED
    # An origin that still gets records is not ignored: they would be lost.
    if agreement.ignore_origin or (terms.ignore_origin and (is_migrated or seen.is_origin_down)):
        if agreement.end_offset is None:
            return RunStep(waits_for="the end offset, which only the origin has")
        return RunStep(replace(agreement, ignore_origin=True, status=MigrationStatus.AGED.value))
    if not seen.is_origin_up:
        return RunStep(waits_for="the origin to answer")
    if agreement.end_offset is None:
        return _known_end(agreement, seen)
    lost = lost_range(agreement, seen)
    if lost is not None:
        if terms.accept_loss or agreement.origin_closed:
            return _accept_loss(agreement, lost[0], agreed, terms, number)
        return _shorter(agreement, lost)
    nearer = nearer_end(agreement, seen, terms, number) if terms.end_here else None
    if nearer is not None:
        return RunStep(nearer)
    return _seal(agreement, seen, limit_of(agreement))


def limit_of(agreement: PartitionAgreement) -> int | None:
    """Return the offset at which the origin's log ends for readers; None if the end offset is unknown."""
    end, lost_from = agreement.end_offset, agreement.origin_end
    return end if end is None or lost_from is None else min(end, lost_from)


def lost_range(agreement: PartitionAgreement, seen: SeenPartition) -> tuple[int, int] | None:
    """Return the offsets below the end offset that the origin had and has lost, the second exclusive; None if none.

    The log end is a high watermark, which may be behind for a moment after a leader switch.

    Args:
        agreement: what was agreed about the partition.
        seen: both clusters; the target was read before the origin.
    """
    end, log_end = agreement.end_offset, seen.log.end
    if not seen.is_quiet or end is None or log_end is None or not is_short(agreement, seen):
        return None
    return log_end, end


def is_short(agreement: PartitionAgreement, seen: SeenPartition) -> bool:
    """Return whether the origin's log ends below its end offset, where it has been, and that is not accepted.

    It was there if its partition is migrated, if that was its log end, or if a routed record is on the target.

    Args:
        agreement: what was agreed about the partition.
        seen: both clusters; the target was read before the origin.
    """
    end, log_end = agreement.end_offset, seen.log.end
    if end is None or log_end is None or agreement.origin_end is not None or log_end >= end:
        return False
    target_end, base = seen.target.end, agreement.target_base_offset
    return (
        agreement.status == MigrationStatus.MIGRATED
        or agreement.method != MigrationMethod.ROUTED
        or (target_end is not None and base is not None and target_end > base)
    )


def _shorter(agreement: PartitionAgreement, lost: tuple[int, int]) -> RunStep:
    first, end = lost
    rule = f"has lost {end - first:,} records on the origin, at offsets {first:,} to {end - 1:,}: its log ends before E"
    remedy = "Bring back a replica that has them. If there is none: --accept-loss, then readers go on at the target."
    return RunStep(refusal=HeadroomError(str(agreement.name), rule, remedy))


def _accept_loss(
    agreement: PartitionAgreement, log_end: int, agreed: Mapping[str, int], terms: RunTerms, number: int
) -> RunStep:
    """Agree where the origin's log ends, once no router writes there any more.

    Below the end offset it has room again: what a router that knows of nothing sends there is acknowledged.

    Args:
        agreement: what was agreed about the partition.
        log_end: where the log ends, which has rested; read after ``agreed``.
        agreed: number of the migration's agreement that each router keeps to, by its name.
        terms: what the run is asked for.
        number: number of the next agreement of the migration.
    """
    if agreement.method == MigrationMethod.ROUTED:
        routers = terms.routers or agreement.routers
        if not agreement.origin_closed or set(routers) != set(agreement.routers):
            return RunStep(replace(agreement, origin_closed=True, number=number, routers=routers))
        missing = missing_routers(agreement, agreed)
        if missing:
            return RunStep(waits_for=f"routers to leave the origin: {join_names(missing)}")
    return RunStep(replace(agreement, origin_end=log_end))


def _known_end(agreement: PartitionAgreement, seen: SeenPartition) -> RunStep:
    if seen.log.stable is None or not seen.is_quiet:
        return RunStep(waits_for="the origin's last stable offset, and that it stays")
    return RunStep(replace(agreement, end_offset=seen.log.stable))


def _seal(agreement: PartitionAgreement, seen: SeenPartition, limit: int | None) -> RunStep:
    start, stable = seen.log.start, seen.log.stable
    if limit is None or stable is None:
        return RunStep(waits_for="the origin's last stable offset")
    if agreement.status == MigrationStatus.MIGRATING and stable < limit:
        return RunStep(waits_for=f"{limit - stable:,} offsets on the origin")
    if start is not None and start >= limit:
        return RunStep(replace(agreement, status=MigrationStatus.AGED.value))
    if agreement.status == MigrationStatus.MIGRATING:
        return RunStep(replace(agreement, status=MigrationStatus.MIGRATED.value))
    if is_short(agreement, seen):
        return RunStep(waits_for="the origin's log, which ends before its end offset, to come back or to stay")
    return RunStep(waits_for="retention on the origin")

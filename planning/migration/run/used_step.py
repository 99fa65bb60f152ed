"""Next step of a partition whose target is in use: sealed, aged, or ended before its end offset."""

from __future__ import annotations

from dataclasses import replace

from headroom.planning.migration.run.seen import RunStep, RunTerms, SeenPartition
from headroom.schemas.errors import HeadroomError
from headroom.schemas.migrations import MigrationMethod, MigrationStatus, PartitionAgreement


def used_step(agreement: PartitionAgreement, seen: SeenPartition, terms: RunTerms) -> RunStep:
    """Return the next step of a partition whose target is in use.

    Args:
        agreement: what was agreed about it.
        seen: both clusters.
        terms: what the run is asked for.
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
        return _shorter(agreement, lost, terms)
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


def _shorter(agreement: PartitionAgreement, lost: tuple[int, int], terms: RunTerms) -> RunStep:
    first, end = lost
    if terms.accept_loss:
        return RunStep(replace(agreement, origin_end=first))
    rule = f"has lost {end - first:,} records on the origin, at offsets {first:,} to {end - 1:,}: its log ends before E"
    remedy = "Bring back a replica that has them. If there is none: --accept-loss, then readers go on at the target."
    return RunStep(refusal=HeadroomError(str(agreement.name), rule, remedy))


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

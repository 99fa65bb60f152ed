"""Rules of an agreement: when a migration starts, which changes are allowed, and where a group of readers continues."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import Enum

from headroom.planning.migration.known import known_amount, known_offset
from headroom.planning.migration.split import Split, client_offset
from headroom.schemas.keys import TopicPartition
from headroom.schemas.migrations import (
    AcknowledgedEnd,
    MigrationMethod,
    MigrationStatus,
    PartitionAgreement,
    RouterReport,
)

# Offsets on the origin by id of its cluster and partition, and by leader epoch.
EndsByEpoch = Mapping[tuple[str, TopicPartition], Mapping[int, int]]

_ORDER = tuple(MigrationStatus)


class NextStep(str, Enum):
    """What happens next to a planned partition.

    WAIT: routers are missing, or the origin's position is unknown. START: nothing at or beyond the end offset was
    acknowledged or read. AGREE_AGAIN: another end offset is needed.
    """

    WAIT = "wait"
    START = "start"
    AGREE_AGAIN = "agree_again"


@dataclass(frozen=True)
class Readiness:
    """Whether a planned partition can start.

    Attributes:
        step: what happens next.
        missing: named routers that have not agreed yet, in their order.
    """

    step: NextStep
    missing: tuple[str, ...]


def readiness(
    agreement: PartitionAgreement, agreed: Mapping[str, int], position: int | None, offsets_per_s: float | None = None
) -> Readiness:
    """Return whether a planned partition can start.

    A router that has agreed acknowledges and reads nothing from the end offset on. One that has not may have done so
    only if the origin's log went beyond the end offset. So the position has to be read after the routers' reports.

    Args:
        agreement: what was agreed about the partition.
        agreed: number of the migration's agreement that each router keeps to, by its name.
        position: end of the origin's log on its leader, read after ``agreed``; None if unknown. The high watermark is
            none: with acks=1 a leader acknowledges records beyond it.
        offsets_per_s: rate at which the origin's log grows, offsets per second; None if unknown.
    """
    missing = missing_routers(agreement, agreed)
    end, now = known_offset(agreement.end_offset), known_offset(position)
    if end is None or now is None:
        return Readiness(NextStep.WAIT, missing)
    never = now < end and known_amount(offsets_per_s) == 0
    if now > end or never:
        return Readiness(NextStep.AGREE_AGAIN, missing)
    return Readiness(NextStep.WAIT if missing else NextStep.START, missing)


def agreed_numbers(reports: Mapping[str, RouterReport], migration: str) -> dict[str, int]:
    """Return the number of a migration's agreement that each router keeps to, by its name.

    Args:
        reports: reports of routers by name.
        migration: name of the migration.
    """
    numbers = {name: report.agreed.get(migration) for name, report in reports.items()}
    return {name: number for name, number in numbers.items() if number is not None}


def acknowledged_ends(reports: Iterable[RouterReport], agreements: Iterable[PartitionAgreement]) -> EndsByEpoch:
    """Return what routers report as acknowledged, the furthest of them by agreed partition and leader epoch.

    Reports outlive agreements. What is of another cluster, or of a topic that was deleted since, says nothing of the
    agreed one, which may have the same name.

    Args:
        reports: reports of the routers.
        agreements: partitions of the migrations.
    """
    noted: dict[TopicPartition, list[AcknowledgedEnd]] = defaultdict(list)
    for report in reports:
        for end in report.acknowledged:
            noted[TopicPartition(end.topic, end.partition)].append(end)
    if not noted:
        # Most of the time no leader was replaced, and there may be tens of thousands of partitions.
        return {}
    ends: dict[tuple[str, TopicPartition], dict[int, int]] = {}
    for agreement in agreements:
        of_partition: dict[int, int] = {}
        for end in noted.get(agreement.name, ()):
            if _is_of(end, agreement):
                of_partition[end.leader_epoch] = max(end.end, of_partition.get(end.leader_epoch, 0))
        if of_partition:
            ends[agreement.origin_name] = of_partition
    return ends


def _is_of(end: AcknowledgedEnd, agreement: PartitionAgreement) -> bool:
    """Return whether a note may be of the agreed topic; one without ids, as of an earlier library, may be."""
    pairs = (
        (end.origin_cluster_id, agreement.origin_cluster_id),
        (end.origin_topic_id, agreement.origin_topic_id),
    )
    return all(noted is None or agreed is None or noted == agreed for noted, agreed in pairs)


def incomplete_migrations(reports: Iterable[RouterReport]) -> frozenset[str]:
    """Return the migrations of which a router has dropped some of what leaders had acknowledged to it.

    Args:
        reports: reports of the routers.
    """
    return frozenset(migration for report in reports for migration in report.incomplete)


def missing_routers(agreement: PartitionAgreement, agreed: Mapping[str, int]) -> tuple[str, ...]:
    """Return the named routers that have not agreed yet, in their order.

    Args:
        agreement: what was agreed about the partition.
        agreed: number of the migration's agreement that each router keeps to, by its name.
    """
    return tuple(name for name in agreement.routers if agreed.get(name, -1) < agreement.number)


def split_of(agreement: PartitionAgreement, origin_up: bool = True) -> Split:
    """Return the split that was agreed.

    Args:
        agreement: what was agreed about the partition.
        origin_up: whether the origin can be read.
    """
    base = agreement.target_base_offset
    return Split(
        agreement.end_offset,
        # -1 is unknown to the split: then nothing goes to the target.
        -1 if base is None else base,
        agreement.status,
        agreement.ignore_origin,
        origin_up,
        agreement.origin_end,
        agreement.origin_closed,
        agreement.reopened_end,
    )


def is_withdrawable(status: str, reopened_end: int | None) -> bool:
    """Return whether a partition may leave its migration: no client can be at or beyond an end offset.

    Args:
        status: its status.
        reopened_end: end offset with which the target was in use, while a nearer one is agreed; None otherwise.
    """
    return status == MigrationStatus.PLANNED and reopened_end is None


def refused_change(before: PartitionAgreement | None, after: PartitionAgreement | None) -> str | None:
    """Return why an agreement must not be changed like this; None if it may.

    Client offsets never jump: once the target is in use, the end offset and the base are fixed. Only while nothing has
    got so far, a nearer end offset may be agreed: the partition is planned again, and the one before stays in force for
    routers that do not know the nearer one.

    Args:
        before: agreement that is in the topic; None if there is none.
        after: agreement to write; None to withdraw it.
    """
    if after is None:
        return None if before is None or _is_free(before) else "the target is in use already"
    if not _is_planned(after) and after.target_base_offset is None:
        return "the target's base offset is unknown, and the target would be in use"
    if before is None:
        return None if _is_free(after) else "a migration begins as planned"
    if before.migration != after.migration and not _is_free(before):
        return f"the partition belongs to the migration {before.migration}"
    if _clusters_and_ids(before) != _clusters_and_ids(after):
        return "the clusters or the topics are other ones"
    if after.number < before.number and before.migration == after.migration:
        return f"agreement {after.number} is older than agreement {before.number}"
    if before.origin_dropped and not after.origin_dropped:
        return "the topic on the origin is deleted already"
    if after.origin_dropped and after.status != MigrationStatus.AGED:
        return "the topic on the origin is needed until retention has passed its end offset"
    if before.reopened_end is not None or after.reopened_end is not None:
        return _refused_reopening(before, after)
    return _refused_terms(before, after)


def _refused_reopening(before: PartitionAgreement, after: PartitionAgreement) -> str | None:
    """Return why an end offset is not opened again like this, or not settled; None if it is."""
    if before.target_base_offset != after.target_base_offset:
        return "the target's base offset is fixed"
    # By the end offset that also those routers keep to which do not know the nearer one.
    is_given_up = (
        after.ignore_origin and after.status == MigrationStatus.AGED and after.end_offset == before.reopened_end
    )
    if (after.ignore_origin and not is_given_up) or after.origin_closed or after.origin_end is not None:
        return "the end offset is open, so that the origin is not left"
    if after.reopened_end is None:
        is_one_of_both = after.end_offset in (before.end_offset, before.reopened_end)
        is_settled = is_given_up or (after.status == MigrationStatus.MIGRATING and is_one_of_both)
        return None if is_settled else "the end offset is one of the two that routers keep to"
    known = before.reopened_end if _is_planned(before) else before.end_offset
    is_open = before.reopened_end is not None or before.status == MigrationStatus.MIGRATING
    if not is_open or before.ignore_origin or before.origin_closed or before.origin_end is not None:
        return f"the end offset of a partition that is {before.status} and has left the origin is not opened again"
    if after.method != MigrationMethod.ROUTED or not _is_planned(after):
        return "an end offset is opened again for routers, which agree to another one"
    if after.reopened_end != known or after.end_offset is None or known is None or after.end_offset >= known:
        return "another end offset is nearer than the one with which the target was in use"
    is_other = before.reopened_end is None or after.end_offset != before.end_offset
    return "another end offset needs a new agreement" if is_other and after.number == before.number else None


def _refused_terms(before: PartitionAgreement, after: PartitionAgreement) -> str | None:
    if _ORDER.index(MigrationStatus(after.status)) < _ORDER.index(MigrationStatus(before.status)):
        return f"{before.status} does not become {after.status}"
    if before.end_offset is not None and after.end_offset != before.end_offset:
        if not (_is_planned(before) and _is_planned(after)):
            return "the end offset is fixed"
        if after.number == before.number:
            return "another end offset needs a new agreement"
    # A known one also while it is planned: producers that are drained may begin there at once.
    is_fixed = before.target_base_offset is not None or not _is_planned(before)
    if is_fixed and after.target_base_offset != before.target_base_offset:
        return "the target's base offset is fixed"
    if _is_planned(before):
        return None
    if before.ignore_origin and not after.ignore_origin:
        return "readers have given up the origin already"
    if before.origin_closed and not after.origin_closed:
        return "producers have left the origin already"
    if before.origin_end is not None and after.origin_end != before.origin_end:
        return "the origin's end is fixed"
    return None


def _is_planned(agreement: PartitionAgreement) -> bool:
    return agreement.status == MigrationStatus.PLANNED


def _is_free(agreement: PartitionAgreement) -> bool:
    return is_withdrawable(agreement.status, agreement.reopened_end)


def _clusters_and_ids(agreement: PartitionAgreement) -> tuple[str | None, ...]:
    return (
        agreement.origin_cluster_id,
        agreement.target_cluster_id,
        agreement.origin_topic_id,
        agreement.target_topic_id,
    )


def resumed_at(split: Split | None, origin_committed: int | None, target_committed: int | None) -> int | None:
    """Return the client offset at which a group continues; None if it has committed none.

    A reader commits the end offset on the origin before it commits anything on the target. So a group that is below the
    end offset on the origin has not passed it, whatever it committed on a target that was in use for something else.
    Once the origin is over, it commits on the target alone.

    Args:
        split: partition; None without a migration.
        origin_committed: offset committed on the origin; None or -1 if there is none.
        target_committed: offset committed on the target; None or -1 if there is none.
    """
    on_origin = known_offset(origin_committed)
    if split is None or split.end_offset is None or not split.is_in_use:
        return on_origin
    on_target = client_offset(split, target_committed)
    if on_target is None:
        # Whatever it read on the origin from the end offset on was dropped.
        return on_origin if on_origin is None else min(on_origin, split.end_offset)
    if split.is_origin_over:
        return on_target
    if not split.origin_up:
        # The base alone is no sign of it on a target that was in use before: only the origin knows.
        is_of_before = on_origin is None and split.target_base_offset > 0 and on_target == split.end_offset
        return None if is_of_before else on_target
    return on_target if on_origin is None or on_origin >= split.end_offset else on_origin

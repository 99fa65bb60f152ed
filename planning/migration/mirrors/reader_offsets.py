"""Offset at which a consumer group continues on the target, with what it rests on."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from enum import Enum

from headroom.planning.migration.mirrors.exact_place import ExactPlace
from headroom.planning.migration.offset_syncs import nearest_sync
from headroom.planning.migration.readings import LogOffsets
from headroom.schemas.keys import TopicPartition


class OffsetBasis(str, Enum):
    """What an offset on the target rests on.

    NEXT: the group's next record was found there. BEFORE: the record before it was, which is the last one that it has
    read. SYNC: MirrorMaker's nearest offset sync. SAME: a link keeps offsets.
    """

    NEXT = "next"
    BEFORE = "before"
    SYNC = "sync"
    SAME = "same"


@dataclass(frozen=True)
class ReaderOffset:
    """Offset of a consumer group on the origin, and where it continues on the target.

    Attributes:
        name: partition by its name on the origin.
        target_name: its name on the target.
        committed: committed offset on the origin.
        target_offset: offset on the target; None if unknown.
        basis: what it rests on; None if unknown.
        sync: the nearest offset sync, as offsets on the origin and on the target; None without one.
        may_repeat: offsets of the origin that the group has read, and may read again; None if unknown.
        skipped: records that the target has deleted before that offset, and the group has not read; None if unknown.
        now: the group's committed offset on the target; None if it has none.
        reason: why there is no offset, or a rougher one than asked for; empty otherwise.
    """

    name: TopicPartition
    target_name: TopicPartition
    committed: int
    target_offset: int | None = None
    basis: OffsetBasis | None = None
    sync: tuple[int, int] | None = None
    may_repeat: int | None = None
    skipped: int | None = None
    now: int | None = None
    reason: str = ""


def by_syncs(
    reader: ReaderOffset, log: LogOffsets, target: LogOffsets, syncs: Iterable[tuple[int, int]]
) -> ReaderOffset:
    """Return where a reader continues by the offset syncs of MirrorMaker 2.

    Args:
        reader: the reader.
        log: log of the origin.
        target: log of the target.
        syncs: syncs of the partition, in the order of their topic, which was read to its end.
    """
    sync = nearest_sync(syncs, reader.committed)
    reader = replace(reader, sync=sync)
    if (reason := _unusable(reader, log)) is not None:
        return replace(reader, reason=reason)
    if sync is None:
        reason = "no offset sync is at or before it, or a rewind has voided them; --exact needs none"
        return replace(reader, reason=reason)
    offset = sync[1] + (sync[0] < reader.committed)
    may_repeat = max(0, reader.committed - sync[0] - 1)
    return _within(reader, target, offset, OffsetBasis.SYNC, may_repeat)


def by_place(rough: ReaderOffset, log: LogOffsets, target: LogOffsets, place: ExactPlace | None) -> ReaderOffset:
    """Return where a reader continues by the records themselves, otherwise by the nearest sync.

    Args:
        rough: where it continues by syncs.
        log: log of the origin.
        target: log of the target.
        place: where its next record, or the one before it, was found; None if neither was.
    """
    if _unusable(rough, log) is not None:
        return rough
    if place is None:
        return replace(rough, reason=f"its next record was not found on the target; {rough.reason or 'by the sync'}")
    basis = OffsetBasis.NEXT if place.is_next else OffsetBasis.BEFORE
    return _within(replace(rough, reason=""), target, place.offset, basis, 0)


def by_link(reader: ReaderOffset, log: LogOffsets, target: LogOffsets) -> ReaderOffset:
    """Return where a reader continues on a target that a link keeps at the same offsets.

    Args:
        reader: the reader.
        log: log of the origin, read after that of the target.
        target: log of the target.
    """
    if (reason := _unusable(reader, log)) is not None:
        return replace(reader, reason=reason)
    if target.end is not None and log.end is not None and target.end > log.end:
        reason = f"diverged: the target ends at {target.end:,}, beyond the origin's {log.end:,}"
        return replace(reader, reason=reason)
    if target.end is not None and reader.committed > target.end:
        return replace(reader, reason=f"the link has copied only up to offset {target.end:,}")
    return _within(reader, target, reader.committed, OffsetBasis.SAME, 0)


def _unusable(reader: ReaderOffset, log: LogOffsets) -> str | None:
    """Return why a committed offset stands for no record of the origin now; None if it does."""
    if log.start is None or log.end is None:
        return "the log of the origin is unknown: see that the partition has a leader"
    if reader.committed > log.end:
        return f"it is beyond the origin's log end {log.end:,}: the topic was recreated or truncated"
    return None


def _within(reader: ReaderOffset, target: LogOffsets, offset: int, basis: OffsetBasis, may_repeat: int) -> ReaderOffset:
    """Return a reader with its offset, which is not before the log start of the target, nor behind its end."""
    if target.start is None or target.end is None:
        return replace(reader, reason="the log of the target is unknown: see that the partition has a leader there")
    if offset > target.end:
        reason = (
            f"it would be {offset:,}, beyond the target's log end {target.end:,}: that topic was recreated or truncated"
        )
        return replace(reader, reason=reason)
    skipped = max(0, target.start - offset)
    return replace(reader, target_offset=max(offset, target.start), basis=basis, may_repeat=may_repeat, skipped=skipped)

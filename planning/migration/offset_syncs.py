"""Offset syncs of MirrorMaker 2: the offset on the target for an offset on the origin."""

from __future__ import annotations

from collections.abc import Iterable


def translate(syncs: Iterable[tuple[int, int]], offset: int | None) -> int | None:
    """Return the offset on the target at which a reader of the origin continues without skipping a record.

    A sync says at which offset of the target a record of the origin is. The mirror writes all later records somewhere
    behind it: there are gaps, and records that were mirrored twice. So a reader that is past the record continues one
    offset after it, and may read records again.

    That would skip records after a rewind of the target (truncated, or deleted and created again), because its offsets
    have other records now. After a rewind of the origin the earlier syncs are about other records. Either voids them.
    A reader may still skip records in three cases, which the syncs do not show:

    - The target lost records. Only a sync with a lower offset than the one before shows that.
    - MirrorMaker ended before it had written the sync of a rewind.
    - The offset is of the origin's log before a rewind. It is translated as one of the present log.

    Args:
        syncs: offset on the origin and on the target, in the order of the offset syncs topic, of one partition.
        offset: offset on the origin.

    Returns:
        Offset on the target; None if no valid sync is at or before the offset.

    Source: Kafka 4.0, ``OffsetSyncStore``. It keeps at most 64 syncs, so its answers for older offsets are further
    behind. Only rewinds of the origin void its syncs.
    """
    sync = nearest_sync(syncs, offset)
    return None if sync is None or offset is None else sync[1] + (sync[0] < offset)


def nearest_sync(syncs: Iterable[tuple[int, int]], offset: int | None) -> tuple[int, int] | None:
    """Return the sync that ``translate`` uses for an offset; None if no valid one is at or before it.

    Args:
        syncs: offset on the origin and on the target, in the order of the offset syncs topic, of one partition.
        offset: offset on the origin.
    """
    if offset is None or offset < 0:
        return None
    last: tuple[int, int] | None = None
    nearest: tuple[int, int] | None = None
    for origin, target in syncs:
        if origin < 0 or target < 0:
            continue
        if last is not None and (origin < last[0] or target < last[1]):
            nearest = None
        last = (origin, target)
        if origin <= offset:
            nearest = last
    return nearest

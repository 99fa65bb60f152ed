"""How far a consumer group is with one partition of a migration."""

from __future__ import annotations

from headroom.planning.migration.agreed_end import time_to
from headroom.planning.migration.agreement import resumed_at
from headroom.planning.migration.known import known_float, known_offset
from headroom.planning.migration.plan.retention import LogRetention
from headroom.planning.migration.progress.progress import GroupProgress
from headroom.planning.migration.progress.reading import GroupReading, MigrationReading
from headroom.planning.migration.readings import read_rate
from headroom.planning.migration.split import Split, client_offset, place


def group_progress(
    reading: MigrationReading, split: Split, retention: LogRetention, group: GroupReading
) -> GroupProgress:
    """Return how far a group is with the partition of a reading.

    Args:
        reading: the partition.
        split: what was agreed about it.
        retention: what retention on the origin does to its readers.
        group: the group.
    """
    # What was read of an origin that does not answer now is of another time.
    committed = group.origin_committed if reading.is_origin_up else None
    offset = resumed_at(split, committed, group.target_committed)
    rate = known_float(read_rate(group.read_offsets_per_s, group.active))
    end = reading.last_origin_end
    has_moved = _has_moved(reading, split, group)
    if has_moved:
        return GroupProgress(group.group, client_offset(split, group.target_committed), 0, rate, 0.0, 0, 0)
    if offset is None or end is None or _is_beyond(reading.origin.end, offset, end, split.is_in_use):
        is_aged = offset is None and _is_aged(reading, end)
        return GroupProgress(group.group, offset, 0 if is_aged else None, rate, lost_offsets=0 if is_aged else None)
    # Below the last end of an origin that is not over, readers are not on the target.
    if offset >= end or split.is_origin_over:
        placed = place(split, offset)
        if placed is not None and placed.side == "target":
            return GroupProgress(group.group, offset, 0, rate, 0.0, placed.skipped, placed.skipped)
    if has_moved is None and offset < end:
        return GroupProgress(group.group, offset, None, rate)
    left = max(0, end - offset)
    kept = retention.of_reader(offset, rate)
    return GroupProgress(
        group.group,
        offset,
        left,
        rate,
        time_to(offset, end, rate),
        _at_most(kept.lost_offsets, left),
        _at_most(kept.gone_offsets, left),
        kept.kept_s,
        kept.enough_retention_ms,
    )


def _has_moved(reading: MigrationReading, split: Split, group: GroupReading) -> bool | None:
    """Return whether a group reads the copies on the target, whatever it committed last on the origin; None if unknown.

    Nothing shows on the origin that a group was moved by hand to a mirror or a link. MirrorMaker commits offsets on the
    target too, of groups that have no members there.
    """
    committed, base = known_offset(group.target_committed), known_offset(split.target_base_offset)
    if not reading.is_copied or committed is None or group.active is True:
        return False
    if split.is_in_use and base is not None and committed > base:
        # Behind all copies of what is below E.
        return True
    return True if group.active is False and group.has_grown_on_target and group.target_active is not False else None


def partition_retention(reading: MigrationReading) -> LogRetention:
    """Return what retention on the origin does to the readers of a partition.

    Once records from E on follow, the newest one says nothing about the age of the last one below E.
    """
    end, log_end = reading.last_origin_end, known_offset(reading.origin.end)
    is_followed = end is not None and log_end is not None and log_end > end
    age_s = reading.age_s(reading.end_newest_ms) if is_followed else reading.newest_age_s
    return LogRetention(reading.rules, reading.origin, age_s, end, reading.switch_in_s)


def _is_beyond(log_end: int | None, offset: int, end: int, is_in_use: bool) -> bool:
    """Return whether a group has committed what the log does not have: it was recreated or truncated."""
    return log_end is not None and log_end < offset and (offset < end or not is_in_use)


def _is_aged(reading: MigrationReading, end: int | None) -> bool:
    """Return whether the origin has nothing below E, so that also a group without a committed offset misses nothing."""
    start = known_offset(reading.origin.start)
    return start is not None and end is not None and start >= end


def _at_most(offsets: int | None, left: int) -> int | None:
    return None if offsets is None else min(offsets, left)

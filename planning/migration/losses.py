"""Records of the origin that a migration loses: at an unclean switch of a leader, and to retention."""

from __future__ import annotations

import math

from headroom.planning.migration.known import known_amount, known_offset


def lost_at_switch(acknowledged_end: int | None, epoch_end: int | None, end_offset: int | None) -> int | None:
    """Return how many acknowledged offsets below the end offset a new leader of the origin does not have.

    Args:
        acknowledged_end: offset after the last one that the leader before acknowledged.
        epoch_end: offset after the last one of that leader's epoch in the log of the new leader.
        end_offset: agreed end offset; offsets from there on are the target's.

    Returns:
        Offsets; None if one of the three is unknown.
    """
    acknowledged, kept, end = known_offset(acknowledged_end), known_offset(epoch_end), known_offset(end_offset)
    if acknowledged is None or kept is None or end is None:
        return None
    return max(0, min(acknowledged, end) - kept)


def lost_to_retention(left: int | None, read_offsets_per_s: float | None, kept_s: float | None) -> int | None:
    """Return how many offsets retention deletes on the origin before a reader gets to them.

    Args:
        left: offsets below the end offset that the reader still has to read.
        read_offsets_per_s: rate at which it reads, offsets per second.
        kept_s: seconds until retention may delete the last record below the end offset; None if never.

    Returns:
        left - rate x time, rounded up to a whole offset, at least 0; None if that is unknown.
    """
    if kept_s is None or (left is not None and left <= 0):
        return 0
    if left is None or read_offsets_per_s is None:
        return None
    if _reads_twice(left, read_offsets_per_s, kept_s):
        return 0
    rate, time_s = known_amount(read_offsets_per_s), known_amount(kept_s)
    if rate is None or time_s is None:
        return None
    return max(0, math.ceil(left - rate * time_s))


def _reads_twice(left: int, read_offsets_per_s: float, kept_s: float) -> bool:
    """Return whether a reader could read twice as much in time. Floats show that, and exact numbers take far longer."""
    if read_offsets_per_s <= 0 or kept_s <= 0:
        return False
    return 2 * left < read_offsets_per_s * kept_s < math.inf

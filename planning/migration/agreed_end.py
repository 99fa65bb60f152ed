"""End offset that both clusters agree on, and the time until the origin reaches it."""

from __future__ import annotations

import math

from headroom.planning.migration.known import known_amount, known_float, known_offset

# Greatest offset that Kafka has.
_MOST = 2**63 - 1


def end_offset(position: int | None, offsets_per_s: float | None, prepare_s: float | None) -> int | None:
    """Return the end offset of a partition on the origin, exclusive: the target's first record has it as client offset.

    Args:
        position: log end offset of the origin now.
        offsets_per_s: rate at which the origin's log grows, offsets per second.
        prepare_s: time that the switch needs to be prepared, seconds.

    Returns:
        position + rate x time, rounded up to a whole offset; None if one of them is unknown or negative, or if Kafka
        has no such offset.
    """
    start, rate, time_s = known_offset(position), known_amount(offsets_per_s), known_amount(prepare_s)
    if start is None or rate is None or time_s is None:
        return None
    end = start + math.ceil(rate * time_s)
    return end if end <= _MOST else None


def reached_in_s(position: int | None, offsets_per_s: float | None, end_offset: int | None) -> float | None:
    """Return the seconds until the origin's log reaches its end offset.

    Args:
        position: log end offset of the origin now.
        offsets_per_s: rate at which the origin's log grows, offsets per second.
        end_offset: agreed end offset.

    Returns:
        Seconds; 0.0 if it is there already, at whatever rate; None if it never gets there, or if that is unknown.
    """
    start, end = known_offset(position), known_offset(end_offset)
    if start is None or end is None:
        return None
    return 0.0 if start >= end else time_to(start, end, known_float(offsets_per_s))


def time_to(position: int, end_offset: int, known_per_s: float | None) -> float | None:
    """Return ``reached_in_s`` of known offsets and a rate of ``known_float``, for thousands of readers.

    Args:
        position: offset now.
        end_offset: offset to reach.
        known_per_s: rate, offsets per second; None if unknown.
    """
    if position >= end_offset:
        return 0.0
    if not known_per_s:
        return None
    seconds = (end_offset - position) / known_per_s
    return seconds if math.isfinite(seconds) else None

"""Whether a partition of the origin is not needed any more."""

from __future__ import annotations

from collections.abc import Iterator

from headroom.planning.migration.known import known_offset
from headroom.planning.migration.progress.progress import GroupProgress, MigrationProgress
from headroom.planning.migration.progress.reading import MigrationReading
from headroom.schemas.migrations import MigrationMethod, MigrationStatus
from headroom.schemas.text.amounts import clock_text, join_names

_OVER = (MigrationStatus.MIGRATED, MigrationStatus.AGED)
# Records have the time at which a client made them. What routers sent before they knew of the seal is older than this,
# by clocks that are off by less.
_SETTLED_MS = 20_000


def removable(reading: MigrationReading, numbers: MigrationProgress) -> tuple[bool | None, str]:
    """Return whether a partition of the origin can go, and why not; None if that is unknown.

    Args:
        reading: the partition at one time.
        numbers: what follows from it.
    """
    unknown: str | None = None
    for holds, text in _conditions(reading, numbers):
        if holds is False:
            return False, text
        if holds is None and unknown is None:
            unknown = text
    return (True, "") if unknown is None else (None, unknown)


def _conditions(reading: MigrationReading, numbers: MigrationProgress) -> Iterator[tuple[bool | None, str]]:
    """Yield what has to hold, and the sentence for where it does not, or is unknown."""
    yield reading.status in _OVER, f"the agreement has it as {numbers.status}"
    yield _is_zero(numbers.left_offsets), f"{_count(numbers.left_offsets)} offsets below E are not written yet"
    stable = numbers.unstable_offsets
    yield is_stable(reading), f"{_count(stable)} offsets are behind an open transaction"
    yield groups_past(numbers), _group_text(numbers)
    end = known_offset(reading.target.end)
    yield None if end is None else True, "the target's log is unknown"
    if reading.is_copied:
        lag = numbers.mirror_lag_offsets
        yield _is_zero(lag), f"{_count(lag)} offsets are not on the target yet"
    if reading.method is MigrationMethod.ROUTED:
        # Routers have moved what landed from E on; more of it comes from a producer that is none.
        rate = numbers.write_offsets_per_s
        yield _is_zero(rate), f"the origin still grows by {'unknown' if rate is None else format(rate, ',.1f')}/s"
        late = numbers.has_late_writes
        yield None if late is None else not late, "" if late is False else _late_text(reading, late)
    else:
        beyond = _kept_beyond(reading)
        yield _is_zero(beyond), f"{_count(beyond)} offsets from E on are on the origin alone"


def has_late_writes(reading: MigrationReading) -> bool | None:
    """Return whether the origin has records from E on that are nowhere else, because no router wrote them.

    Routers move what lands there, and write no more to an origin that is known to be at its end. So a later record is
    of another client. Drained producers had left before E was agreed.

    Returns:
        None if unknown, as for an agreement without the time of the seal, or a log whose newest record is an earlier
        one; if the target is not in use yet, or if a mirror or a link may copy them.
    """
    if reading.status is MigrationStatus.PLANNED or reading.is_copied:
        return None
    beyond = _kept_beyond(reading)
    if not beyond or reading.method is MigrationMethod.DRAINED:
        return None if beyond is None else beyond > 0
    sealed_ms, newest_ms = reading.agreement.sealed_ms, reading.origin.newest_ms
    if sealed_ms is None or newest_ms is None:
        return None
    if newest_ms <= sealed_ms + _SETTLED_MS:
        return False
    # Of an earlier record with a time of the future nothing follows for later ones.
    newest, last = known_offset(reading.origin.newest_offset), reading.last_origin_end
    return True if newest is not None and last is not None and newest >= last else None


def _kept_beyond(reading: MigrationReading) -> int | None:
    """Return the offsets that the origin has now from where readers leave it: what is deleted is lost by no removal."""
    log_end, end = known_offset(reading.origin.end), reading.last_origin_end
    if log_end is None or end is None:
        return None
    return max(0, log_end - max(end, known_offset(reading.origin.start) or 0))


def _late_text(reading: MigrationReading, late: bool | None) -> str:
    newest_ms, beyond = reading.origin.newest_ms, f"of the {_count(_kept_beyond(reading))} offsets from E on"
    if late is None or newest_ms is None:
        return f"it is unknown whether routers wrote all {beyond}"
    last = clock_text(newest_ms, reading.now_ms)
    return f"clients that do not use the routing library wrote some {beyond}, the last at {last}"


def is_stable(reading: MigrationReading) -> bool | None:
    """Return whether the last stable offset has reached the origin's last end; None if unknown."""
    stable, last = known_offset(reading.origin.stable), reading.last_origin_end
    return None if stable is None or last is None else stable >= last


def groups_past(numbers: MigrationProgress) -> bool | None:
    """Return whether all groups need the origin no more; None if one is unknown, or they could not be listed."""
    if numbers.groups is None:
        return None
    past = [group.is_past for group in numbers.groups]
    return False if False in past else None if None in past else True


def readers_left(numbers: MigrationProgress) -> tuple[GroupProgress, ...]:
    """Return the groups that have yet to read the origin, those that are furthest behind first."""
    left = [group for group in numbers.groups or () if group.left_offsets]
    return tuple(sorted(left, key=lambda group: (-(group.left_offsets or 0), group.group)))


def unplaced_readers(numbers: MigrationProgress) -> tuple[str, ...]:
    """Return the groups of which it is unknown whether they have yet to read the origin."""
    return tuple(group.group for group in numbers.groups or () if group.left_offsets is None)


def known_readers_left(numbers: MigrationProgress) -> int | None:
    """Return how many groups are known to have yet to read the origin; None if none is, and one may have."""
    left = len(readers_left(numbers))
    is_unknown = numbers.groups is None or bool(unplaced_readers(numbers))
    return left if left or not is_unknown else None


def _group_text(numbers: MigrationProgress) -> str:
    left = readers_left(numbers)
    if left:
        return f"{left[0].group} has yet to read {left[0].left_offsets:,} offsets" + _and_more(len(left) - 1)
    unknown = unplaced_readers(numbers)
    return f"the place of {join_names(unknown)} is unknown" if unknown else "the groups could not be listed"


def _and_more(number: int) -> str:
    return f", and {number} more group{'s' if number > 1 else ''}" if number else ""


def _is_zero(amount: float | None) -> bool | None:
    return None if amount is None else amount == 0


def _count(offsets: int | None) -> str:
    return "an unknown number of" if offsets is None else f"{offsets:,}"

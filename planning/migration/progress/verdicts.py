"""Verdict on one partition of a migration, with the sentence that names its numbers."""

from __future__ import annotations

from collections.abc import Iterator

from headroom.planning.migration.known import known_offset
from headroom.planning.migration.progress.progress import MigrationProgress, MigrationVerdict
from headroom.planning.migration.progress.reading import MigrationReading
from headroom.planning.migration.progress.removal import groups_past, is_stable
from headroom.schemas.migrations import MigrationMethod, MigrationStatus
from headroom.schemas.text.amounts import clock_text, duration_text, join_names


def verdict_of(
    reading: MigrationReading, numbers: MigrationProgress, can_go: bool | None, why: str
) -> tuple[MigrationVerdict, str]:
    """Return the first verdict that holds, in the order of ``MigrationVerdict``, and why.

    Args:
        reading: the partition at one time.
        numbers: what follows from it.
        can_go: whether the origin's partition is not needed any more; None if unknown.
        why: why not; empty if it is not.
    """
    verdict, reason = _first(reading, numbers, can_go, why)
    return verdict, f"{reason}{_held(reading, numbers)}"


def _first(
    reading: MigrationReading, numbers: MigrationProgress, can_go: bool | None, why: str
) -> tuple[MigrationVerdict, str]:
    if reading.agreement.origin_dropped:
        return MigrationVerdict.REMOVABLE, "Its topic on the origin is deleted: the migration is over."
    if reading.agreement.shielded:
        return MigrationVerdict.SHIELDED, f"Nothing calls the origin about it; E is {_number(numbers.end_offset)}."
    for verdict, reason in _verdicts(reading, numbers, can_go, why):
        if reason is not None:
            return verdict, reason
    return MigrationVerdict.NO_DATA, _unknown(numbers, why)


def _held(reading: MigrationReading, numbers: MigrationProgress) -> str:
    """Return what a nearer end offset costs until a run has put it in force; empty if there is none.

    Only a run goes on with it, and it may have ended.
    """
    before = reading.agreement.reopened_end
    if before is None:
        return ""
    return (
        f" It is agreed instead of {_number(before)}: until a run goes on, producers hold what lands from "
        f"{_number(numbers.end_offset)} on, and readers wait there."
    )


def _verdicts(
    reading: MigrationReading, numbers: MigrationProgress, can_go: bool | None, why: str
) -> Iterator[tuple[MigrationVerdict, str | None]]:
    """Yield the verdicts in their order, each with its reason; None if it does not hold."""
    yield MigrationVerdict.LOST, _lost(numbers)
    yield MigrationVerdict.NEVER, _never(reading, numbers)
    yield MigrationVerdict.OVERTAKEN, _overtaken(numbers)
    yield MigrationVerdict.DIVERGED, _why_diverged(reading)
    yield MigrationVerdict.LATE, _late(reading, numbers)
    yield MigrationVerdict.EARLY, _early(reading, numbers)
    # Behind what is known to be bad, and before all that would be good: those rest on the origin's log.
    yield MigrationVerdict.NO_DATA, _unread(reading)
    yield MigrationVerdict.WAITING, _waiting(reading, numbers)
    yield MigrationVerdict.ON_PLAN, _on_plan(reading, numbers)
    yield MigrationVerdict.REMOVABLE, _gone(numbers) if can_go else None
    yield MigrationVerdict.DRAINING, _draining(reading, numbers, why)
    yield MigrationVerdict.DRAINED, _why_drained(reading, numbers, why)


def _lost(numbers: MigrationProgress) -> str | None:
    if not numbers.lost_offsets:
        return None
    end = _number(numbers.end_offset)
    return f"The origin's log no longer has {numbers.lost_offsets:,} acknowledged offsets below E {end}."


def _never(reading: MigrationReading, numbers: MigrationProgress) -> str | None:
    left = numbers.left_offsets
    if not left or numbers.write_offsets_per_s != 0 or reading.agreement.ignore_origin:
        return None
    return (
        f"The origin's log ends at {_number(reading.origin.end)} and does not grow: "
        f"the {left:,} offsets to E {_number(numbers.end_offset)} are never written."
    )


def _overtaken(numbers: MigrationProgress) -> str | None:
    lost = [group for group in numbers.groups or () if group.left_offsets and group.lost_offsets]
    if not lost:
        return None
    worst = max(lost, key=lambda group: group.lost_offsets or 0)
    others = f"; so do {len(lost) - 1} more groups" if len(lost) > 1 else ""
    rate = "an unknown rate" if worst.read_offsets_per_s is None else f"{worst.read_offsets_per_s:,.1f}/s"
    return (
        f"Group {worst.group} misses {worst.lost_offsets:,} of {worst.left_offsets:,} offsets below E to retention: "
        f"it reads at {rate}, {worst.gone_offsets or 0:,} are deleted already{others}."
    )


def _why_diverged(reading: MigrationReading) -> str | None:
    if not reading.has_diverged():
        return None
    return f"The target ends at {_number(reading.target.end)}, beyond the origin's {_number(reading.origin.end)}."


def _late(reading: MigrationReading, numbers: MigrationProgress) -> str | None:
    expected_ms, left = numbers.expected_ms, numbers.left_offsets
    if expected_ms is None or not left or reading.agreement.ignore_origin:
        return None
    # Without a rate it may still be reached at once: it is late for certain only once that would be too late.
    now_ms = reading.now_ms
    reached_ms = now_ms + round(1000 * (numbers.switch_eta_s or 0.0))
    if reached_ms - expected_ms <= _slip_ms(reading):
        return None
    when = "not known when" if numbers.switch_eta_s is None else f"at {clock_text(reached_ms, now_ms)}"
    return (
        f"E {_number(numbers.end_offset)} was to be reached at {clock_text(expected_ms, now_ms)}, and is {when}: "
        f"{left:,} offsets are left at {_rate(numbers)}."
    )


def _early(reading: MigrationReading, numbers: MigrationProgress) -> str | None:
    # Producers that are moved by hand are at E as soon as it is agreed, and no router has to be ready before.
    if reading.status is not MigrationStatus.PLANNED or reading.method is MigrationMethod.DRAINED:
        return None
    end, eta_s = _number(numbers.end_offset), numbers.switch_eta_s
    if numbers.beyond_offsets:
        return f"The origin is {numbers.beyond_offsets:,} offsets beyond E {end}, and the migration has not started."
    if reading.agreement.reopened_end is not None and eta_s == 0 and not numbers.missing_routers:
        return f"E {end} is reached, all routers have agreed, and no run has put it in force."
    if not numbers.missing_routers or eta_s is None:
        return None
    early_ms = 0 if numbers.expected_ms is None else numbers.expected_ms - reading.now_ms - round(1000 * eta_s)
    if eta_s > 0 and early_ms <= _slip_ms(reading):
        return None
    when = "reached" if eta_s == 0 else f"reached in {duration_text(eta_s)}"
    return f"E {end} is {when}, and {_missing(reading, numbers)}."


def _unread(reading: MigrationReading) -> str | None:
    """Return why the verdicts that rest on the origin's log cannot be given."""
    side = reading.recreated_on()
    if side is not None:
        return f"The topic on the {side} is another one than was agreed: it was recreated."
    if not reading.is_origin_up:
        return f"The origin does not answer ({reading.origin_failure or 'no reason is known'})."
    return None if known_offset(reading.origin.end) is not None else "The log end of the origin is unknown."


def _waiting(reading: MigrationReading, numbers: MigrationProgress) -> str | None:
    if reading.status is not MigrationStatus.PLANNED:
        return None
    if numbers.end_offset is None:
        return f"E is not agreed yet; the origin ends at {_number(reading.origin.end)} and grows by {_rate(numbers)}."
    if numbers.missing_routers:
        left = _number(numbers.left_offsets)
        return f"{_missing(reading, numbers)}; E {numbers.end_offset:,} is {left} offsets ahead."
    return None if numbers.left_offsets else f"E {numbers.end_offset:,} is reached, and the start is not agreed yet."


def _on_plan(reading: MigrationReading, numbers: MigrationProgress) -> str | None:
    if not numbers.left_offsets or numbers.switch_eta_s is None or reading.status is MigrationStatus.AGED:
        return None
    return (
        f"E {_number(numbers.end_offset)} is reached in {duration_text(numbers.switch_eta_s)}: "
        f"{numbers.left_offsets:,} offsets are left at {_rate(numbers)}."
    )


def _draining(reading: MigrationReading, numbers: MigrationProgress, why: str) -> str | None:
    if numbers.left_offsets != 0:
        return None
    waits = is_stable(reading) is False or groups_past(numbers) is False or bool(numbers.mirror_lag_offsets)
    return f"E {_number(numbers.end_offset)} is reached; {_what_is_left(reading, numbers) or why}." if waits else None


def _what_is_left(reading: MigrationReading, numbers: MigrationProgress) -> str:
    """Return what has yet to pass E, with the numbers."""
    parts = []
    if is_stable(reading) is False:
        parts.append(f"{numbers.unstable_offsets or 0:,} offsets are behind an open transaction")
    left = [group for group in numbers.groups or () if group.left_offsets]
    if left:
        offsets = max(group.left_offsets or 0 for group in left)
        names = join_names(sorted(group.group for group in left))
        parts.append(
            f"{len(left)} of {len(numbers.groups or ())} groups have up to {offsets:,} offsets to read: {names}"
        )
    if numbers.mirror_lag_offsets:
        parts.append(f"the mirror has {numbers.mirror_lag_offsets:,} offsets to copy")
    return "; ".join(parts)


def _why_drained(reading: MigrationReading, numbers: MigrationProgress, why: str) -> str | None:
    if numbers.left_offsets and reading.status is MigrationStatus.AGED:
        # It was ignored while it was down, with an end offset that its log had not got to.
        end, rate = _number(numbers.end_offset), _rate(numbers)
        return (
            f"Readers have given up the origin, which is back: it is {numbers.left_offsets:,} offsets before E {end}, "
            f"and grows by {rate}."
        )
    if numbers.left_offsets != 0 or not is_stable(reading) or not groups_past(numbers):
        return None
    groups = len(numbers.groups or ())
    return f"E {_number(numbers.end_offset)} is reached and all {groups} groups have read up to it; {why}."


def _gone(numbers: MigrationProgress) -> str:
    return (
        f"E {_number(numbers.end_offset)} is reached, all {len(numbers.groups or ())} groups have read up to it, "
        "and the target has the rest."
    )


def _unknown(numbers: MigrationProgress, why: str) -> str:
    end = _number(numbers.end_offset)
    if numbers.left_offsets:
        return f"When E {end} is reached is unknown: {numbers.left_offsets:,} offsets are left at {_rate(numbers)}."
    return f"E is {end}; {why}."


def _missing(reading: MigrationReading, numbers: MigrationProgress) -> str:
    of = f"{len(numbers.missing_routers)} of {len(reading.agreement.routers)}"
    return f"{of} routers have not agreed: {join_names(numbers.missing_routers)}"


def _slip_ms(reading: MigrationReading) -> int:
    """Return by how much a switch may be off the time that was agreed, milliseconds."""
    return 0 if reading.expected is None else round(1000 * reading.slip_ratio * reading.expected[1])


def _rate(numbers: MigrationProgress) -> str:
    rate = numbers.write_offsets_per_s
    return "an unknown rate" if rate is None else f"{rate:,.1f}/s"


def _number(offset: int | None) -> str:
    return "unknown" if offset is None else f"{offset:,}"

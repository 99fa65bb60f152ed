"""Texts of a run under way: its steps, and how far it is."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping

from headroom.operations.migration.running.watch import SeenMigration
from headroom.planning.migration.agreed_end import reached_in_s
from headroom.planning.migration.run.seen import RunStep, SeenPartition
from headroom.planning.migration.run.used_step import limit_of
from headroom.schemas.keys import TopicPartition
from headroom.schemas.migrations import STATUSES, MigrationStatus, PartitionAgreement
from headroom.schemas.text.amounts import UNKNOWN, clock_text


def step_line(before: PartitionAgreement, after: PartitionAgreement) -> str:
    """Return a line about a step that was taken."""
    end = UNKNOWN if after.end_offset is None else f"{after.end_offset:,}"
    if after.reopened_end is not None:
        what = f"end offset {end} is to be agreed instead of {after.reopened_end:,}, agreement {after.number}"
        return f"{after.name}: {before.status} -> {after.status}, {what}"
    ignored = ", origin ignored" if after.ignore_origin and not before.ignore_origin else ""
    if before.reopened_end is not None and after.end_offset == before.reopened_end:
        return f"{after.name}: {before.status} -> {after.status}, end offset {end} as before{ignored}"
    if before.status == after.status:
        what = f"origin ends at {after.origin_end:,}" if after.origin_end != before.origin_end else "agreed again"
        if after.origin_closed and not before.origin_closed:
            what = "routers leave the origin, which has lost records"
        return f"{after.name}: {what}, end offset {end}, agreement {after.number}{ignored}"
    base = ""
    if before.status == MigrationStatus.PLANNED and after.target_base_offset is not None:
        base = f", target in use from offset {after.target_base_offset:,}"
    return f"{after.name}: {before.status} -> {after.status}, end offset {end}{base}"


def left_offsets(agreement: PartitionAgreement, seen: SeenPartition) -> int | None:
    """Return how many offsets the origin has yet to write below the end offset; None if unknown."""
    limit, end = limit_of(agreement), seen.log.end
    return None if limit is None or end is None else max(0, limit - end)


def switch_in_s(agreement: PartitionAgreement, seen: SeenPartition) -> float | None:
    """Return the seconds until the origin reaches the end offset; 0 if it has, None if never or unknown."""
    return reached_in_s(seen.log.end, seen.offsets_per_s, limit_of(agreement))


def migration_note(
    own: Mapping[TopicPartition, PartitionAgreement], seen: SeenMigration, steps: Mapping[TopicPartition, RunStep]
) -> str:
    """Return how far a migration is: statuses, offsets left, rate, expected end, and what it waits for.

    Args:
        own: its partitions.
        seen: both clusters.
        steps: next steps.
    """
    counts = Counter(one.status for one in own.values())
    parts = [", ".join(f"{counts[status]} {status}" for status in STATUSES if counts[status])]
    pairs = [(one, seen.partitions[name]) for name, one in own.items() if name in seen.partitions]
    below = [(one, at) for one, at in pairs if left_offsets(one, at) != 0 and one.status != MigrationStatus.AGED]
    left = [left_offsets(one, at) for one, at in below]
    known = [count for count in left if count is not None]
    if known:
        rates = [at.offsets_per_s for _, at in below]
        at_least = "" if len(known) == len(left) else "at least "
        rate = "an unknown rate" if None in rates else f"{sum(rate or 0.0 for rate in rates):,.0f}/s"
        parts.append(f"{at_least}{sum(known):,} offsets left, {rate}")
    times = [switch_in_s(one, at) for one, at in below]
    if times and all(time is not None for time in times):
        last_s = max(time for time in times if time is not None)
        now_ms = max(at.now_ms for _, at in below)
        parts.append(f"end expected at {clock_text(now_ms + round(last_s * 1000), now_ms)}")
    waits = Counter(step.waits_for for step in steps.values() if step.waits_for)
    if waits:
        first, count = waits.most_common(1)[0]
        parts.append(f"{count} {'waits' if count == 1 else 'wait'} for {first}")
    return "; ".join(parts)

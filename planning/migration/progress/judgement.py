"""Judgement of one partition of a migration: its numbers, its verdict, and whether the origin is still needed."""

from __future__ import annotations

from dataclasses import replace

from headroom.planning.migration.agreed_end import reached_in_s
from headroom.planning.migration.agreement import split_of
from headroom.planning.migration.known import known_float, known_offset
from headroom.planning.migration.losses import lost_at_switch
from headroom.planning.migration.progress.progress import MigrationProgress
from headroom.planning.migration.progress.reader import group_progress, partition_retention
from headroom.planning.migration.progress.reading import MigrationReading
from headroom.planning.migration.progress.removal import has_late_writes, removable
from headroom.planning.migration.progress.verdicts import verdict_of
from headroom.schemas.migrations import MigrationMethod, MigrationStatus

# From the one that acknowledges least to the one that acknowledges only what all in-sync replicas have.
_ACKS = ("0", "1", "all")


def migration_progress(reading: MigrationReading) -> MigrationProgress:
    """Return the judgement of a partition; what rests on an unknown part is None, never zero.

    Args:
        reading: the partition at one time.
    """
    believed = _without_doubtful_origin(reading)
    numbers = _numbers(believed)
    can_go, why = (True, "") if reading.agreement.origin_dropped else removable(believed, numbers)
    verdict, reason = verdict_of(believed, numbers, can_go, why)
    return numbers.evaluated(can_go, verdict, reason)


def _without_doubtful_origin(reading: MigrationReading) -> MigrationReading:
    """Return a reading without the origin's numbers if they are of another time, or of another topic."""
    recreated_on = reading.recreated_on()
    if reading.is_origin_up and not reading.agreement.shielded and recreated_on is None:
        return reading
    nothing = MigrationReading(reading.agreement, reading.now_ms)
    return replace(
        reading,
        is_origin_up=False,
        origin=nothing.origin,
        write_offsets_per_s=None,
        write_bytes_per_s=None,
        leader_end=None,
        epoch_ends={},
        target=nothing.target if recreated_on == "target" else reading.target,
    )


def _numbers(reading: MigrationReading) -> MigrationProgress:
    agreed, log, rules = reading.agreement, reading.origin, reading.rules
    end, last = known_offset(agreed.end_offset), reading.last_origin_end
    start = known_offset(log.start)
    lag, mirror_eta_s = _mirror(reading)
    expected = reading.expected
    # Once for all groups, of which there may be many.
    split, retention, groups = split_of(agreed, reading.is_origin_up), partition_retention(reading), reading.groups
    return MigrationProgress(
        topic=agreed.topic,
        partition=agreed.partition,
        migration=agreed.migration,
        status=reading.status.value,
        method=reading.method.value,
        end_offset=end,
        left_offsets=_gap(log.end, last),
        write_offsets_per_s=known_float(reading.write_offsets_per_s),
        switch_eta_s=reading.switch_in_s,
        beyond_offsets=_gap(last, log.end),
        unstable_offsets=_gap(log.stable, log.end),
        lost_offsets=_lost(reading),
        at_risk_offsets=_at_risk(reading),
        mirror_lag_offsets=lag,
        mirror_eta_s=mirror_eta_s,
        kept_s=None if start is None else retention.of_reader(start, None).kept_s,
        acks=min(reading.acks, key=_acks_rank) if reading.acks else None,
        min_insync_replicas=None if rules is None else rules.min_insync_replicas,
        unclean_elections=None if rules is None else rules.unclean_elections,
        missing_routers=reading.missing_routers,
        expected_ms=None if expected is None else expected[0],
        groups=None if groups is None else tuple([group_progress(reading, split, retention, own) for own in groups]),
        write_bytes_per_s=known_float(reading.write_bytes_per_s),
        target_topic=reading.target_topic,
        has_late_writes=has_late_writes(reading),
        arriving_bytes_per_s=_arriving(reading),
        target_leader=reading.target_leader,
        throttled_followers=known_offset(reading.throttled_followers),
        reopened_end=agreed.reopened_end,
    )


def _arriving(reading: MigrationReading) -> float | None:
    """Return the writes that come to the target with the switch, bytes per second; None if unknown."""
    rate, written, copied = reading.write_bytes_per_s, reading.write_offsets_per_s, reading.target_offsets_per_s
    known = known_float(rate)
    if known is None or not reading.is_copied or not written or copied is None:
        return known
    # A mirror or a link writes the same records already, and stops at the switch.
    return known * max(0.0, 1 - copied / written)


def _gap(before: int | None, after: int | None) -> int | None:
    """Return how far an offset is before another one, at least 0; None if one is unknown."""
    if before is None or after is None or before < 0 or after < 0:
        return None
    return max(0, after - before)


def _acks_rank(acks: str) -> int:
    # What is no value of Kafka's counts as the weakest.
    return _ACKS.index(acks) if acks in _ACKS else 0


def _lost(reading: MigrationReading) -> int | None:
    """Return the acknowledged offsets below E that the present log does not have. Once that is accepted there are none.

    Epochs that end at the same offset of it overlap from there on: the last of them counts. Others do not, because the
    records of an epoch begin where the one before ended. A log that had been at E has lost what it is short of, too.

    Returns:
        Offsets, at least; None if nothing is known of any loss and of an epoch it is unknown. So it is of one whose
        leader may have acknowledged more than is known here and in the log.
    """
    lost: dict[int | None, int | None] = {}
    is_doubtful = reading.has_incomplete_reports
    newest = max(reading.acknowledged, default=0) if reading.leader_epoch is None else reading.leader_epoch
    for epoch, acknowledged in reading.acknowledged.items():
        kept = reading.epoch_ends.get(epoch)
        own = lost_at_switch(acknowledged, kept, reading.last_origin_end)
        lost[kept] = own if own is None else max(own, lost.get(kept) or 0)
        is_doubtful |= _may_have_lost_more(reading, epoch, kept, newest)
    total = max(sum(own for own in lost.values() if own is not None), _short_of_end(reading))
    is_known = bool(lost) and None not in lost.values() and not (is_doubtful and not _acknowledges_safely(reading))
    return total if total or is_known else None


def _short_of_end(reading: MigrationReading) -> int:
    """Return by how much the leader's log ends below E in a sealed migration; 0 if it does not, or if unknown.

    Its stable offset was at E then. Records on the target prove nothing: producers without a router may write there.
    """
    if reading.status is not MigrationStatus.MIGRATED:
        return 0
    last, leader_end = reading.last_origin_end, known_offset(reading.leader_end)
    high_watermark = known_offset(reading.origin.end)
    # An end that is below the high watermark is that of an earlier epoch.
    if last is None or leader_end is None or high_watermark is None or leader_end < high_watermark:
        return 0
    return max(0, last - leader_end)


def _may_have_lost_more(reading: MigrationReading, epoch: int, kept: int | None, newest: int) -> bool:
    """Return whether the leader of an epoch may have acknowledged offsets below E that no report and no log shows.

    It may if it had more than the log has of it now, and also if it has been replaced: after the last reading it may
    have acknowledged any number to a router that died with it.
    """
    seen = reading.unreported_ends.get(epoch)
    if seen is None or kept is None or reading.last_origin_end is None:
        return False
    return kept < reading.last_origin_end and (epoch < newest or seen > kept)


def _acknowledges_safely(reading: MigrationReading) -> bool:
    """Return whether all producers are known to have acknowledged only what all in-sync replicas had."""
    return reading.method is MigrationMethod.ROUTED and bool(reading.acks) and set(reading.acks) == {"all"}


def _at_risk(reading: MigrationReading) -> int | None:
    """Return the offsets below E that the leader has and not all in-sync replicas."""
    end, leader_end = known_offset(reading.agreement.end_offset), known_offset(reading.leader_end)
    return None if end is None or leader_end is None else _gap(reading.origin.end, min(leader_end, end))


def _mirror(reading: MigrationReading) -> tuple[int | None, float | None]:
    """Return how far the mirror is behind below E, and the seconds until it has all; both None without a mirror."""
    copied = reading.mirrored_end()
    if copied is None:
        return None, None
    last, own = reading.last_origin_end, known_offset(reading.origin.end)
    written = last if own is None or last is None else min(own, last)
    # Before E is agreed all that the log has counts; once it is, an origin that does not answer hides what is written.
    lag = None if own is None else _gap(copied, own if written is None else written)
    return lag, reached_in_s(copied, reading.target_offsets_per_s, last)

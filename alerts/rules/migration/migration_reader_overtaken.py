"""Rule ``migration_reader_overtaken``: retention deletes records of the origin before a group has read them."""

from __future__ import annotations

from collections.abc import Sequence

from headroom.alerts.evidence.migration_evidence import MOST_LISTED, MigrationEvidence, OvertakenReader
from headroom.alerts.finding import Finding
from headroom.alerts.recommendations.migrations import raise_retention
from headroom.alerts.rules.migration.migration_rule import (
    STEADY_S,
    UNREAD,
    MigrationRule,
    Partitions,
    name_of,
    subject_of,
)
from headroom.alerts.rules.rule import RuleInputs
from headroom.alerts.text.migration import offset_rate_text, offsets_text
from headroom.planning.migration.losses import lost_to_retention
from headroom.planning.migration.progress.progress import GroupProgress, MigrationProgress
from headroom.schemas.alerts import AlertKind, Severity
from headroom.schemas.text.amounts import clock_text, duration_text

_Reader = tuple[MigrationProgress, GroupProgress]


class MigrationReaderOvertaken(MigrationRule):
    """At its rate, a consumer group does not get to E on the origin before retention deletes what it has yet to read.

    Once a group has read up to E, or readers have given up the origin, nothing can be done any more.
    """

    kind = AlertKind.MIGRATION_READER_OVERTAKEN

    def finding(self, migration: str, partitions: Partitions, tick: RuleInputs) -> Finding | None:
        """Return the finding; None if no group loses records to retention."""
        readers = sorted(
            ((p, group) for p in partitions for group in p.groups or () if group.left_offsets and group.lost_offsets),
            key=_lost_first,
        )
        if not readers:
            return None
        affected = list({id(partition): partition for partition, _ in readers}.values())
        lost = sum(group.lost_offsets or 0 for _, group in readers)
        return Finding(
            kind=self.kind,
            subject=subject_of(migration),
            severity=Severity.CRITICAL,
            summary=_summary(migration, readers, lost, tick.tick_ms),
            evidence=MigrationEvidence.of(
                migration,
                partitions,
                affected,
                offsets=lost,
                at_ms=_first_ms(readers, tick.tick_ms),
                readers=tuple(_evidence(*reader) for reader in readers[:MOST_LISTED]),
            ),
            recommendation=raise_retention(_enough_ms(readers), tick.recommender),
            hold_s=max(tick.settings.hold_s, STEADY_S),
            affected=len(readers),
        )

    def is_unclear(self, partition: MigrationProgress, tick: RuleInputs) -> bool:
        """Return whether a group's loss is unknown, or it gets to E only just in time."""
        if partition.verdict in UNREAD or partition.groups is None:
            return True
        return any(_is_close(group, tick.settings.exit_ratio) for group in partition.groups)


def _is_close(group: GroupProgress, exit_ratio: float) -> bool:
    """Return whether a group would lose records if it had a little more to read, or its loss is unknown."""
    if group.left_offsets == 0:
        return False
    if group.left_offsets is None or group.lost_offsets is None:
        return True
    more = round(group.left_offsets * exit_ratio)
    return lost_to_retention(more, group.read_offsets_per_s, group.kept_s) != 0


def _lost_first(reader: _Reader) -> tuple[int, str, str, int]:
    partition, group = reader
    return -(group.lost_offsets or 0), group.group, partition.topic, partition.partition


def _first_ms(readers: Sequence[_Reader], tick_ms: int) -> int | None:
    """Return when the first group is overtaken, epoch milliseconds; None if unknown, or if records are gone already."""
    kept_s = [group.kept_s for _, group in readers if group.kept_s is not None]
    if not kept_s or any(group.gone_offsets for _, group in readers):
        return None
    return tick_ms + round(1000 * min(kept_s))


def _enough_ms(readers: Sequence[_Reader]) -> dict[str, int]:
    """Return the retention that is enough for all groups, milliseconds by topic; without topics that it cannot save."""
    enough: dict[str, int] = {}
    for partition, group in readers:
        if group.enough_retention_ms is not None:
            enough[partition.topic] = max(enough.get(partition.topic, 0), group.enough_retention_ms)
    return dict(sorted(enough.items()))


def _summary(migration: str, readers: Sequence[_Reader], lost: int, tick_ms: int) -> str:
    (partition, worst), *others = readers
    when = "" if worst.kept_s is None else f" by {clock_text(tick_ms + round(1000 * worst.kept_s), tick_ms)}"
    gone = f", {worst.gone_offsets:,} of them already" if worst.gone_offsets else ""
    groups = len({group.group for _, group in readers})
    more = f"; {offsets_text(lost)} of {groups} group(s) and {len(readers)} places in all" if others else ""
    enough = worst.enough_retention_ms
    remedy = ""
    if enough is not None:
        remedy = f"; retention.ms of {enough:,} ({duration_text(enough / 1000)}) is enough for it"
    return (
        f"Migration {migration}: retention on the origin deletes {offsets_text(worst.lost_offsets)} of "
        f"{name_of(partition)} that group {worst.group} has not read{when}{gone}: it has {worst.left_offsets:,} to "
        f"read at {offset_rate_text(worst.read_offsets_per_s)}{remedy}{more}"
    )


def _evidence(partition: MigrationProgress, group: GroupProgress) -> OvertakenReader:
    return OvertakenReader(
        group=group.group,
        topic=partition.topic,
        partition=partition.partition,
        left_offsets=group.left_offsets,
        read_offsets_per_s=group.read_offsets_per_s,
        lost_offsets=group.lost_offsets,
        gone_offsets=group.gone_offsets,
        kept_s=group.kept_s,
        retention_ms=group.enough_retention_ms,
    )

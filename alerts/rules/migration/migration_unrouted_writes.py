"""Rule ``migration_unrouted_writes``: the origin grows after the switch, so that a producer still writes there."""

from __future__ import annotations

from headroom.alerts.evidence.migration_evidence import MigrationEvidence
from headroom.alerts.finding import Finding
from headroom.alerts.recommendations.migrations import move_producers
from headroom.alerts.rules.migration.migration_rule import (
    IN_USE,
    UNREAD,
    MigrationRule,
    Partitions,
    name_of,
    subject_of,
)
from headroom.alerts.rules.rule import RuleInputs
from headroom.alerts.text.migration import offset_rate_text, offsets_text, share_text
from headroom.planning.migration.progress.progress import MigrationProgress
from headroom.schemas.alerts import AlertKind, Severity
from headroom.schemas.migrations import METHODS_WITH_COPIES, MigrationStatus

# The rate is of 10 s and more before a reading that may be 5 s old, so it reaches back over the switch for a while.
_SWITCHED_S = 20.0


class MigrationUnroutedWrites(MigrationRule):
    """The origin has reached E, the target is in use, and the origin's log still grows, or has newer records.

    Routers move what lands behind E within seconds, and then write to the target alone. A burst is over before a rate
    shows it, but its records stay. An origin that was ignored while it was down may be back with a log that is below E:
    no reader gets what is written there either.
    """

    kind = AlertKind.MIGRATION_UNROUTED_WRITES

    def finding(self, migration: str, partitions: Partitions, tick: RuleInputs) -> Finding | None:
        """Return the finding; None if no partition grows after its switch, or has records of after it."""
        worst = sorted((p for p in partitions if _is_switched(p) and _is_written(p)), key=_fastest_first)
        if not worst:
            return None
        # A mirror or a link copies what lands behind E. Otherwise nothing does, and no reader gets it.
        is_copied = all(partition.method in METHODS_WITH_COPIES for partition in worst)
        is_certain = any(partition.has_late_writes for partition in worst)
        then = (
            "a mirror may copy them out of order" if is_copied else "no reader gets them, and they go with the origin"
        )
        return Finding(
            kind=self.kind,
            subject=subject_of(migration),
            severity=Severity.WARNING if is_copied else Severity.CRITICAL,
            summary=f"Migration {migration}: {_what(worst, partitions)}: {then}",
            evidence=MigrationEvidence.of(migration, partitions, worst, offsets=_beyond(worst)),
            recommendation=move_producers(),
            # Records of after the switch are there, whatever the rate is.
            hold_s=0.0 if is_certain else max(tick.settings.hold_s, _SWITCHED_S),
            affected=len(worst),
        )

    def is_unclear(self, partition: MigrationProgress, tick: RuleInputs) -> bool:
        """Return whether the growth of the origin after the switch is unknown, or who wrote what it has from E on."""
        if partition.status not in IN_USE:
            return False
        if partition.verdict in UNREAD or partition.left_offsets is None:
            return True
        # A mirror or a link may copy what is there, so that only growth counts.
        is_late_unknown = partition.has_late_writes is None and partition.method not in METHODS_WITH_COPIES
        return _is_switched(partition) and (
            partition.write_offsets_per_s is None or (is_late_unknown and partition.beyond_offsets != 0)
        )


def _is_written(partition: MigrationProgress) -> bool:
    return bool(partition.write_offsets_per_s or partition.has_late_writes)


def _what(worst: Partitions, partitions: Partitions) -> str:
    share, first = share_text(worst, partitions), worst[0]
    rate = sum(partition.write_offsets_per_s or 0.0 for partition in worst)
    if rate:
        return (
            f"clients still write to the origin after the switch, {offset_rate_text(rate)} to {share} "
            f"({name_of(first)} grows by {offset_rate_text(first.write_offsets_per_s)})"
        )
    return (
        f"clients wrote to the origin after the switch, to {share} ({name_of(first)} has "
        f"{offsets_text(first.beyond_offsets)} from E on)"
    )


def _is_switched(partition: MigrationProgress) -> bool:
    is_at_end = partition.left_offsets == 0
    return partition.status in IN_USE and (is_at_end or partition.status == MigrationStatus.AGED)


def _beyond(partitions: Partitions) -> int | None:
    """Return the offsets of the origin from E on; None if one is unknown."""
    known = [partition.beyond_offsets for partition in partitions if partition.beyond_offsets is not None]
    return sum(known) if len(known) == len(partitions) else None


def _fastest_first(partition: MigrationProgress) -> tuple[float, str, int]:
    return -(partition.write_offsets_per_s or 0.0), partition.topic, partition.partition

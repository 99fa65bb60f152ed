"""Rule ``migration_records_lost``: the origin's log no longer has records that were acknowledged below E."""

from __future__ import annotations

from headroom.alerts.evidence.migration_evidence import MigrationEvidence
from headroom.alerts.finding import Finding
from headroom.alerts.recommendations.migrations import look_for_lost
from headroom.alerts.rules.migration.migration_rule import MigrationRule, Partitions, name_of, subject_of
from headroom.alerts.rules.rule import RuleInputs
from headroom.alerts.text.migration import offsets_text, share_text
from headroom.planning.migration.progress.progress import MigrationProgress
from headroom.schemas.alerts import AlertKind, Severity


class MigrationRecordsLost(MigrationRule):
    """A leader switch on the origin has lost acknowledged records, as it can with acks=1."""

    kind = AlertKind.MIGRATION_RECORDS_LOST

    def finding(self, migration: str, partitions: Partitions, tick: RuleInputs) -> Finding | None:
        """Return the finding; None if no partition has lost any."""
        worst = sorted((p for p in partitions if p.lost_offsets), key=_lost_first)
        if not worst:
            return None
        lost = sum(partition.lost_offsets or 0 for partition in worst)
        first = worst[0]
        return Finding(
            kind=self.kind,
            subject=subject_of(migration),
            severity=Severity.CRITICAL,
            summary=(
                f"Migration {migration} has lost {offsets_text(lost)} below E that the origin had acknowledged, in "
                f"{share_text(worst, partitions)}: {name_of(first)} has lost {offsets_text(first.lost_offsets)}"
            ),
            evidence=MigrationEvidence.of(migration, partitions, worst, offsets=lost),
            recommendation=look_for_lost(),
            hold_s=0.0,
            affected=len(worst),
        )

    def is_unclear(self, partition: MigrationProgress, tick: RuleInputs) -> bool:
        """Return whether the loss is unknown: a leader's epoch or a producer's report is missing."""
        return partition.lost_offsets is None


def _lost_first(partition: MigrationProgress) -> tuple[int, str, int]:
    return -(partition.lost_offsets or 0), partition.topic, partition.partition

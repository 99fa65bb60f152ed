"""Rule ``migration_origin_removable``: nothing needs the origin's topics of a migration any more."""

from __future__ import annotations

from headroom.alerts.evidence.migration_evidence import MigrationEvidence
from headroom.alerts.finding import Finding
from headroom.alerts.recommendations.migrations import drop_origin
from headroom.alerts.rules.migration.migration_rule import MigrationRule, Partitions, subject_of
from headroom.alerts.rules.rule import RuleInputs
from headroom.planning.migration.progress.progress import MigrationProgress
from headroom.schemas.alerts import AlertKind, Severity
from headroom.schemas.text.amounts import join_names


class MigrationOriginRemovable(MigrationRule):
    """All partitions of a migration are on the target, and no reader needs the origin."""

    kind = AlertKind.MIGRATION_ORIGIN_REMOVABLE

    def finding(self, migration: str, partitions: Partitions, tick: RuleInputs) -> Finding | None:
        """Return the finding; None if one partition is still needed, or that is unknown."""
        if not all(partition.removable is True for partition in partitions):
            return None
        topics = sorted({partition.topic for partition in partitions})
        return Finding(
            kind=self.kind,
            subject=subject_of(migration),
            severity=Severity.INFO,
            summary=(
                f"Migration {migration} is over: all {len(partitions)} partition(s) of {join_names(topics)} are on the "
                "target, all groups have read the origin up to E, and nothing is written there"
            ),
            evidence=MigrationEvidence.of(migration, partitions, partitions),
            recommendation=drop_origin(partitions, tick.recommender),
            hold_s=tick.settings.stalled_s,
        )

    def is_unclear(self, partition: MigrationProgress, tick: RuleInputs) -> bool:
        """Return whether it is unknown if the partition is needed."""
        return partition.removable is None

"""Rule ``migration_acks_at_risk``: a leader switch on the origin could lose acknowledged records."""

from __future__ import annotations

from headroom.alerts.evidence.migration_evidence import MigrationEvidence
from headroom.alerts.finding import Finding
from headroom.alerts.recommendations.migrations import secure_writes
from headroom.alerts.rules.migration.migration_rule import UNREAD, MigrationRule, Partitions, subject_of
from headroom.alerts.rules.rule import RuleInputs
from headroom.alerts.text.migration import offsets_text, share_text
from headroom.planning.migration.progress.progress import MigrationProgress
from headroom.schemas.alerts import AlertKind, Severity
from headroom.schemas.migrations import MigrationMethod, MigrationStatus
from headroom.schemas.text.amounts import join_names

# With fewer, the leader alone may have what it acknowledges.
_LEAST_IN_SYNC = 2
# Statuses in which records below E are still written.
_WRITTEN = (MigrationStatus.PLANNED, MigrationStatus.MIGRATING)


class MigrationAcksAtRisk(MigrationRule):
    """Acks below all, min.insync.replicas below 2 or unclean elections, while records below E are still written."""

    kind = AlertKind.MIGRATION_ACKS_AT_RISK

    def finding(self, migration: str, partitions: Partitions, tick: RuleInputs) -> Finding | None:
        """Return the finding; None if a clean leader switch loses no record of any partition."""
        risky = sorted((p for p in partitions if _is_written(p) and _is_risky(p)), key=_most_first)
        if not risky:
            return None
        known = [p.at_risk_offsets for p in risky if p.at_risk_offsets is not None]
        now = sum(known) if known else None
        at_least = "at least " if len(known) < len(risky) and known else ""
        return Finding(
            kind=self.kind,
            subject=subject_of(migration),
            severity=Severity.WARNING,
            summary=(
                f"Migration {migration}: a leader switch on the origin could lose acknowledged records of "
                f"{share_text(risky, partitions)}, now {at_least}{offsets_text(now)}: {_causes(risky)}"
            ),
            evidence=MigrationEvidence.of(migration, partitions, risky, offsets=now),
            recommendation=secure_writes(
                sorted({p.topic for p in risky if p.unclean_elections}),
                has_weak_acks=any(_has_weak_acks(p) for p in risky),
                few_in_sync=sorted({p.topic for p in risky if _has_few_in_sync(p)}),
                recommender=tick.recommender,
            ),
            hold_s=tick.settings.hold_s,
            affected=len(risky),
        )

    def is_unclear(self, partition: MigrationProgress, tick: RuleInputs) -> bool:
        """Return whether the acks of a router or the topic's settings are unknown while records below E are written."""
        if partition.status not in _WRITTEN:
            return False
        is_routed = partition.method == MigrationMethod.ROUTED
        settings = (partition.min_insync_replicas, partition.unclean_elections)
        unknown = None in settings or (is_routed and partition.acks is None)
        return partition.left_offsets != 0 and (partition.verdict in UNREAD or unknown)


def _is_written(partition: MigrationProgress) -> bool:
    return partition.status in _WRITTEN and partition.left_offsets != 0 and partition.verdict not in UNREAD


def _is_risky(partition: MigrationProgress) -> bool:
    return _has_weak_acks(partition) or _has_few_in_sync(partition) or partition.unclean_elections is True


def _has_weak_acks(partition: MigrationProgress) -> bool:
    return partition.acks is not None and partition.acks != "all"


def _has_few_in_sync(partition: MigrationProgress) -> bool:
    return partition.min_insync_replicas is not None and partition.min_insync_replicas < _LEAST_IN_SYNC


def _most_first(partition: MigrationProgress) -> tuple[int, str, int]:
    return -(partition.at_risk_offsets or 0), partition.topic, partition.partition


def _causes(risky: Partitions) -> str:
    acks = sorted({p.acks for p in risky if p.acks is not None and _has_weak_acks(p)})
    few = sorted({p.topic for p in risky if _has_few_in_sync(p)})
    unclean = sorted({p.topic for p in risky if p.unclean_elections})
    causes = [
        f"a router produces with acks={acks[0]}" if acks else "",
        f"min.insync.replicas is below {_LEAST_IN_SYNC} ({join_names(few)})" if few else "",
        f"unclean elections are allowed ({join_names(unclean)})" if unclean else "",
    ]
    return "; ".join(filter(None, causes))

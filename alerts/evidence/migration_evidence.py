"""Evidence on a migration, for all rules on migrations."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from headroom.alerts.evidence.evidence import Evidence
from headroom.planning.migration.progress.progress import MigrationProgress

# Most partitions and readers that evidence lists. A migration may have thousands.
MOST_LISTED = 20


@dataclass(frozen=True)
class MigratingPartition:
    """A partition of a migration: columns of ``gold/migration_progress``, whose table describes them."""

    topic: str
    partition: int
    status: str
    verdict: str
    reason: str
    end_offset: int | None
    left_offsets: int | None
    lost_offsets: int | None
    at_risk_offsets: int | None
    write_offsets_per_s: float | None
    mirror_lag_offsets: int | None

    @staticmethod
    def of(progress: MigrationProgress) -> MigratingPartition:
        """Return the columns of a partition that evidence has."""
        return MigratingPartition(
            topic=progress.topic,
            partition=progress.partition,
            status=progress.status,
            verdict=progress.verdict.value,
            reason=progress.reason,
            end_offset=progress.end_offset,
            left_offsets=progress.left_offsets,
            lost_offsets=progress.lost_offsets,
            at_risk_offsets=progress.at_risk_offsets,
            write_offsets_per_s=progress.write_offsets_per_s,
            mirror_lag_offsets=progress.mirror_lag_offsets,
        )


@dataclass(frozen=True)
class OvertakenReader:
    """A consumer group at a partition: columns of ``gold/migration_groups``, whose table describes them.

    Attributes:
        retention_ms: retention.ms with which it loses no more; None if none is enough.
    """

    group: str
    topic: str
    partition: int
    left_offsets: int | None
    read_offsets_per_s: float | None
    lost_offsets: int | None
    gone_offsets: int | None
    kept_s: float | None
    retention_ms: int | None


@dataclass(frozen=True, kw_only=True)
class MigrationEvidence(Evidence):
    """Evidence on a migration.

    Attributes:
        migration: name of the migration.
        all_partitions: number of its partitions.
        affected_partitions: number of those that the finding is about.
        offsets: offsets that the finding counts; None if it counts none, or if they are unknown.
        at_ms: when it happens, epoch milliseconds; None if unknown, or if it has happened.
        worst: the first affected partitions, the worst first.
        readers: the first overtaken readers, those that lose most first; empty for other findings.
    """

    migration: str
    all_partitions: int
    affected_partitions: int
    offsets: int | None = None
    at_ms: int | None = None
    worst: Sequence[MigratingPartition] = ()
    readers: Sequence[OvertakenReader] = ()

    @classmethod
    def of(
        cls,
        migration: str,
        partitions: Sequence[MigrationProgress],
        worst: Sequence[MigrationProgress],
        offsets: int | None = None,
        at_ms: int | None = None,
        readers: Sequence[OvertakenReader] = (),
    ) -> MigrationEvidence:
        """Return the evidence on some partitions of a migration.

        Args:
            migration: name of the migration.
            partitions: all its partitions.
            worst: those that the finding is about, the worst first.
            offsets: offsets that the finding counts; None if it counts none, or if they are unknown.
            at_ms: when it happens, epoch milliseconds; None if unknown, or if it has happened.
            readers: the first overtaken readers.
        """
        return cls(
            migration=migration,
            all_partitions=len(partitions),
            affected_partitions=len(worst),
            offsets=offsets,
            at_ms=at_ms,
            worst=tuple(MigratingPartition.of(one) for one in worst[:MOST_LISTED]),
            readers=readers,
        )

"""Migrations as metrics: what is unknown has no series."""

from __future__ import annotations

from dataclasses import replace

from headroom.alerts.metrics.migration_samples import migration_samples
from headroom.planning.migration.progress.judgement import migration_progress
from headroom.planning.migration.progress.reading import MigrationReading
from headroom.schemas import metrics
from headroom.schemas.migrations import PartitionAgreement

AGREED = PartitionAgreement("m", 1, "o", "t", "orders", 0, None, None, 700_000, 0, "migrating")
PROGRESS = replace(migration_progress(MigrationReading(AGREED, 0)), left_offsets=5, lost_offsets=0)


def values(*progress: object) -> dict[tuple[str, ...], float]:
    return {(spec.name, *labels): value for spec, labels, value in migration_samples("new", progress)}  # type: ignore[arg-type]


def test_partitions_are_counted_by_status_and_offsets_are_summed() -> None:
    other = replace(PROGRESS, partition=1, status="migrated", left_offsets=0, lost_offsets=7)
    assert values(PROGRESS, other) == {
        (metrics.MIGRATION_PARTITIONS.name, "new", "m", "migrated"): 1.0,
        (metrics.MIGRATION_PARTITIONS.name, "new", "m", "migrating"): 1.0,
        (metrics.MIGRATION_LEFT.name, "new", "m"): 5.0,
        (metrics.MIGRATION_LOST.name, "new", "m"): 7.0,
    }


def test_a_sum_with_an_unknown_part_is_missing_but_a_known_loss_is_not() -> None:
    unknown = replace(PROGRESS, left_offsets=None, lost_offsets=None)
    assert (metrics.MIGRATION_LEFT.name, "new", "m") not in values(PROGRESS, unknown)
    assert (metrics.MIGRATION_LOST.name, "new", "m") not in values(PROGRESS, unknown)
    assert values(replace(PROGRESS, lost_offsets=7), unknown)[metrics.MIGRATION_LOST.name, "new", "m"] == 7.0
    assert values() == {}

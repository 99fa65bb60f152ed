"""Contracts of migrations between clusters: the agreement topic and its records."""

from headroom.schemas.migrations.records import (
    KEPT_EPOCHS,
    METHODS,
    METHODS_WITH_COPIES,
    METHODS_WITHOUT_COPIES,
    MIGRATIONS_TOPIC,
    RECORD_VERSION,
    STATUSES,
    AcknowledgedEnd,
    MigrationMethod,
    MigrationRecord,
    MigrationStatus,
    PartitionAgreement,
    Removal,
    RouterReport,
    read_migration_record,
)

__all__ = [
    "KEPT_EPOCHS",
    "METHODS",
    "METHODS_WITHOUT_COPIES",
    "METHODS_WITH_COPIES",
    "MIGRATIONS_TOPIC",
    "RECORD_VERSION",
    "STATUSES",
    "AcknowledgedEnd",
    "MigrationMethod",
    "MigrationRecord",
    "MigrationStatus",
    "PartitionAgreement",
    "Removal",
    "RouterReport",
    "read_migration_record",
]

"""The gold tables of migrations: the progress of each partition, and of each consumer group."""

from __future__ import annotations

from headroom.schemas.tables.table import PARTITION_COLUMNS, TICK_COLUMNS, Table, columns_of

MIGRATION_PROGRESS = Table(
    "gold/migration_progress",
    "tick, topic, partition in a migration to this cluster",
    ("cluster", "tick_ms", "topic", "partition"),
    ("date",),
    columns_of(
        *TICK_COLUMNS,
        *PARTITION_COLUMNS,
        ("migration", "STRING", "name of the migration"),
        ("status", "STRING", "status that was agreed: planned, migrating, migrated or aged"),
        ("method", "STRING", "method that was agreed: routed, drained, mirrored or linked"),
        ("end_offset", "BIGINT", "agreed end offset E on the origin, exclusive; null: not agreed yet"),
        ("left_offsets", "BIGINT", "offsets below E that are still to be written on the origin; null: unknown"),
        ("write_offsets_per_s", "DOUBLE", "growth of the origin's log, offsets/s; null: unknown"),
        ("switch_eta_s", "DOUBLE", "time until the origin reaches E, seconds; null: never, or unknown"),
        ("beyond_offsets", "BIGINT", "offsets of the origin from E on; null: unknown"),
        ("unstable_offsets", "BIGINT", "offsets of the origin from its first open transaction on; null: unknown"),
        (
            "lost_offsets",
            "BIGINT",
            "acknowledged offsets below E that the origin's log no longer has, at least; accepted losses do not count; "
            "null: unknown",
        ),
        (
            "at_risk_offsets",
            "BIGINT",
            "offsets below E that only the leader has, which a leader switch would lose now; null: unknown",
        ),
        (
            "mirror_lag_offsets",
            "BIGINT",
            "offsets below E that the mirror has yet to copy; null: unknown, or no mirror",
        ),
        (
            "mirror_eta_s",
            "DOUBLE",
            "time until the mirror has all below E, seconds; null: never, unknown, or no mirror",
        ),
        (
            "kept_s",
            "DOUBLE",
            "time until retention by time may delete the last record below E, seconds; null: never, or unknown",
        ),
        ("acks", "STRING", "least acks of the routers that produce: 0, 1 or all; null: none is known"),
        ("min_insync_replicas", "INT", "min.insync.replicas of the topic on the origin; null: unknown"),
        ("unclean_elections", "BOOLEAN", "unclean.leader.election.enable of the topic on the origin; null: unknown"),
        ("missing_routers", "ARRAY<STRING>", "named routers that have not agreed yet"),
        ("expected_ms", "BIGINT", "when E was to be reached as agreed, epoch milliseconds UTC; null: unknown"),
        ("removable", "BOOLEAN", "true if the origin's partition is not needed any more; null: unknown"),
        ("reason", "STRING", "why the verdict, in one sentence with its numbers"),
        (
            "verdict",
            "STRING",
            "the most severe that holds: lost, never, overtaken, diverged, late, early, draining, waiting, on_plan, "
            "removable, drained or no_data; shielded: nothing is read",
        ),
        (
            "write_bytes_per_s",
            "DOUBLE",
            "rate at which clients write to the partition on the origin, bytes/s; null: unknown, or they write to the "
            "target",
        ),
        ("group_count", "INT", "consumer groups of the partition; null: they could not be listed"),
        (
            "reopened_end",
            "BIGINT",
            "end offset with which the target was in use, while a nearer one is agreed; null: none is",
        ),
    ),
)

MIGRATION_GROUPS = Table(
    "gold/migration_groups",
    "tick, consumer group, topic, partition in a migration to this cluster",
    ("cluster", "tick_ms", "group", "topic", "partition"),
    ("date",),
    columns_of(
        *TICK_COLUMNS,
        ("group", "STRING", "consumer group"),
        *PARTITION_COLUMNS,
        (
            "client_offset",
            "BIGINT",
            "client offset at which it continues; null: unknown, as without a committed offset",
        ),
        ("left_offsets", "BIGINT", "offsets below E that it has yet to read on the origin; null: unknown"),
        ("read_offsets_per_s", "DOUBLE", "growth of its committed offset, offsets/s; null: unknown"),
        ("read_eta_s", "DOUBLE", "time until it has read all below E, seconds; null: never, or unknown"),
        (
            "lost_offsets",
            "BIGINT",
            "offsets that it misses: to retention at its rate, or where the origin was given up; null: unknown",
        ),
        ("gone_offsets", "BIGINT", "offsets below E that are deleted and that it has not read; null: unknown"),
        (
            "kept_s",
            "DOUBLE",
            "time until retention by time may delete the last record below E, seconds; null: never, or unknown",
        ),
        ("enough_retention_ms", "BIGINT", "retention.ms with which it loses no more, ms; null: none needed, or enough"),
    ),
)

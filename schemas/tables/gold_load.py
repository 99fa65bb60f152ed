"""The gold table of load by hour."""

from __future__ import annotations

from schemas.tables.table import PARTITION_COLUMNS, Table, columns_of

PARTITION_LOAD = Table(
    "gold/partition_load",
    "hour, topic, partition",
    ("cluster", "hour_ms", "topic", "partition"),
    ("date",),
    columns_of(
        ("cluster", "STRING", "name of the watched cluster"),
        ("hour_ms", "BIGINT", "start of the hour, epoch milliseconds UTC"),
        ("date", "DATE", "day of hour_ms in UTC; folder of the row"),
        *PARTITION_COLUMNS,
        (
            "mean_write_bytes_per_s",
            "DOUBLE",
            "mean of its write rates over 5 minutes, weighted by time, bytes/s; null: unknown",
        ),
        ("p95_write_bytes_per_s", "DOUBLE", "95th percentile of these rates, interpolated, bytes/s; null: unknown"),
        ("peak_write_bytes_per_s", "DOUBLE", "greatest of these rates, bytes/s; null: unknown"),
        (
            "size_bytes",
            "BIGINT",
            "size of the leader's log when it was last read in the hour, bytes; null: partition was neither in a "
            "reassignment nor in a throttled replica list",
        ),
        ("observed_ratio", "DOUBLE", "share of the hour with a known write rate, 0 to 1"),
        (
            "hour_messages",
            "BIGINT",
            "messages of the cluster's ticks in the hour that silver had when the row was written; if more arrive, "
            "the hour is written again",
        ),
    ),
)

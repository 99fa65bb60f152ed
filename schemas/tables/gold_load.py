"""The gold tables of load: of partitions by hour, of brokers by minute."""

from __future__ import annotations

from headroom.schemas.tables.table import PARTITION_COLUMNS, TICK_COLUMNS, Table, columns_of

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
            "size of the leader's log when it was last read in the hour, bytes; null: not read "
            "(collect.log_dirs_interval_s), and neither in a reassignment nor in a throttled replica list",
        ),
        ("observed_ratio", "DOUBLE", "share of the hour with a known write rate, 0 to 1"),
        (
            "hour_messages",
            "BIGINT",
            "messages of the cluster's ticks in the hour that silver had when the row was written; if more arrive, "
            "the hour is written again",
        ),
        (
            "mean_read_bytes_per_s",
            "DOUBLE",
            "its part of the mean rate at which consumers read the topic, divided evenly, bytes/s; null: unknown",
        ),
        (
            "mean_requests_per_s",
            "DOUBLE",
            "its part of the mean rate of the topic's produce and fetch requests, divided evenly, per second; null: "
            "unknown",
        ),
    ),
)

_OF_RESOURCE = "in the unit of the resource (bytes/s, requests/s, bytes or a number)"
BROKER_LOAD = Table(
    "gold/broker_load",
    "minute, broker, resource",
    ("cluster", "minute_ms", "broker", "resource"),
    ("date",),
    columns_of(
        *TICK_COLUMNS,
        ("minute_ms", "BIGINT", "start of the minute, epoch milliseconds UTC; the row is from its first complete tick"),
        ("broker", "INT", "broker"),
        ("alive", "BOOLEAN", "true if the broker is registered with the cluster"),
        (
            "resource",
            "STRING",
            "network_in or network_out (without what reassignments copy), requests, disk, leaders or replicas",
        ),
        (
            "load",
            "DOUBLE",
            f"load of the broker {_OF_RESOURCE}; network rates are means since the row before; requests and disk are "
            "those of the last reading (collect.load_interval_s, collect.log_dirs_interval_s); null: unknown",
        ),
        ("unknown_reason", "STRING", "why the load is unknown; null: it is known"),
        ("capacity", "DOUBLE", "capacity of the broker, in the same unit; null: unknown"),
        ("load_limit", "DOUBLE", "share of the capacity that a proposal lets it use; null: unknown"),
        ("mean", "DOUBLE", "load that it would have if all brokers carried their share; null: no broker's is known"),
        ("lower", "DOUBLE", "lower edge of its band, included; null: no goal of balance.goals is on the resource"),
        ("upper", "DOUBLE", "upper edge of its band, included; null: the same"),
        (
            "in_band",
            "BOOLEAN",
            "whether the load is in the band, or too small to matter as the mean is; null: unknown, or the broker is "
            "slow and is to give the load away",
        ),
        ("band_score", "DOUBLE", "score in the band, 0 to 1; null: unknown"),
        ("limit_score", "DOUBLE", "score in the limit, 0 to 1; 1 without a capacity; null: unknown, or never limited"),
        ("flush_p999_s", "DOUBLE", "99.9th percentile of the broker's log flush times, seconds; null: unknown"),
        (
            "slow_rounds",
            "INT",
            "minutes in which the broker was slow, less those in which it was not, at least 0; null: its flush times "
            "were never known",
        ),
        ("read_ms", "BIGINT", "when counter_bytes was read, epoch milliseconds; null: no rate of bytes, or unknown"),
        ("counter_bytes", "BIGINT", "bytes since the start of the broker, from which the rate of the next row follows"),
    ),
)

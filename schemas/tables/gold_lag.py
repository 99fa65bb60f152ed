"""The gold table of replication lag between brokers."""

from __future__ import annotations

from headroom.schemas.tables.table import TICK_COLUMNS, Table, columns_of

REPLICATION_LAG = Table(
    "gold/replication_lag",
    "tick, one in some 15 s, follower broker, source broker",
    ("cluster", "tick_ms", "broker", "source_broker"),
    ("date",),
    columns_of(
        *TICK_COLUMNS,
        ("broker", "INT", "broker of the follower replicas"),
        ("source_broker", "INT", "broker that leads their partitions, from which they fetch"),
        ("replicas", "INT", "number of the replicas that have a gauge (FetcherLagMetrics ConsumerLag)"),
        ("behind", "INT", "number of those whose gauge is greater than 0"),
        ("unknown", "INT", "number of those whose gauge was -1"),
        (
            "missing",
            "INT",
            "number of the replicas that metadata name and that have no gauge; null: metadata of the tick are missing",
        ),
        ("lag_offsets", "BIGINT", "sum of the known gauges, offsets"),
        ("greatest_lag_offsets", "BIGINT", "greatest of the known gauges, offsets; null: none is known"),
    ),
)

"""The bronze table: records of the ticks topic as they were read."""

from __future__ import annotations

from headroom.schemas.tables.table import Table, columns_of

BRONZE_TICKS = Table(
    "bronze/ticks",
    "one unchanged record of the ticks topic",
    ("topic", "partition", "offset"),
    ("date",),
    columns_of(
        ("key", "BINARY", "key of the record: the message's envelope, or its kind alone"),
        ("value", "BINARY", "value of the record: the message"),
        ("topic", "STRING", "topic of the record"),
        ("partition", "INT", "partition of the record"),
        ("offset", "BIGINT", "offset of the record"),
        ("timestamp", "TIMESTAMP", "timestamp of the record"),
        ("date", "DATE", "day of timestamp in UTC; folder of the row"),
    ),
)

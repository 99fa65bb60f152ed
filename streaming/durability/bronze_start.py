"""Where the copy of the topic continues with a new checkpoint: after the records that ``bronze/ticks`` has."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from headroom.streaming.delta import query as delta_query
from headroom.streaming.delta.append import without_panic
from headroom.streaming.delta.locations import is_table

# Records of several clusters in a partition may differ in time by this much, because of their clocks.
_CLOCKS_MS = 10 * 60 * 1000
# The topic is read again from this long before the newest record of the partition that is behind the others.
_AGAIN_MS = 60 * 60 * 1000
# Offsets count from the newest record back by the difference of clocks: a topic that was created again reuses them.
_SQL = f"""
WITH records AS (
  SELECT partition, "offset", CAST(arrow_cast("timestamp", 'Timestamp(Millisecond, Some("UTC"))') AS BIGINT) AS at_ms
  FROM data WHERE topic = {{topic}}
), newest AS (SELECT partition, max(at_ms) AS newest_ms FROM records GROUP BY partition)
SELECT r.partition, max(r."offset") + 1 AS next_offset, max(n.newest_ms) AS newest_ms
FROM records r JOIN newest n ON r.partition = n.partition
WHERE r.at_ms >= n.newest_ms - {_CLOCKS_MS} GROUP BY r.partition
"""


@dataclass(frozen=True)
class PartitionStart:
    """Where one partition of the topic continues.

    Attributes:
        next_offset: offset after the newest record in the table.
        newest_ms: time of the newest record in the table, epoch milliseconds. A later record is new at any offset: the
            topic was created again.
    """

    next_offset: int
    newest_ms: int


@dataclass(frozen=True)
class BronzeStart:
    """Where each partition of the topic continues; others begin with their first record.

    Attributes:
        partitions: partition to its start; at least one.
    """

    partitions: Mapping[int, PartitionStart]

    @property
    def since_ms(self) -> int:
        """Return the time from which the topic has to be read, epoch milliseconds."""
        return min(start.newest_ms for start in self.partitions.values()) - _AGAIN_MS

    def condition(self) -> str:
        """Return the SQL condition of Kafka records that the table does not have."""
        cases = " ".join(
            f"WHEN {partition} THEN offset >= {start.next_offset} OR timestamp > timestamp_millis({start.newest_ms})"
            for partition, start in sorted(self.partitions.items())
        )
        return f"CASE partition {cases} ELSE true END"

    def as_json(self) -> dict[str, Any]:
        """Return it for JSON; see ``of_json``."""
        starts = self.partitions.items()
        return {"partitions": {str(number): [start.next_offset, start.newest_ms] for number, start in starts}}

    @classmethod
    def of_json(cls, value: Mapping[str, Any]) -> BronzeStart | None:
        """Return the start of ``as_json``; None if it has no partition."""
        parts = value.get("partitions") or {}
        return cls({int(number): PartitionStart(*start) for number, start in parts.items()}) if parts else None


def read_bronze_start(path: str, topic: str) -> BronzeStart | None:
    """Return where a topic continues after the records in the table; None if the table has none of it.

    Args:
        path: folder of ``bronze/ticks``.
        topic: name of the topic.
    """
    if not is_table(path):
        return None
    with without_panic(path):
        rows = delta_query.rows({"data": path}, _SQL.format(topic=delta_query.sql_text(topic)))
    starts = {row["partition"]: PartitionStart(row["next_offset"], row["newest_ms"]) for row in rows}
    return BronzeStart(starts) if starts else None

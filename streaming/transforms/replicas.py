"""Partitions to follower replicas: what each still has to copy, and whether it does."""

from __future__ import annotations

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from streaming.transforms.write_rate import with_write_rate

# Of the rows of moves: those of partitions that move or are listed, or may be; the others only lack a replica.
WATCHED = """size(adding) + size(removing) > 0
    OR coalesce(size(leader_listed) + size(follower_listed) > 0, true)"""
# Offsets and bytes behind the leader. Where both logs begin at the same offset the sizes differ by what is missing;
# else the missing offsets are taken at the mean size of the leader's records.
_LAG = "CASE WHEN l IS NOT NULL AND f IS NOT NULL THEN greatest(l.log_end_offset - f.log_end_offset, 0) END"
_REMAINING = """CASE
    WHEN lag_offsets = 0 THEN 0
    WHEN l.log_start_offset = f.log_start_offset AND l.size_bytes >= f.size_bytes THEN l.size_bytes - f.size_bytes
    WHEN l.log_end_offset > l.log_start_offset
        THEN CAST(lag_offsets * (l.size_bytes / (l.log_end_offset - l.log_start_offset)) AS BIGINT)
    END"""
_GROWN_OFFSETS = "CASE WHEN f.read_ms > f.prev_read_ms THEN f.log_end_offset - f.prev_log_end_offset END"
_COPIED = """CASE
    WHEN copied_offsets < 0 THEN NULL
    WHEN copied_offsets = 0 THEN 0D
    WHEN f.log_start_offset = f.prev_log_start_offset AND f.size_bytes >= f.prev_size_bytes
        THEN (f.size_bytes - f.prev_size_bytes) * 1000D / (f.read_ms - f.prev_read_ms)
    WHEN l.log_end_offset > l.log_start_offset
        THEN copied_offsets * 1000D / (f.read_ms - f.prev_read_ms)
            * l.size_bytes / (l.log_end_offset - l.log_start_offset)
    END"""
# The gauge stands still while the replica's real lag changes, or it is gone: the follower leaves the partition out of
# its fetches. A lag of 0 that stays 0 is not frozen.
_FROZEN = """NOT in_sync AND f IS NOT NULL AND coalesce(
    f.lag_offsets IS NULL OR (
        f.lag_offsets = f.prev_lag_offsets AND lag_offsets > 0
        AND lag_offsets != l.prev_log_end_offset - f.prev_log_end_offset), true)"""


def replicas(moves: DataFrame) -> DataFrame:
    """Return the follower replicas of the watched partitions.

    Args:
        moves: one row per partition that moves or is listed, with the columns of the message kind ``moves``, and
            ``cluster`` and ``tick_ms``.

    Returns:
        One row per tick, partition and replica that is not the leader: the columns of ``moves`` but for its samples,
        the write rate's (``write_bytes_per_s``, ``first_reading``, ``method``, ``window_ms``), and of the replica
        ``follower`` (broker), ``alive``, ``in_sync``, ``is_adding``, ``lag_offsets``, ``lag_gauge_offsets``,
        ``remaining_bytes``, ``copied_bytes_per_s``, ``frozen`` and ``stalled`` (an adding replica that copies nothing).
        Null: unknown.
    """
    sampled = ["logs", "topic_counters", "before_log", "before_topic_counters", "leader_log", "l", "f"]
    return (
        with_write_rate(moves)
        .withColumn("follower", F.explode(F.expr("array_remove(replicas, coalesce(leader, -1))")))
        .withColumns({"l": F.col("leader_log"), "f": F.expr("get(filter(logs, x -> x.broker = follower), 0)")})
        .withColumns(
            {
                "alive": F.expr("NOT array_contains(coalesce(offline, array()), follower)"),
                "in_sync": F.expr("array_contains(isr, follower)"),
                "is_adding": F.expr("array_contains(adding, follower)"),
                "lag_offsets": F.expr(_LAG),
                "lag_gauge_offsets": F.expr("f.lag_offsets"),
                "copied_offsets": F.expr(_GROWN_OFFSETS),
            }
        )
        .withColumns(
            {
                "remaining_bytes": F.expr(_REMAINING),
                "copied_bytes_per_s": F.expr(_COPIED),
                "frozen": F.expr(_FROZEN),
                "stalled": F.expr(
                    "is_adding AND NOT in_sync AND "
                    "(NOT alive OR leader IS NULL OR coalesce(copied_offsets <= 0 AND lag_offsets > 0, false))"
                ),
            }
        )
        .drop("copied_offsets", *sampled)
    )

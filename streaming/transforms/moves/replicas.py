"""Partitions to follower replicas: what each still has to copy, and whether it does."""

from __future__ import annotations

from pyspark.sql import DataFrame

from streaming.transforms.moves.write_rate import with_write_rate
from streaming.transforms.steps import with_columns

# Of the rows of moves: those of partitions that move or are listed, or may be; the others only lack a replica.
WATCHED = """size(adding) + size(removing) > 0
    OR coalesce(size(leader_listed) + size(follower_listed) > 0, true)"""
# Offsets behind the leader, and those of them that are still to be copied: what retention has deleted is not.
_LAG = "CASE WHEN l IS NOT NULL AND f IS NOT NULL THEN greatest(l.log_end_offset - f.log_end_offset, 0) END"
_TO_COPY = "greatest(l.log_end_offset - greatest(f.log_end_offset, coalesce(l.log_start_offset, 0)), 0)"
# Where both logs begin at the same offset the sizes differ by what is missing; else the missing offsets are taken at
# the mean size of the leader's records. With remote storage the size is that of the local log, which is all that a
# follower copies, while the offsets are those of the whole; there the mean is that of what producers sent.
_REMAINING = f"""CASE
    WHEN lag_offsets IS NULL THEN NULL
    WHEN lag_offsets = 0 THEN 0
    WHEN remote_storage THEN CASE WHEN topic_counters.messages_in > 0 THEN CAST(least(l.size_bytes,
        {_TO_COPY} * (topic_counters.bytes_in / topic_counters.messages_in)) AS BIGINT) END
    WHEN l.log_start_offset = f.log_start_offset AND l.size_bytes >= f.size_bytes THEN l.size_bytes - f.size_bytes
    WHEN l.log_end_offset > l.log_start_offset
        THEN CAST({_TO_COPY} * (l.size_bytes / (l.log_end_offset - l.log_start_offset)) AS BIGINT)
    END"""
# A follower whose next offset the leader has deleted is put to the leader's start: what it skips is not copied.
_GROWN_OFFSETS = """CASE WHEN f.read_ms > f.prev_read_ms
    THEN f.log_end_offset - greatest(f.prev_log_end_offset, coalesce(f.log_start_offset, 0)) END"""
_COPIED = """CASE
    WHEN copied_offsets < 0 THEN NULL
    WHEN copied_offsets = 0 THEN 0D
    WHEN f.log_start_offset = f.prev_log_start_offset AND f.size_bytes >= f.prev_size_bytes
        THEN (f.size_bytes - f.prev_size_bytes) * 1000D / (f.read_ms - f.prev_read_ms)
    WHEN l.log_end_offset > l.log_start_offset
        THEN copied_offsets * 1000D / (f.read_ms - f.prev_read_ms)
            * l.size_bytes / (l.log_end_offset - l.log_start_offset)
    END"""
# How long the end of an adding replica's log has not moved though the leader has more. Of a collector that does not
# tell, one rate window is all that is known.
_IDLE = """CASE WHEN is_adding AND NOT in_sync AND alive AND leader IS NOT NULL AND lag_offsets > 0
    THEN coalesce(f.read_ms - f.unchanged_since_ms, CASE WHEN copied_offsets <= 0 THEN 9223372036854775807 ELSE 0 END)
    END"""
# A follower's partitions are served in turn, 1 MB of each (FetchSession.PartitionIterator): with many behind one
# throttle each waits for the others. Within so many turns it waits; then it stands still. A quota that was used up at
# once is free again after 11 s: where a destination copies nothing at all for longer than two of these, no turn comes.
_TURNS, _QUOTA_CYCLE_MS, _NO_TURN_MS = 3, 12_000, 25_000
_FETCH_BYTES = 1_048_576
_TURN_MS = f"destination_behind * {_FETCH_BYTES}D / nullif(destination_copied_bytes_per_s, 0D) * 1000D"
_WAITING = f"""coalesce(idle_ms > 0 AND destination_idle_ms <= {_NO_TURN_MS}
    AND idle_ms <= coalesce({_TURNS} * {_TURN_MS}, 0D) + {_QUOTA_CYCLE_MS}, false)"""
# The gauge stands still while the replica's real lag changes, or it is gone: the follower leaves the partition out of
# its fetches. A lag of 0 that stays 0 is not frozen.
_FROZEN = """NOT in_sync AND f IS NOT NULL AND coalesce(
    f.lag_offsets IS NULL OR (
        f.lag_offsets = f.prev_lag_offsets AND lag_offsets > 0
        AND lag_offsets != l.prev_log_end_offset - f.prev_log_end_offset), true)"""
# One window without growth makes it: a replica that has just begun is not expected to have copied anything.
_STALLED = f"""is_adding AND NOT in_sync AND (NOT alive OR leader IS NULL
    OR coalesce(copied_offsets <= 0 AND idle_ms > 0 AND NOT {_WAITING}, false))"""

# The lane is one partition of the topic, so that this window shuffles nothing.
_OF_DESTINATION = "(PARTITION BY cluster, tick_ms, follower)"
_DESTINATION = {
    "destination_behind": "count_if(NOT in_sync AND alive AND lag_offsets > 0)",
    "destination_idle_ms": "min(idle_ms)",
    "destination_copied_bytes_per_s": "sum(CASE WHEN NOT in_sync THEN copied_bytes_per_s END)",
}
_SAMPLED = ("logs", "topic_counters", "before_log", "before_topic_counters", "l", "f", "without_log")
# Offline by Kafka's metadata; or its broker is up and has no log of it.
_ALIVE = """NOT coalesce(array_contains(offline, follower), false)
    AND (array_contains(isr, follower) OR NOT coalesce(array_contains(without_log, follower), false))"""
_LOG = "get(filter(logs, x -> x.broker = follower), 0)"
_STANDING = {
    "alive": _ALIVE,
    "in_sync": "array_contains(isr, follower)",
    "is_adding": "array_contains(adding, follower)",
    "lag_offsets": _LAG,
    "lag_gauge_offsets": "f.lag_offsets",
    "copied_offsets": _GROWN_OFFSETS,
}
_PROGRESS = {"remaining_bytes": _REMAINING, "copied_bytes_per_s": _COPIED, "frozen": _FROZEN, "idle_ms": _IDLE}


def replicas(moves: DataFrame) -> DataFrame:
    """Return the follower replicas of the watched partitions.

    Args:
        moves: one row per partition that moves or is listed, with the columns of the message kind ``moves``, and
            ``cluster`` and ``tick_ms``.

    Returns:
        One row per tick, partition and replica that is not the leader: the columns of ``moves`` but for its samples,
        the write rate's (``write_bytes_per_s``, ``first_reading``, ``method``, ``window_ms``), and of the replica
        ``follower`` (broker), ``alive``, ``in_sync``, ``is_adding``, ``lag_offsets``, ``lag_gauge_offsets``,
        ``remaining_bytes``, ``copied_bytes_per_s``, ``frozen``, ``idle_ms`` (of an adding replica that lags: since when
        its log has not grown), ``waiting`` (an adding replica that waits for its turn) and ``stalled`` (one that copies
        nothing). Null: unknown.
    """
    rated = with_write_rate(moves)
    single = {"l": "leader_log", "follower": "explode(array_remove(replicas, coalesce(leader, -1)))"}
    sampled = with_columns(with_columns(rated, single, without=["leader_log"]), {"f": _LOG})
    measured = with_columns(with_columns(sampled, _STANDING), _PROGRESS)
    beside = {name: f"{what} OVER {_OF_DESTINATION}" for name, what in _DESTINATION.items()}
    judged = {"waiting": _WAITING, "stalled": _STALLED}
    return with_columns(with_columns(measured, beside), judged, without=["copied_offsets", *_SAMPLED, *_DESTINATION])

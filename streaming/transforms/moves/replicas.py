"""Partitions to follower replicas: what each still has to copy, and whether it does."""

from __future__ import annotations

from pyspark.sql import DataFrame

from planning.finish.limits import DEFAULT_FETCH
from streaming.transforms.moves.write_rate import with_write_rate
from streaming.transforms.steps import grouped, with_columns

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
# A follower's partitions are served in turn, replica.fetch.max.bytes of each (FetchSession.PartitionIterator), or what
# a response takes: with many behind one throttle each waits for the others. That throttle may be the destination's,
# or the leader's, which then serves its destinations in turn, a response each. Within so many turns a replica waits;
# then it stands still. A quota that was used up at once is free again after 11 s: where a destination copies nothing at
# all for longer than two of these, and than its leader needs to serve all of them, no turn comes.
_TURNS, _QUOTA_CYCLE_MS, _NO_TURN_MS = 3, 12_000, 25_000
_LEAST_FETCH, _RESPONSE = DEFAULT_FETCH.partition_bytes, DEFAULT_FETCH.response_bytes
_FETCH_LIMITS = (
    f"max(least(greatest(replica_fetch_max_bytes, {_LEAST_FETCH}), "
    f"greatest(coalesce(replica_fetch_response_max_bytes, {_RESPONSE}), {_LEAST_FETCH}))) AS fetch_bytes",
    f"max(greatest(coalesce(replica_fetch_response_max_bytes, {_RESPONSE}), {_LEAST_FETCH})) AS response_bytes",
)
_TURN_BYTES = f"""CASE WHEN NOT in_sync AND alive AND lag_offsets > 0
    THEN CAST(coalesce(fetch_bytes, {_LEAST_FETCH}) AS DOUBLE) END"""
# Of a pair of leader and destination that copies nothing, though the leader's turn has come round, what the leader
# sends to others tells nothing.
_SERVED = f"pair_idle_ms <= greatest({_NO_TURN_MS}D, {_TURNS} * leader_round_ms + {_QUOTA_CYCLE_MS})"
_TURN_MS = f"greatest(destination_turn_ms, CASE WHEN {_SERVED} THEN greatest(pair_turn_ms, leader_turn_ms) END)"
_WAITING = f"""coalesce(idle_ms > 0 AND (destination_idle_ms <= {_NO_TURN_MS} OR {_SERVED})
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

# The lane is one partition of the topic, so that these windows shuffle nothing.
_OF_DESTINATION, _OF_PAIR, _OF_LEADER = (
    f"OVER (PARTITION BY cluster, tick_ms, {of})" for of in ("follower", "follower, leader", "leader")
)


def _ms(turn_bytes: str, window: str) -> str:
    """Return how long so many bytes take at the rate of all copies of a window."""
    return f"{turn_bytes} / nullif(sum(CASE WHEN NOT in_sync THEN copied_bytes_per_s END) {window}, 0D) * 1000D"


# A response to each destination, or all that is behind if that is less.
_ROUND_BYTES = f"""least(sum(turn_bytes) {_OF_LEADER},
    CAST(coalesce(max(response_bytes) {_OF_LEADER}, {_RESPONSE}) AS DOUBLE)
    * size(collect_set(CASE WHEN turn_bytes > 0 THEN follower END) {_OF_LEADER}))"""
_BESIDE = {
    "destination_idle_ms": f"min(idle_ms) {_OF_DESTINATION}",
    "destination_turn_ms": _ms(f"sum(turn_bytes) {_OF_DESTINATION}", _OF_DESTINATION),
    "pair_idle_ms": f"min(idle_ms) {_OF_PAIR}",
    "pair_turn_ms": _ms(f"sum(turn_bytes) {_OF_PAIR}", _OF_PAIR),
    "leader_turn_ms": _ms(f"sum(turn_bytes) {_OF_LEADER}", _OF_LEADER),
    "leader_round_ms": _ms(_ROUND_BYTES, _OF_LEADER),
}
_DESTINATION = ("cluster", "tick_ms", "follower")
_FETCHED = ("fetch_bytes", "response_bytes", "turn_bytes")
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
_PROGRESS = {
    "remaining_bytes": _REMAINING,
    "copied_bytes_per_s": _COPIED,
    "frozen": _FROZEN,
    "idle_ms": _IDLE,
    "turn_bytes": _TURN_BYTES,
}


def replicas(moves: DataFrame, brokers: DataFrame) -> DataFrame:
    """Return the follower replicas of the watched partitions.

    Args:
        moves: one row per partition that moves or is listed, with the columns of the message kind ``moves``, and
            ``cluster`` and ``tick_ms``.
        brokers: one row per tick and broker, with the columns of the message kind ``brokers``.

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
    standing = with_columns(sampled, _STANDING).join(_fetch_limits(brokers), list(_DESTINATION), "left")
    beside = with_columns(with_columns(standing, _PROGRESS), _BESIDE)
    judged = {"waiting": _WAITING, "stalled": _STALLED}
    return with_columns(beside, judged, without=["copied_offsets", *_SAMPLED, *_FETCHED, *_BESIDE])


def _fetch_limits(brokers: DataFrame) -> DataFrame:
    """Return how much each destination fetches of one partition, and in all, in one response."""
    return grouped(brokers.withColumnRenamed("broker", "follower"), _DESTINATION, _FETCH_LIMITS)

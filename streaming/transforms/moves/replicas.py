"""Partitions to follower replicas: the bytes that each replica still has to copy, and whether it copies them."""

from __future__ import annotations

from pyspark.sql import DataFrame

from headroom.planning.quotas.limits import DEFAULT_FETCH
from headroom.streaming.transforms.moves.write_rate import with_write_rate
from headroom.streaming.transforms.steps import aggregate_by, with_columns


def moves_or_listed(partition: str = "") -> str:
    """Return the condition of partitions that move or are listed, or whose lists are unknown, as an expression.

    The other rows of ``moves`` are under-replicated only.

    Args:
        partition: prefix of the columns, such as the name of a struct and a dot.
    """
    return f"""size({partition}adding) + size({partition}removing) > 0
        OR coalesce(size({partition}leader_listed) + size({partition}follower_listed) > 0, true)"""


MOVES_OR_LISTED = moves_or_listed()


def followers_of(partition: str = "") -> str:
    """Return the replicas of a partition that are not the leader, as an expression.

    Args:
        partition: prefix of the columns, such as the name of a struct and a dot.
    """
    return f"array_remove({partition}replicas, coalesce({partition}leader, -1))"


# The sample of the log on the follower, with its earlier sample.
_FOLLOWER_LOG = "get(filter(logs, x -> x.broker = follower), 0)"
# Not alive: offline in Kafka's metadata, or its broker is up but has no log of it (its disk has failed).
_ALIVE = """NOT coalesce(array_contains(offline, follower), false)
    AND (array_contains(isr, follower) OR NOT coalesce(array_contains(without_log, follower), false))"""
_LAG = """CASE WHEN leader_log IS NOT NULL AND follower_log IS NOT NULL
    THEN greatest(leader_log.log_end_offset - follower_log.log_end_offset, 0) END"""
# A follower whose next offset the leader has deleted starts again at the leader's log start. Skipped offsets are not
# copied ones.
_COPIED_OFFSETS = """CASE WHEN follower_log.read_ms > follower_log.prev_read_ms
    THEN follower_log.log_end_offset
        - greatest(follower_log.prev_log_end_offset, coalesce(follower_log.log_start_offset, 0)) END"""
# In the order of computation, from one row per partition and follower.
_REPLICA = {
    # Whether the replica can fetch.
    "alive": _ALIVE,
    # Whether it is in the ISR.
    "in_sync": "array_contains(isr, follower)",
    # Whether the reassignment adds it.
    "is_adding": "array_contains(adding, follower)",
    # Offsets behind the leader's log end; null if a log was not read.
    "lag_offsets": _LAG,
    # The follower's own lag gauge, offsets; null if the broker does not export it.
    "lag_gauge_offsets": "follower_log.lag_offsets",
    # Offsets that it has copied between the two samples of its log.
    "copied_offsets": _COPIED_OFFSETS,
}

# Offsets of the lag that exist on the leader; retention has deleted the others.
_OFFSETS_TO_COPY = """greatest(leader_log.log_end_offset
    - greatest(follower_log.log_end_offset, coalesce(leader_log.log_start_offset, 0)), 0)"""
# If both logs start at the same offset, their sizes differ by the missing bytes. Otherwise the missing offsets count
# with the mean size of the leader's records. With remote storage the size is that of the local log, which is all that a
# follower copies, but the offsets are those of the whole log. The mean size then comes from what producers sent.
_REMAINING = f"""CASE
    WHEN lag_offsets IS NULL THEN NULL
    WHEN lag_offsets = 0 THEN 0
    WHEN remote_storage THEN CASE WHEN topic_counters.messages_in > 0 THEN CAST(least(leader_log.size_bytes,
        {_OFFSETS_TO_COPY} * (topic_counters.bytes_in / topic_counters.messages_in)) AS BIGINT) END
    WHEN leader_log.log_start_offset = follower_log.log_start_offset
        AND leader_log.size_bytes >= follower_log.size_bytes
        THEN leader_log.size_bytes - follower_log.size_bytes
    WHEN leader_log.log_end_offset > leader_log.log_start_offset
        THEN CAST({_OFFSETS_TO_COPY}
            * (leader_log.size_bytes / (leader_log.log_end_offset - leader_log.log_start_offset)) AS BIGINT)
    END"""
_COPIED = """CASE
    WHEN copied_offsets < 0 THEN NULL
    WHEN copied_offsets = 0 THEN 0D
    WHEN follower_log.log_start_offset = follower_log.prev_log_start_offset
        AND follower_log.size_bytes >= follower_log.prev_size_bytes
        THEN (follower_log.size_bytes - follower_log.prev_size_bytes) * 1000D
            / (follower_log.read_ms - follower_log.prev_read_ms)
    WHEN leader_log.log_end_offset > leader_log.log_start_offset
        THEN copied_offsets * 1000D / (follower_log.read_ms - follower_log.prev_read_ms)
            * leader_log.size_bytes / (leader_log.log_end_offset - leader_log.log_start_offset)
    END"""
# The gauge does not move while the replica's real lag changes, or it is gone: the follower leaves the partition out of
# its fetches. A lag of 0 that stays 0 is not frozen.
_FROZEN = """NOT in_sync AND follower_log IS NOT NULL AND coalesce(
    follower_log.lag_offsets IS NULL OR (
        follower_log.lag_offsets = follower_log.prev_lag_offsets AND lag_offsets > 0
        AND lag_offsets != leader_log.prev_log_end_offset - follower_log.prev_log_end_offset), true)"""
# An older collector does not report when a log last changed. Then one rate window without a copied offset counts as
# idle without end.
_IDLE = """CASE WHEN is_adding AND NOT in_sync AND alive AND leader IS NOT NULL AND lag_offsets > 0
    THEN coalesce(follower_log.read_ms - follower_log.unchanged_since_ms,
        CASE WHEN copied_offsets <= 0 THEN 9223372036854775807 ELSE 0 END)
    END"""

# A turn brings at least Kafka's default of one partition's bytes, and at most a response.
_LEAST_FETCH, _RESPONSE = DEFAULT_FETCH.partition_bytes, DEFAULT_FETCH.response_bytes
_RESPONSE_BYTES = f"greatest(coalesce(replica_fetch_response_max_bytes, {_RESPONSE}), {_LEAST_FETCH})"
# By destination.
_FETCH_LIMITS = {
    # Most bytes of one partition in one response to this destination.
    "fetch_bytes": f"max(least(greatest(replica_fetch_max_bytes, {_LEAST_FETCH}), {_RESPONSE_BYTES}))",
    # Most bytes of one whole response to this destination.
    "response_bytes": f"max({_RESPONSE_BYTES})",
}
_TURN_BYTES = f"""CASE WHEN NOT in_sync AND alive AND lag_offsets > 0
    THEN CAST(coalesce(fetch_bytes, {_LEAST_FETCH}) AS DOUBLE) END"""
# In the order of computation.
_PROGRESS = {
    # Bytes that it still has to copy; null if unknown.
    "remaining_bytes": _REMAINING,
    # Bytes per second that it has copied between the two samples of its log; null if unknown.
    "copied_bytes_per_s": _COPIED,
    # Size of the leader's log on its disks, bytes; null if it was not read.
    "leader_log_bytes": "leader_log.size_bytes",
    # Whether its lag gauge has stopped, or is gone.
    "frozen": _FROZEN,
    # Milliseconds since the log end of an adding replica that lags has last moved; null for all others.
    "idle_ms": _IDLE,
    # Bytes that one turn brings it (see below); null if it copies nothing.
    "turn_bytes": _TURN_BYTES,
}

# A follower's partitions are served in turn, replica.fetch.max.bytes of each (FetchSession.PartitionIterator), or one
# response. With many partitions behind one throttle each waits for the others. That throttle may be the destination's,
# or the leader's, which then serves its destinations in turn, one response each. A replica waits for this many turns,
# because several leaders do not take exact turns; after that it is stalled.
_TURNS = 3
# A quota that was used up at once is free again after 11 s.
_QUOTA_CYCLE_MS = 12_000
# Two cycles of the quota: a destination that copies nothing at all for longer gets no turn.
_NO_TURN_MS = 25_000

# The alert partition is one partition of the topic, so that these windows shuffle nothing.
_BY_DESTINATION, _BY_PAIR, _BY_LEADER = (
    f"OVER (PARTITION BY cluster, tick_ms, {keys})" for keys in ("follower", "follower, leader", "leader")
)


def _transfer_ms(turn_bytes: str, window: str) -> str:
    """Return the time that these bytes take at the rate of all copies of a window, milliseconds, as an expression."""
    return f"{turn_bytes} / nullif(sum(CASE WHEN NOT in_sync THEN copied_bytes_per_s END) {window}, 0D) * 1000D"


# One response to each destination, or the turns of all partitions if that is less.
_ROUND_BYTES = f"""least(sum(turn_bytes) {_BY_LEADER},
    CAST(coalesce(max(response_bytes) {_BY_LEADER}, {_RESPONSE}) AS DOUBLE)
    * size(collect_set(CASE WHEN turn_bytes > 0 THEN follower END) {_BY_LEADER}))"""
# Milliseconds, over all copies with the same destination, the same pair of leader and destination, or the same leader.
_TURNS_OF_OTHERS = {
    # Shortest idle time among the destination's adding replicas.
    "destination_idle_ms": f"min(idle_ms) {_BY_DESTINATION}",
    # Time until each partition of the destination has had its turn.
    "destination_turn_ms": _transfer_ms(f"sum(turn_bytes) {_BY_DESTINATION}", _BY_DESTINATION),
    # Shortest idle time among the pair's adding replicas.
    "pair_idle_ms": f"min(idle_ms) {_BY_PAIR}",
    # Time until each partition of the pair has had its turn.
    "pair_turn_ms": _transfer_ms(f"sum(turn_bytes) {_BY_PAIR}", _BY_PAIR),
    # Time until each partition that the leader sends has had its turn.
    "leader_turn_ms": _transfer_ms(f"sum(turn_bytes) {_BY_LEADER}", _BY_LEADER),
    # Time until the leader has served each of its destinations once.
    "leader_round_ms": _transfer_ms(_ROUND_BYTES, _BY_LEADER),
}
# A pair that copies nothing although its leader's turn has come round may have a dead fetcher. What the leader sends to
# others does not count for it.
_SERVED = f"pair_idle_ms <= greatest({_NO_TURN_MS}D, {_TURNS} * leader_round_ms + {_QUOTA_CYCLE_MS})"
# The longest of the turns: a destination may copy fast from one leader and slowly from another.
_TURN_MS = f"greatest(destination_turn_ms, CASE WHEN {_SERVED} THEN greatest(pair_turn_ms, leader_turn_ms) END)"
_WAITING = f"""coalesce(idle_ms > 0 AND (destination_idle_ms <= {_NO_TURN_MS} OR {_SERVED})
    AND idle_ms <= coalesce({_TURNS} * {_TURN_MS}, 0D) + {_QUOTA_CYCLE_MS}, false)"""
# It takes one window without growth: a replica that has just started is not expected to have copied anything.
_STALLED = f"""is_adding AND NOT in_sync AND (NOT alive OR leader IS NULL
    OR coalesce(copied_offsets <= 0 AND idle_ms > 0 AND NOT {_WAITING}, false))"""
_STATUS = {
    # Whether an adding replica copies nothing because it waits for its turn.
    "waiting": _WAITING,
    # Whether an adding replica copies nothing and does not wait for a turn.
    "stalled": _STALLED,
}

_DESTINATION = ("cluster", "tick_ms", "follower")
_FETCH_COLUMNS = ("fetch_bytes", "response_bytes", "turn_bytes")
_SAMPLES = ("logs", "topic_counters", "before_log", "before_topic_counters", "leader_log", "follower_log")


def replicas(moves: DataFrame, brokers: DataFrame) -> DataFrame:
    """Return the follower replicas of the partitions that move, are listed or are under-replicated.

    Args:
        moves: one row per partition, with the columns of the message kind ``moves``, and ``cluster`` and ``tick_ms``.
        brokers: one row per tick and broker, with the columns of the message kind ``brokers``.

    Returns:
        One row per tick, partition and replica that is not the leader. It has the columns of ``moves`` except for the
        samples, and those of ``with_write_rate`` (``write_bytes_per_s``, ``first_reading``, ``method``, ``window_ms``).
        Columns of the replica, null if unknown: ``follower`` (broker), ``alive``, ``in_sync``, ``is_adding``,
        ``lag_offsets``, ``lag_gauge_offsets``, ``remaining_bytes``, ``copied_bytes_per_s``, ``leader_log_bytes``,
        ``frozen``, ``idle_ms`` (only of an adding replica that lags), ``waiting`` and ``stalled`` (only true of an
        adding replica).
    """
    by_follower = with_columns(with_write_rate(moves), {"follower": f"explode({followers_of()})"})
    sampled = with_columns(by_follower, {"follower_log": _FOLLOWER_LOG})
    fetch_limits = aggregate_by(brokers.withColumnRenamed("broker", "follower"), _DESTINATION, _FETCH_LIMITS)
    with_limits = with_columns(sampled, _REPLICA).join(fetch_limits, list(_DESTINATION), "left")
    with_turns = with_columns(with_columns(with_limits, _PROGRESS), _TURNS_OF_OTHERS)
    helpers = ["copied_offsets", *_SAMPLES, "without_log", *_FETCH_COLUMNS, *_TURNS_OF_OTHERS]
    return with_columns(with_turns, _STATUS, without=helpers)

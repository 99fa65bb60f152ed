"""Throttle headroom: what each broker's throttles carry, against the rates in force.

The verdict is the one of ``planning.throttle.Demand``, as Column expressions; a property test holds the two equal.
"""

from __future__ import annotations

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from streaming.transforms.long_run import BURST_BYTES, ETAS, copied
from streaming.transforms.replicas import WATCHED

# What is listed by name is cut; rules decide on sums and counts, which are over all.
EVIDENCE_PARTITIONS = 20
_NAMES, _TOPICS = 3, 50
_COUNTS = (
    "limited_replicas",
    "free_replicas",
    "stalled_replicas",
    "waiting_replicas",
    "down_replicas",
    "moving_partitions",
    "resting_listed_partitions",
    "planned_partitions",
    "counting_partitions",
    "limited_partitions",
    "free_partitions",
    "lost_replicas",
    "lost_moving_replicas",
    "lost_leaving_replicas",
)
# Settings of a broker that shape a throttled copy, passed on as they are.
_SETTINGS = (
    "quota_window_num",
    "quota_window_size_s",
    "replica_fetch_max_bytes",
    "replica_fetch_response_max_bytes",
    "num_replica_fetchers",
    "replica_fetch_backoff_ms",
    "log_dirs_throttle_bytes_per_s",
    "log_dirs_throttle_source",
)
SIDE = ["cluster", "tick_ms", "broker", "role"]

# What is certain is said though a part is unknown: more traffic would only be worse.
VERDICT = f"""CASE
    WHEN limited_replicas + free_replicas = 0 THEN 'idle'
    WHEN limited_replicas > 0 AND throttle_bytes_per_s < known_in_sync_bytes_per_s THEN 'starved'
    WHEN limited_replicas > 0 AND throttle_bytes_per_s <= known_required_bytes_per_s AND
        coalesce({copied("known_in_sync_bytes_per_s")}, 0D) <= known_required_bytes_per_s - known_in_sync_bytes_per_s
        THEN 'losing'
    WHEN NOT throttle_known THEN 'no_data'
    WHEN throttle_bytes_per_s IS NULL OR limited_replicas = 0 THEN 'unthrottled'
    WHEN in_sync_bytes_per_s IS NULL OR required_bytes_per_s IS NULL THEN 'no_data'
    WHEN throttle_bytes_per_s <= required_bytes_per_s THEN 'slow'
    ELSE 'catching_up' END"""

_REASON = """CASE WHEN verdict = 'no_data' THEN
    CASE WHEN NOT alive THEN 'the broker is down'
        WHEN unknown_lists > 0 THEN concat('throttled replica lists unknown of ', unknown_lists, ' partition(s)')
        WHEN NOT throttle_known THEN concat('its throttle rates could not be read: ', coalesce(error, 'no answer'))
        WHEN unread_partitions = unknown_partitions
            THEN concat('write rate not known yet of ', unknown_partitions, ' partition(s): it takes two readings')
        ELSE concat('write rate unknown of ', unknown_partitions, ' partition(s)') END END"""

# Why an adding replica copies nothing, as far as it shows at the replica, the gravest last. Numbers, for the greatest
# of texts is not found by hashing.
_STALLS = ("unknown", "not_fetching", "no_leader", "offline")
_STALL = """CASE
    WHEN NOT stalled THEN NULL
    WHEN leader IS NULL THEN 3
    WHEN NOT alive THEN 4
    WHEN lag_gauge_offsets IS NULL THEN 2
    ELSE 1 END"""
_STALL_NAMES = f"array({', '.join(repr(name) for name in _STALLS)})"
_WORST_STALL = f"element_at({_STALL_NAMES}, max(stall)) AS stall"
# A leader switch explains a throttle that is too low for about one rate window.
_RECENT_SWITCH = """role = 'leader' AND followers > 0 AND previous_leader IS NOT NULL
    AND tick_ms - switch_tick_ms <= greatest(coalesce(window_ms, 0), 10000)"""
# What the broker of a replica in sync would have to send more if it came to lead the partition.
_TAKEOVER = """CASE WHEN moving AND alive AND in_sync AND array_contains(leader_listed, follower)
    THEN write_bytes_per_s * greatest(size(replicas) - 1 - size(coalesce(offline, array())), 0) END"""

_WORST_TAKEOVER = """max(CASE WHEN takeover_bytes_per_s IS NOT NULL THEN
    struct(takeover_bytes_per_s AS bytes_per_s, topic, partition, leader) END) AS takeover"""


def shares(replicas: DataFrame) -> DataFrame:
    """Return what each follower replica adds to its leader's and to its own side, one row per replica and side.

    Args:
        replicas: of ``streaming.transforms.replicas.replicas``.
    """
    sides = F.expr(
        """array(
            struct(leader AS broker, 'leader' AS role, follower AS peer,
                array_contains(leader_listed, leader) AS listed, leader_listed IS NOT NULL AS list_known),
            struct(follower AS broker, 'follower' AS role, leader AS peer,
                array_contains(follower_listed, follower) AS listed, follower_listed IS NOT NULL AS list_known))"""
    )
    kept = [
        "cluster",
        "tick_ms",
        "topic",
        "partition",
        "leader",
        "previous_leader",
        "switch_tick_ms",
        "replicas",
        "target",
        "moving",
    ]
    rates = ["write_bytes_per_s", "first_reading", "window_ms", "remaining_bytes", "copied_bytes_per_s"]
    return (
        replicas.withColumns(
            {
                "target": F.expr("array_except(replicas, removing)"),
                "moving": F.expr("size(adding) + size(removing) > 0"),
                "watched": F.expr(WATCHED),
                "added": F.expr("size(adding)"),
                # Followers that fetch no more from the leader once it has moved; where the leader itself leaves, all.
                "gone": F.expr(
                    "IF(array_contains(removing, leader), size(array_except(replicas, removing)), size(removing))"
                ),
            }
        )
        .withColumn("side", F.explode(sides))
        .where("side.broker IS NOT NULL")
        .selectExpr(
            *kept,
            *rates,
            "side.broker AS broker",
            "side.role AS role",
            "side.peer AS peer",
            "added",
            "gone",
            "side.list_known AS list_known",
            # Whether the list has an entry of the partition at all, of whichever broker.
            "coalesce(size(IF(side.role = 'leader', leader_listed, follower_listed)) > 0, false) AS entered",
            "stalled",
            "waiting",
            "alive",
            "coalesce(side.listed, false) AND alive AS listed",
            # A replica on a broker that is down fetches nothing: no traffic of its leader, but still not idle itself.
            "CAST(alive AND in_sync AS INT) AS in_sync",
            # One that neither moves nor is listed is only here because it lacks a replica: no throttle is about it.
            "CAST(NOT in_sync AND watched AND (alive OR (side.role = 'follower' AND is_adding)) AS INT) AS out_of_sync",
            "NOT in_sync AND NOT is_adding AS lost",
            "NOT in_sync AND NOT is_adding AND array_contains(removing, follower) AS lost_leaving",
            "NOT in_sync AND is_adding AS awaited",
            f"CASE WHEN side.role = 'follower' THEN {_STALL} END AS stall",
            f"CASE WHEN side.role = 'follower' THEN {_TAKEOVER} END AS takeover_bytes_per_s",
        )
    )


def _evidence() -> Column:
    """Return the partitions of a side, greatest traffic first: per partition, its followers on this side."""
    entry = F.expr(
        "struct(NOT moving AS resting, -coalesce(write_bytes_per_s, 0D) * greatest(followers, free) AS rank, "
        "topic, partition, write_bytes_per_s, followers, in_sync_followers, leader, previous_leader, switch_tick_ms, "
        "moving, replicas, target, stalled > 0 AS stalled, "
        "CASE WHEN remaining_unknown = 0 THEN coalesce(remaining, 0) END AS remaining_bytes)"
    )
    counts = F.expr("followers > 0 OR limited + free > 0")
    # What moves is kept before what rests; of what is kept, the greatest traffic comes first.
    kept = F.slice(F.array_sort(F.collect_list(F.when(counts, entry))), 1, EVIDENCE_PARTITIONS)
    ranked = F.array_sort(F.transform(kept, lambda e: e.dropFields("resting")))
    return F.transform(ranked, lambda e: e.dropFields("rank"))


def _lost() -> Column:
    """Return partitions whose original replica on this broker is out of the ISR, those that move first."""
    entry = F.expr(
        "CASE WHEN role = 'follower' AND lost > 0 THEN struct(NOT moving AS rank, topic, partition, leader, moving) END"
    )
    return F.transform(
        F.slice(F.array_sort(F.collect_list(entry)), 1, EVIDENCE_PARTITIONS), lambda e: e.dropFields("rank")
    )


def sides(replicas: DataFrame) -> DataFrame:
    """Return the demand of every broker and role that takes part, one row per tick, broker and role.

    Args:
        replicas: of ``streaming.transforms.replicas.replicas``.

    Returns:
        ``in_sync_bytes_per_s``, ``required_bytes_per_s`` (null: a list, or the rate of a listed partition, is unknown),
        ``limited_replicas``, ``free_replicas``, ``remaining_bytes``, ``catch_up_bytes_per_s``, ``stalled_replicas``,
        ``unknown_partitions``, ``unread_partitions`` (those of them that want a second reading), ``unknown_lists``,
        ``rate_window_ms``, ``partitions`` (the evidence), and the columns of ``gold/throttle_headroom`` from
        ``moving_partitions`` to ``takeover``.
    """
    partition = ["topic", "partition", "leader", "previous_leader", "switch_tick_ms", "moving", "replicas", "target"]
    by_partition = (
        shares(replicas)
        .groupBy(*SIDE, *partition, "write_bytes_per_s")
        .agg(
            F.expr("max(window_ms) AS window_ms"),
            F.expr("CAST(count_if(alive) AS INT) AS fetching"),
            F.expr("CAST(sum(CAST(listed AS INT)) AS INT) AS followers"),
            F.expr("CAST(sum(in_sync * CAST(listed AS INT)) AS INT) AS in_sync_followers"),
            F.expr("sum(out_of_sync * CAST(listed AS INT)) AS limited"),
            F.expr("sum(out_of_sync * CAST(NOT listed AS INT)) AS free"),
            F.expr("sum(CASE WHEN out_of_sync = 1 THEN remaining_bytes END) AS remaining"),
            F.expr("sum(CASE WHEN out_of_sync = 1 THEN copied_bytes_per_s END) AS copied"),
            F.expr("count_if(out_of_sync = 1 AND remaining_bytes IS NULL) AS remaining_unknown"),
            F.expr("count_if(out_of_sync = 1 AND copied_bytes_per_s IS NULL) AS copied_unknown"),
            F.expr("count_if(stalled) AS stalled"),
            F.expr("count_if(waiting) AS waiting"),
            F.expr("count_if(awaited AND NOT alive) AS down"),
            F.expr(_LIMITED_COPIES),
            F.expr("CAST(count_if(lost) AS INT) AS lost"),
            F.expr("count_if(lost_leaving) AS lost_leaving"),
            F.expr("count_if(lost) = 0 AND count_if(awaited) > 0 AS planned"),
            F.expr("max(stall) AS stall"),
            F.expr("max(takeover_bytes_per_s) AS takeover_bytes_per_s"),
            F.expr("bool_and(list_known) AS list_known"),
            F.expr("bool_or(entered) AS entered"),
            F.expr("bool_or(first_reading) AS first_reading"),
        )
    )
    return by_partition.groupBy(*SIDE).agg(
        F.expr(_known_sum("write_bytes_per_s * in_sync_followers", "in_sync_followers > 0", "in_sync_bytes_per_s")),
        F.expr(_known_sum("write_bytes_per_s * followers", "followers > 0", "required_bytes_per_s")),
        F.expr("coalesce(sum(write_bytes_per_s * in_sync_followers), 0D) AS known_in_sync_bytes_per_s"),
        F.expr("coalesce(sum(write_bytes_per_s * followers), 0D) AS known_required_bytes_per_s"),
        F.expr(_MOVING_BYTES),
        F.expr("CAST(sum(limited) AS INT) AS limited_replicas"),
        F.expr("CAST(sum(free) AS INT) AS free_replicas"),
        F.expr("CAST(count_if(followers > 0 OR limited + free > 0) AS INT) AS counting_partitions"),
        F.expr("CAST(count_if(moving AND limited > 0) AS INT) AS limited_partitions"),
        F.expr("CAST(count_if(moving AND free > 0) AS INT) AS free_partitions"),
        F.expr("CASE WHEN sum(remaining_unknown) = 0 THEN coalesce(sum(remaining), 0) END AS remaining_bytes"),
        F.expr(
            "CASE WHEN sum(copied_unknown) = 0 AND count_if(limited + free > 0 AND write_bytes_per_s IS NULL) = 0 "
            "THEN sum(copied) - sum((limited + free) * write_bytes_per_s) END AS catch_up_bytes_per_s"
        ),
        F.expr("CAST(sum(stalled) AS INT) AS stalled_replicas"),
        F.expr("CAST(sum(waiting) AS INT) AS waiting_replicas"),
        F.expr("CAST(sum(CASE WHEN role = 'leader' THEN down END) AS INT) AS down_replicas"),
        F.expr("count_if(followers > 0 AND write_bytes_per_s IS NULL) AS unknown_partitions"),
        F.expr("count_if(followers > 0 AND write_bytes_per_s IS NULL AND first_reading) AS unread_partitions"),
        F.expr("count_if(NOT list_known) AS unknown_lists"),
        F.expr("max(window_ms) AS rate_window_ms"),
        F.expr("CAST(count_if(moving) AS INT) AS moving_partitions"),
        F.expr("CAST(count_if(followers > 0 AND NOT moving) AS INT) AS resting_listed_partitions"),
        F.expr("CAST(count_if(planned) AS INT) AS planned_partitions"),
        F.expr("CAST(sum(CASE WHEN role = 'follower' THEN lost END) AS INT) AS lost_replicas"),
        F.expr("CAST(sum(CASE WHEN role = 'follower' AND moving THEN lost END) AS INT) AS lost_moving_replicas"),
        F.expr("CAST(sum(CASE WHEN role = 'follower' THEN lost_leaving END) AS INT) AS lost_leaving_replicas"),
        F.expr("array_sort(collect_set(CASE WHEN entered AND NOT moving THEN topic END)) AS resting_topics"),
        F.expr("flatten(collect_list(limited_copies)) AS limited_copies"),
        F.expr(f"array_sort(collect_list(CASE WHEN stall IS NOT NULL THEN {_STALLED_ENTRY} END)) AS stalls"),
        F.expr(f"array_sort(collect_list(CASE WHEN {_RECENT_SWITCH} THEN {_SWITCH_ENTRY} END)) AS switches"),
        F.expr(f"slice(array_sort(collect_list(CASE WHEN moving THEN {_MOVE_ENTRY} END)), 1, 20) AS moves"),
        _lost().alias("lost"),
        F.expr(_WORST_STALL),
        F.expr(_WORST_TAKEOVER),
        _evidence().alias("partitions"),
    )


# Each copy that the throttle of a side limits: the broker at its other end, and what it has to bring.
_LIMITED_COPIES = """collect_list(CASE WHEN out_of_sync = 1 AND listed AND peer IS NOT NULL THEN
    struct(peer AS broker, remaining_bytes AS remaining, write_bytes_per_s AS written,
        write_bytes_per_s * gone / greatest(added, 1) AS leaving) END) AS limited_copies"""
# What leaders of moving partitions send to all their followers, and what a destination receives of them.
_MOVING_BYTES = """CASE
    WHEN count_if(moving AND (role = 'leader' OR limited + free > 0) AND write_bytes_per_s IS NULL) = 0
    THEN coalesce(sum(CASE WHEN moving AND role = 'leader' THEN write_bytes_per_s * fetching
        WHEN moving THEN write_bytes_per_s * (limited + free) END), 0D) END AS moving_bytes_per_s"""
_STALLED_ENTRY = "struct(topic, partition, leader, stall)"
_SWITCH_ENTRY = """struct(topic, partition, previous_leader, switch_tick_ms,
    write_bytes_per_s * followers AS brought)"""
_MOVE_ENTRY = "struct(topic, partition, target)"


def _grouped(array: str, key: str, fields: str) -> str:
    """Return an array of structs by a key of them, as an expression.

    Args:
        array: column with structs, in an order of its own.
        key: of the element ``x``.
        fields: of the structs that come out, of the elements ``g`` that have the same key.
    """
    keys = f"array_sort(array_distinct(transform({array}, x -> {key})))"
    groups = f"transform({keys}, k -> filter({array}, x -> {key} <=> k))"
    return f"transform({groups}, g -> named_struct({fields}))"


def _first_names(elements: str) -> str:
    names = f"transform({elements}, x -> concat(x.topic, '-', x.partition))"
    return f"slice({names}, 1, {_NAMES})"


# Sums of which a part is unknown are null.
_PEERS = _grouped(
    "limited_copies",
    "x.broker",
    """'broker', g[0].broker, 'replicas', size(g),
    'remaining_bytes', aggregate(g, 0L, (sum, x) -> sum + x.remaining),
    'write_bytes_per_s', aggregate(g, 0D, (sum, x) -> sum + x.written),
    'largest_remaining_bytes', array_max(transform(g, x -> x.remaining)),
    'leaving_bytes_per_s', aggregate(g, 0D, (sum, x) -> sum + coalesce(x.leaving, 0D))""",
)
_STALL_GROUPS = _grouped(
    "stalls",
    "struct(x.stall, x.leader)",
    f"""'cause', element_at({_STALL_NAMES}, g[0].stall), 'leader', g[0].leader, 'replicas', size(g),
    'partitions', {_first_names("g")}""",
)
_SWITCH_GROUPS = _grouped(
    "switches",
    "x.previous_leader",
    f"""'previous_leader', g[0].previous_leader, 'partitions', size(g),
    'bytes_per_s', aggregate(g, 0D, (sum, x) -> sum + coalesce(x.brought, 0D)),
    'switch_tick_ms', array_max(transform(g, x -> x.switch_tick_ms)), 'names', {_first_names("g")}""",
)


def _known_sum(amount: str, counts: str, name: str) -> str:
    """Return a sum that is null if any part that counts is unknown: half a sum would be a false verdict."""
    return (
        f"CASE WHEN count_if(NOT list_known OR ({counts} AND write_bytes_per_s IS NULL)) = 0 "
        f"THEN coalesce(sum(CASE WHEN {counts} THEN {amount} END), 0D) END AS {name}"
    )


def throttles(brokers: DataFrame) -> DataFrame:
    """Return the rates in force, one row per tick, broker and role.

    Args:
        brokers: one row per tick and broker, with the columns of the message kind ``brokers``.
    """
    roles = F.expr(
        """array(
            struct('leader' AS role, CAST(leader_throttle_bytes_per_s AS DOUBLE) AS throttle_bytes_per_s,
                leader_throttle_source AS throttle_source, leader_quota_bytes_per_s AS quota_bytes_per_s),
            struct('follower' AS role, CAST(follower_throttle_bytes_per_s AS DOUBLE) AS throttle_bytes_per_s,
                follower_throttle_source AS throttle_source, follower_quota_bytes_per_s AS quota_bytes_per_s))"""
    )
    return brokers.select(
        "cluster", "tick_ms", "broker", "alive", "error", "throttles_known", *_SETTINGS, F.explode(roles).alias("r")
    ).select(
        "cluster",
        "tick_ms",
        "broker",
        "r.*",
        "alive",
        "error",
        *_SETTINGS,
        F.col("throttles_known").alias("throttle_known"),
    )


def throttle_headroom(replicas: DataFrame, brokers: DataFrame) -> DataFrame:
    """Return the rows of ``gold/throttle_headroom`` but for ``date``, one per tick, broker and role.

    Args:
        replicas: of ``streaming.transforms.replicas.replicas``.
        brokers: one row per tick and broker, with the columns of the message kind ``brokers``.
    """
    joined = throttles(brokers).join(sides(replicas), SIDE, "full_outer")
    return (
        joined.withColumns(
            {
                "alive": F.expr("coalesce(alive, false)"),
                "resting_topic_count": F.expr("greatest(size(resting_topics), 0)"),
                "throttle_known": F.expr("coalesce(throttle_known, false) AND coalesce(unknown_lists, 0) = 0"),
                **{name: F.expr(f"coalesce({name}, 0)") for name in _COUNTS},
                **{name: F.expr(f"coalesce({name}, array())") for name in ("lost", "moves", "partitions")},
                "resting_topics": F.expr(f"slice(coalesce(resting_topics, array()), 1, {_TOPICS})"),
                "peers": F.expr(f"coalesce({_PEERS}, array())"),
                "stalls": F.expr(f"coalesce({_STALL_GROUPS}, array())"),
                "switches": F.expr(f"coalesce({_SWITCH_GROUPS}, array())"),
                "takes_part": F.expr("partitions IS NOT NULL"),
                "known_in_sync_bytes_per_s": F.expr("coalesce(known_in_sync_bytes_per_s, 0D)"),
                "known_required_bytes_per_s": F.expr("coalesce(known_required_bytes_per_s, 0D)"),
            }
        )
        .withColumn("burst_bytes", F.expr(BURST_BYTES))
        .withColumns(
            {
                "verdict": F.expr(VERDICT),
                "moving_replicas": F.expr("limited_replicas + free_replicas"),
                "in_sync_bytes_per_s": F.expr("CASE WHEN takes_part THEN in_sync_bytes_per_s ELSE 0D END"),
                "required_bytes_per_s": F.expr("CASE WHEN takes_part THEN required_bytes_per_s ELSE 0D END"),
                "remaining_bytes": F.expr("CASE WHEN takes_part THEN remaining_bytes ELSE 0 END"),
                "moving_bytes_per_s": F.expr("CASE WHEN takes_part THEN moving_bytes_per_s ELSE 0D END"),
            }
        )
        .withColumns(
            {
                "headroom_bytes_per_s": F.expr("throttle_bytes_per_s - required_bytes_per_s"),
                "reason": F.expr(_REASON),
                **{name: F.expr(eta) for name, eta in ETAS.items()},
            }
        )
    )

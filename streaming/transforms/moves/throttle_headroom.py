"""Throttle headroom: the load on each broker's throttles, compared with the rates in force.

The verdict is that of ``planning.quotas.load.ThrottleLoad``, as SQL expressions. A property test compares the two.
"""

from __future__ import annotations

from collections.abc import Sequence

from pyspark.sql import DataFrame

from headroom.schemas.alerts import TOO_LOW
from headroom.schemas.tables import THROTTLE_HEADROOM
from headroom.streaming.transforms.moves.long_run import BINDS, BURST_BYTES, ETAS, copy_rate
from headroom.streaming.transforms.moves.throttle_loads import BROKER_ROLE, STALL_NAMES, throttle_loads
from headroom.streaming.transforms.steps import named_expressions, with_columns

# Most partitions and topics that a group lists by name.
_NAMES, _TOPICS = 3, 50
# 0 for a broker and role without load.
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
    "lost_leaderless_replicas",
    "lost_leaderless_moving_replicas",
)
# Broker settings that shape a throttled copy, copied unchanged.
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
# Columns of the join that a broker without load, or a load of an unknown broker, does not have: _DEFAULTED fills them.
_MAY_BE_MISSING = (
    *("alive", "throttle_known", *_COUNTS, "lost", "moves", "partitions", "resting_topics", "stalls", "switches"),
    *("known_in_sync_bytes_per_s", "known_required_bytes_per_s", "down_required_bytes_per_s"),
)

# ``starved`` and ``losing`` are certain even if a part is unknown, because more traffic only makes them worse.
# Hence they come first, and use the known sums.
VERDICT = f"""CASE
    WHEN limited_replicas + free_replicas = 0 THEN 'idle'
    WHEN limited_replicas > 0 AND throttle_bytes_per_s < known_in_sync_bytes_per_s THEN 'starved'
    WHEN limited_replicas > 0 AND throttle_bytes_per_s <= known_required_bytes_per_s AND
        coalesce({copy_rate("known_in_sync_bytes_per_s")}, 0D) <= known_required_bytes_per_s - known_in_sync_bytes_per_s
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

_ROLES = """array(
    struct('leader' AS role, CAST(leader_throttle_bytes_per_s AS DOUBLE) AS throttle_bytes_per_s,
        leader_throttle_source AS throttle_source, leader_quota_bytes_per_s AS quota_bytes_per_s),
    struct('follower' AS role, CAST(follower_throttle_bytes_per_s AS DOUBLE) AS throttle_bytes_per_s,
        follower_throttle_source AS throttle_source, follower_quota_bytes_per_s AS quota_bytes_per_s))"""


def _structs_by_key(array: str, key: str, fields: str) -> str:
    """Return an array with one struct per distinct key of another array's structs, as an expression.

    Args:
        array: column with an array of structs, sorted.
        key: expression over an element ``x``.
        fields: fields of the resulting structs: expressions over the elements ``g`` with the same key.
    """
    keys = f"array_sort(array_distinct(transform({array}, x -> {key})))"
    groups = f"transform({keys}, k -> filter({array}, x -> {key} <=> k))"
    return f"transform({groups}, g -> named_struct({fields}))"


def _first_names(elements: str) -> str:
    """Return the first partitions of an array as topic-partition, as an expression."""
    names = f"transform({elements}, x -> concat(x.topic, '-', x.partition))"
    return f"slice({names}, 1, {_NAMES})"


# Limited copies by the broker at their other end; rates in bytes per second. A sum with an unknown part is null.
_PEERS = _structs_by_key(
    "limited_copies",
    "x.broker",
    """'broker', g[0].broker, 'replicas', size(g),
    'remaining_bytes', aggregate(g, 0L, (sum, x) -> sum + x.remaining),
    'write_bytes_per_s', aggregate(g, 0D, (sum, x) -> sum + x.written),
    'largest_remaining_bytes', array_max(transform(g, x -> x.remaining)),
    'leaving_bytes_per_s', aggregate(g, 0D, (sum, x) -> sum + coalesce(x.leaving, 0D)),
    'leading_bytes_per_s', aggregate(g, 0D, (sum, x) -> sum + coalesce(x.leading, 0D))""",
)
# Stalled replicas by cause and leader.
_STALL_GROUPS = _structs_by_key(
    "stalls",
    "struct(x.stall, x.leader)",
    f"""'cause', element_at({STALL_NAMES}, g[0].stall), 'leader', g[0].leader, 'replicas', size(g),
    'partitions', {_first_names("g")}""",
)
# Partitions with a recent leader switch, by the earlier leader, with the traffic that they brought, bytes per second.
_SWITCH_GROUPS = _structs_by_key(
    "switches",
    "x.previous_leader",
    f"""'previous_leader', g[0].previous_leader, 'partitions', size(g),
    'bytes_per_s', aggregate(g, 0D, (sum, x) -> sum + coalesce(x.brought, 0D)),
    'switch_tick_ms', array_max(transform(g, x -> x.switch_tick_ms)), 'names', {_first_names("g")}""",
)

# In the order of computation, from the join of the rates in force with the loads.
_DEFAULTED = {
    # Whether the broker is up; false if only partitions name it.
    "alive": "coalesce(alive, false)",
    # Number of topics with left-over list entries; the names in resting_topics are cut.
    "resting_topic_count": "greatest(size(resting_topics), 0)",
    # Whether the rate and all lists that it needs could be read.
    "throttle_known": "coalesce(throttle_known, false) AND coalesce(unknown_lists, 0) = 0",
    # As of throttle_loads; 0 or empty without a load.
    **{name: f"coalesce({name}, 0)" for name in _COUNTS},
    **{name: f"coalesce({name}, array())" for name in ("lost", "moves", "partitions")},
    # The first topics with left-over list entries.
    "resting_topics": f"slice(coalesce(resting_topics, array()), 1, {_TOPICS})",
    # Limited copies by the broker at their other end; empty if there are none.
    "peers": f"coalesce({_PEERS}, array())",
    # Stalled replicas by cause and leader; empty if there are none.
    "stalls": f"coalesce({_STALL_GROUPS}, array())",
    # Partitions with a recent leader switch by the earlier leader; empty if there are none.
    "switches": f"coalesce({_SWITCH_GROUPS}, array())",
    # Whether the broker and role has a load at all.
    "has_load": "partitions IS NOT NULL",
    # Lower bound of the in-sync use, bytes per second.
    "known_in_sync_bytes_per_s": "coalesce(known_in_sync_bytes_per_s, 0D)",
    # Lower bound of the required rate, bytes per second.
    "known_required_bytes_per_s": "coalesce(known_required_bytes_per_s, 0D)",
    # What replicas on brokers that are down will need in addition, bytes per second.
    "down_required_bytes_per_s": "coalesce(down_required_bytes_per_s, 0D)",
}
_EVALUATED = {
    # Effect of the throttle on the out-of-sync replicas; see schemas.alerts.Verdict.
    "verdict": VERDICT,
    # Number of out-of-sync replicas, limited or not.
    "moving_replicas": "limited_replicas + free_replicas",
}
_BINDING = {
    # Whether the throttle limits the copies.
    "binds": f"coalesce({BINDS}, false)",
}
# Without a load the sums are 0, not unknown. Bytes per second, or bytes.
_ZERO_WITHOUT_LOAD = {
    "in_sync_bytes_per_s": "CASE WHEN has_load THEN in_sync_bytes_per_s ELSE 0D END",
    "required_bytes_per_s": "CASE WHEN has_load THEN required_bytes_per_s ELSE 0D END",
    "remaining_bytes": "CASE WHEN has_load THEN remaining_bytes ELSE 0 END",
    "moving_bytes_per_s": "CASE WHEN has_load THEN moving_bytes_per_s ELSE 0D END",
}
# The same as a list in SQL.
TOO_LOW_VERDICTS = ", ".join(f"'{verdict.value}'" for verdict in sorted(TOO_LOW))
# A copy whose leader sends nothing, or too little, never gets in sync, whatever the destination's throttle is.
_TOO_LOW_LEADERS = f"collect_list(CASE WHEN role = 'leader' AND verdict IN ({TOO_LOW_VERDICTS}) THEN broker END)"
_SOURCE_TOO_LOW = f"""coalesce(arrays_overlap(limiting_leaders,
    {_TOO_LOW_LEADERS} OVER (PARTITION BY cluster, tick_ms)), false)"""
# Struct of the expected finish times at this broker and role's own throttle, and whether that throttle binds.
AT_THROTTLE = "at_throttle"
_EXPECTED_FINISH = {
    # Whether the throttle of a source is starved or losing.
    "source_too_low": _SOURCE_TOO_LOW,
    # eta_low_s, eta_s and eta_high_s, seconds; null if unknown. Then binds.
    AT_THROTTLE: f"struct({', '.join(f'{eta} AS {name}' for name, eta in ETAS.items())}, binds)",
}
_BINDING_ROWS = f"""collect_list(CASE WHEN binds THEN
    struct(broker, role, transform(peers, p -> p.broker) AS ends, {AT_THROTTLE} AS times) END)
    OVER (PARTITION BY cluster, tick_ms)"""
_OTHER_ENDS = {
    # Expected finish times at the throttles that bind at the other ends of the copies; empty if this one decides.
    "other_ends": f"""CASE
        WHEN binds OR verdict NOT IN ('catching_up', 'unthrottled') OR remaining_bytes IS NULL THEN array()
        ELSE transform(filter({_BINDING_ROWS}, x -> x.role != role AND array_contains(x.ends, broker)), x -> x.times)
        END""",
}


def _eta_of_row(name: str) -> str:
    """Return an expected finish of a broker and role, seconds, as an expression; null if never, or unknown.

    With a source whose throttle is too low there is none: some replicas never get in sync, however fast others copy.

    Args:
        name: ``eta_s``, or one end of its range: ``eta_low_s``, ``eta_high_s``.
    """
    return f"""CASE WHEN source_too_low OR exists(other_ends, x -> x.{name} IS NULL) THEN NULL
        ELSE coalesce(array_max(transform(other_ends, x -> x.{name})), {AT_THROTTLE}.{name}) END"""


_ETAS_OF_ROW = {name: _eta_of_row(name) for name in ETAS}


def throttles_in_force(brokers: DataFrame) -> DataFrame:
    """Return the rates in force, bytes per second, one row per tick, broker and role.

    Args:
        brokers: one row per tick and broker, with the columns of the message kind ``brokers``.
    """
    # ``error``: why the rates could not be read.
    kept = ("cluster", "tick_ms", "broker", "alive", "error", *_SETTINGS)
    return brokers.selectExpr(*kept, "throttles_known AS throttle_known", f"inline({_ROLES})")


def throttle_headroom(replicas: DataFrame, brokers: DataFrame, extra_columns: Sequence[str] = ()) -> DataFrame:
    """Return the rows of ``gold/throttle_headroom`` except for ``date``, one per tick, broker and role.

    Args:
        replicas: of ``streaming.transforms.moves.replicas.replicas``.
        brokers: one row per tick and broker, with the columns of the message kind ``brokers``.
        extra_columns: columns that the rows have in addition to those of the table: ``AT_THROTTLE``.
    """
    # Both inputs have one partition. Spark does not know that their full join has one too, and would shuffle it.
    joined = throttles_in_force(brokers).join(throttle_loads(replicas), list(BROKER_ROLE), "full_outer").coalesce(1)
    # Bytes that one check of the quota lets through.
    complete = with_columns(with_columns(joined, _DEFAULTED, without=_MAY_BE_MISSING), {"burst_bytes": BURST_BYTES})
    evaluated = with_columns(complete, {**_EVALUATED, **_ZERO_WITHOUT_LOAD}, without=list(_ZERO_WITHOUT_LOAD))
    with_finish = with_columns(with_columns(with_columns(evaluated, _BINDING), _EXPECTED_FINISH), _OTHER_ENDS)
    last = {
        # Throttle minus required rate, bytes per second; null if one of them is unknown or no rate is set.
        "headroom_bytes_per_s": "throttle_bytes_per_s - required_bytes_per_s",
        # Why the verdict is no_data, as text; null for other verdicts.
        "reason": _REASON,
        # Expected finish, seconds from the tick; null if unknown.
        **_ETAS_OF_ROW,
    }
    kept = [name for name in THROTTLE_HEADROOM.names() if name != "date" and name not in last]
    return with_finish.selectExpr(*kept, *named_expressions(last), *extra_columns)

"""Throttle headroom: what each broker's throttles carry, against the rates in force.

The verdict is the one of ``planning.throttles.load.ThrottleLoad``, as expressions; a property test holds the two equal.
"""

from __future__ import annotations

from collections.abc import Sequence

from pyspark.sql import DataFrame

from schemas.tables import THROTTLE_HEADROOM
from streaming.transforms.moves.long_run import BURST_BYTES, ETAS, copied
from streaming.transforms.moves.throttle_loads import SIDE, STALL_NAMES, sides
from streaming.transforms.steps import named, with_columns

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
    "lost_leaderless_replicas",
    "lost_leaderless_moving_replicas",
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
# Columns of the join of which one side may be missing.
_MADE_WHOLE = (
    *("alive", "throttle_known", *_COUNTS, "lost", "moves", "partitions", "resting_topics", "stalls", "switches"),
    *("known_in_sync_bytes_per_s", "known_required_bytes_per_s", "down_required_bytes_per_s"),
)

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

_ROLES = """array(
    struct('leader' AS role, CAST(leader_throttle_bytes_per_s AS DOUBLE) AS throttle_bytes_per_s,
        leader_throttle_source AS throttle_source, leader_quota_bytes_per_s AS quota_bytes_per_s),
    struct('follower' AS role, CAST(follower_throttle_bytes_per_s AS DOUBLE) AS throttle_bytes_per_s,
        follower_throttle_source AS throttle_source, follower_quota_bytes_per_s AS quota_bytes_per_s))"""


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
    'leaving_bytes_per_s', aggregate(g, 0D, (sum, x) -> sum + coalesce(x.leaving, 0D)),
    'leading_bytes_per_s', aggregate(g, 0D, (sum, x) -> sum + coalesce(x.leading, 0D))""",
)
_STALL_GROUPS = _grouped(
    "stalls",
    "struct(x.stall, x.leader)",
    f"""'cause', element_at({STALL_NAMES}, g[0].stall), 'leader', g[0].leader, 'replicas', size(g),
    'partitions', {_first_names("g")}""",
)
_SWITCH_GROUPS = _grouped(
    "switches",
    "x.previous_leader",
    f"""'previous_leader', g[0].previous_leader, 'partitions', size(g),
    'bytes_per_s', aggregate(g, 0D, (sum, x) -> sum + coalesce(x.brought, 0D)),
    'switch_tick_ms', array_max(transform(g, x -> x.switch_tick_ms)), 'names', {_first_names("g")}""",
)


_WHOLE = {
    "alive": "coalesce(alive, false)",
    "resting_topic_count": "greatest(size(resting_topics), 0)",
    "throttle_known": "coalesce(throttle_known, false) AND coalesce(unknown_lists, 0) = 0",
    **{name: f"coalesce({name}, 0)" for name in _COUNTS},
    **{name: f"coalesce({name}, array())" for name in ("lost", "moves", "partitions")},
    "resting_topics": f"slice(coalesce(resting_topics, array()), 1, {_TOPICS})",
    "peers": f"coalesce({_PEERS}, array())",
    "stalls": f"coalesce({_STALL_GROUPS}, array())",
    "switches": f"coalesce({_SWITCH_GROUPS}, array())",
    "takes_part": "partitions IS NOT NULL",
    "known_in_sync_bytes_per_s": "coalesce(known_in_sync_bytes_per_s, 0D)",
    "known_required_bytes_per_s": "coalesce(known_required_bytes_per_s, 0D)",
    "down_required_bytes_per_s": "coalesce(down_required_bytes_per_s, 0D)",
}
_JUDGED = {"verdict": VERDICT, "moving_replicas": "limited_replicas + free_replicas"}
_TAKING_PART = {
    "in_sync_bytes_per_s": "CASE WHEN takes_part THEN in_sync_bytes_per_s ELSE 0D END",
    "required_bytes_per_s": "CASE WHEN takes_part THEN required_bytes_per_s ELSE 0D END",
    "remaining_bytes": "CASE WHEN takes_part THEN remaining_bytes ELSE 0 END",
    "moving_bytes_per_s": "CASE WHEN takes_part THEN moving_bytes_per_s ELSE 0D END",
}
# Copies whose leader lets nothing through, or too little, are never in sync, whatever the destination's throttle is.
_SHORT_LEADERS = "collect_list(CASE WHEN role = 'leader' AND verdict IN ('starved', 'losing') THEN broker END)"
_SHORT_SOURCE = f"""coalesce(arrays_overlap(limiting_leaders,
    {_SHORT_LEADERS} OVER (PARTITION BY cluster, tick_ms)), false)"""
# What the etas are by a side's own throttle, wherever its copies come from.
AT_THROTTLE = "at_throttle"
_SOURCED = {
    "short_source": _SHORT_SOURCE,
    AT_THROTTLE: f"struct({', '.join(f'{eta} AS {name}' for name, eta in ETAS.items())})",
}
_PROMISED_ETAS = {name: f"CASE WHEN NOT short_source THEN {AT_THROTTLE}.{name} END" for name in ETAS}
_HEADROOM = "throttle_bytes_per_s - required_bytes_per_s"


def throttles(brokers: DataFrame) -> DataFrame:
    """Return the rates in force, one row per tick, broker and role.

    Args:
        brokers: one row per tick and broker, with the columns of the message kind ``brokers``.
    """
    kept = ("cluster", "tick_ms", "broker", "alive", "error", *_SETTINGS)
    return brokers.selectExpr(*kept, "throttles_known AS throttle_known", f"inline({_ROLES})")


def throttle_headroom(replicas: DataFrame, brokers: DataFrame, besides: Sequence[str] = ()) -> DataFrame:
    """Return the rows of ``gold/throttle_headroom`` but for ``date``, one per tick, broker and role.

    Args:
        replicas: of ``streaming.transforms.moves.replicas.replicas``.
        brokers: one row per tick and broker, with the columns of the message kind ``brokers``.
        besides: columns that the rows have beside those of the table: ``AT_THROTTLE``.
    """
    # Spark does not know of a full join of what is in one place that it is in one place too, and would shuffle it.
    joined = throttles(brokers).join(sides(replicas), list(SIDE), "full_outer").coalesce(1)
    whole = with_columns(with_columns(joined, _WHOLE, without=_MADE_WHOLE), {"burst_bytes": BURST_BYTES})
    judged = with_columns(whole, {**_JUDGED, **_TAKING_PART}, without=list(_TAKING_PART))
    sourced = with_columns(judged, _SOURCED)
    promised = {"headroom_bytes_per_s": _HEADROOM, "reason": _REASON, **_PROMISED_ETAS}
    kept = [name for name in THROTTLE_HEADROOM.names() if name != "date" and name not in promised]
    return sourced.selectExpr(*kept, *named(promised), *besides)

"""Broker and role: what the replicas of a tick make each send and receive, and what stands still of it.

What is listed by name is cut; rules decide on sums and counts, which are over all.
"""

from __future__ import annotations

from collections.abc import Iterable

from pyspark.sql import DataFrame

from streaming.transforms.moves.replicas import WATCHED
from streaming.transforms.steps import grouped, with_columns

EVIDENCE_PARTITIONS = 20
SIDE = ("cluster", "tick_ms", "broker", "role")

# Why an adding replica copies nothing, as far as it shows at the replica, the gravest last. Numbers, for the greatest
# of texts is not found by hashing.
_STALLS = ("unknown", "not_fetching", "no_leader", "offline")
_STALL = """CASE
    WHEN NOT stalled THEN NULL
    WHEN leader IS NULL THEN 3
    WHEN NOT alive THEN 4
    WHEN lag_gauge_offsets IS NULL THEN 2
    ELSE 1 END"""
STALL_NAMES = f"array({', '.join(repr(name) for name in _STALLS)})"
_WORST_STALL = f"element_at({STALL_NAMES}, max(stall)) AS stall"
# A leader switch explains a throttle that is too low for about one rate window.
_RECENT_SWITCH = """role = 'leader' AND followers > 0 AND previous_leader IS NOT NULL
    AND tick_ms - switch_tick_ms <= greatest(coalesce(window_ms, 0), 10000)"""
# What the broker of a replica in sync would have to send more if it came to lead the partition.
_TAKEOVER = """CASE WHEN moving AND alive AND in_sync AND array_contains(leader_listed, follower)
    THEN write_bytes_per_s * greatest(size(replicas) - 1 - size(coalesce(offline, array())), 0) END"""

_WORST_TAKEOVER = """max(CASE WHEN takeover_bytes_per_s IS NOT NULL THEN
    struct(takeover_bytes_per_s AS bytes_per_s, topic, partition, leader) END) AS takeover"""
_SIDES = """filter(array(
    struct(leader AS broker, 'leader' AS role, follower AS peer,
        array_contains(leader_listed, leader) AS listed, leader_listed IS NOT NULL AS list_known),
    struct(follower AS broker, 'follower' AS role, leader AS peer,
        array_contains(follower_listed, follower) AS listed, follower_listed IS NOT NULL AS list_known)),
    s -> s.broker IS NOT NULL)"""
# Of moving partitions; followers that fetch no more from the leader once it has moved, where the leader leaves all. It
# hands over to the first of the target.
_OF_PARTITION = {
    "target": "array_except(replicas, removing)",
    "moving": "size(adding) + size(removing) > 0",
    "watched": WATCHED,
    "added": "size(adding)",
    "gone": "IF(array_contains(removing, leader), size(replicas) - 1, size(removing))",
    "leads_next": "array_contains(removing, leader) AND get(array_except(replicas, removing), 0) <=> follower",
}
_PARTITION = ("topic", "partition", "leader", "previous_leader", "switch_tick_ms", "moving", "replicas", "target")
_RATES = ("write_bytes_per_s", "first_reading", "window_ms", "remaining_bytes", "copied_bytes_per_s")

# Partitions of a side: what moves is kept before what rests; of what is kept, the greatest traffic comes first.
_PARTITION_ENTRY = """struct(NOT moving AS resting,
    -coalesce(write_bytes_per_s, 0D) * greatest(followers, free) AS rank,
    topic, partition, write_bytes_per_s, followers, in_sync_followers, leader, previous_leader, switch_tick_ms,
    moving, replicas, target, stalled > 0 AS stalled,
    CASE WHEN remaining_unknown = 0 THEN coalesce(remaining, 0) END AS remaining_bytes)"""
_NAMED = (
    *("topic", "partition", "write_bytes_per_s", "followers", "in_sync_followers", "leader", "previous_leader"),
    *("switch_tick_ms", "moving", "replicas", "target", "stalled", "remaining_bytes"),
)


def _fields(names: Iterable[str]) -> str:
    return ", ".join(f"e.{name} AS {name}" for name in names)


def _first(entries: str) -> str:
    return f"slice(array_sort(collect_list({entries})), 1, {EVIDENCE_PARTITIONS})"


_KEPT = _first(f"CASE WHEN followers > 0 OR limited + free > 0 THEN {_PARTITION_ENTRY} END")
_RANKED = f"array_sort(transform({_KEPT}, e -> struct({_fields(('rank', *_NAMED))})))"
_EVIDENCE = f"transform({_RANKED}, e -> struct({_fields(_NAMED)}))"
# Partitions whose original replica on this broker is out of the ISR, those that move first.
_LOST_NAMES = ("topic", "partition", "leader", "moving")
_LOST_ENTRY = f"""CASE WHEN role = 'follower' AND lost > 0
    THEN struct(NOT moving AS rank, {", ".join(_LOST_NAMES)}) END"""
_LOST = f"transform({_first(_LOST_ENTRY)}, e -> struct({_fields(_LOST_NAMES)}))"
# Each copy that the throttle of a side limits: the broker at its other end, and what it has to bring.
_LIMITED_COPIES = """collect_list(CASE WHEN out_of_sync = 1 AND listed AND peer IS NOT NULL THEN
    struct(peer AS broker, remaining_bytes AS remaining, write_bytes_per_s AS written,
        write_bytes_per_s * gone / greatest(added, 1) AS leaving,
        IF(leads_next, write_bytes_per_s, 0D) AS leading) END) AS limited_copies"""
# What leaders of moving partitions send to all their followers, and what a destination receives of them.
_MOVING_BYTES = """CASE
    WHEN count_if(moving AND (role = 'leader' OR limited + free > 0) AND write_bytes_per_s IS NULL) = 0
    THEN coalesce(sum(CASE WHEN moving AND role = 'leader' THEN write_bytes_per_s * fetching
        WHEN moving THEN write_bytes_per_s * (limited + free) END), 0D) END AS moving_bytes_per_s"""
_STALLED_ENTRY = "struct(topic, partition, leader, stall)"
_SWITCH_ENTRY = """struct(topic, partition, previous_leader, switch_tick_ms,
    write_bytes_per_s * followers AS brought)"""
_MOVE_ENTRY = "struct(topic, partition, target)"


def _known_sum(amount: str, counts: str, name: str) -> str:
    """Return a sum that is null if any part that counts is unknown: half a sum would be a false verdict."""
    return (
        f"CASE WHEN count_if(NOT list_known OR ({counts} AND write_bytes_per_s IS NULL)) = 0 "
        f"THEN coalesce(sum(CASE WHEN {counts} THEN {amount} END), 0D) END AS {name}"
    )


_PER_PARTITION = (
    "max(window_ms) AS window_ms",
    "CAST(count_if(alive) AS INT) AS fetching",
    "CAST(sum(CAST(listed AS INT)) AS INT) AS followers",
    "CAST(sum(in_sync * CAST(listed AS INT)) AS INT) AS in_sync_followers",
    "sum(out_of_sync * CAST(listed AS INT)) AS limited",
    "sum(out_of_sync * CAST(NOT listed AS INT)) AS free",
    "sum(CASE WHEN out_of_sync = 1 THEN remaining_bytes END) AS remaining",
    "sum(CASE WHEN out_of_sync = 1 THEN copied_bytes_per_s END) AS copied",
    "count_if(out_of_sync = 1 AND remaining_bytes IS NULL) AS remaining_unknown",
    "count_if(out_of_sync = 1 AND copied_bytes_per_s IS NULL) AS copied_unknown",
    "count_if(out_of_sync = 1 AND alive AND leader_lists) AS held_by_leader",
    "count_if(stalled) AS stalled",
    "count_if(waiting) AS waiting",
    "count_if(awaited AND NOT alive) AS down",
    "count_if(listed_down) AS listed_down",
    _LIMITED_COPIES,
    "CAST(count_if(lost) AS INT) AS lost",
    "count_if(lost_leaving) AS lost_leaving",
    "count_if(lost) = 0 AND count_if(awaited) > 0 AS planned",
    "max(stall) AS stall",
    "max(takeover_bytes_per_s) AS takeover_bytes_per_s",
    "bool_and(list_known) AS list_known",
    "bool_or(entered) AS entered",
    "bool_or(first_reading) AS first_reading",
)
_PER_SIDE = (
    _known_sum("write_bytes_per_s * in_sync_followers", "in_sync_followers > 0", "in_sync_bytes_per_s"),
    _known_sum("write_bytes_per_s * followers", "followers > 0", "required_bytes_per_s"),
    "coalesce(sum(write_bytes_per_s * in_sync_followers), 0D) AS known_in_sync_bytes_per_s",
    "coalesce(sum(write_bytes_per_s * followers), 0D) AS known_required_bytes_per_s",
    _MOVING_BYTES,
    "CAST(sum(limited) AS INT) AS limited_replicas",
    "CAST(sum(free) AS INT) AS free_replicas",
    "CAST(count_if(followers > 0 OR limited + free > 0) AS INT) AS counting_partitions",
    "CAST(count_if(moving AND limited > 0) AS INT) AS limited_partitions",
    "CAST(count_if(moving AND free > 0) AS INT) AS free_partitions",
    "CASE WHEN sum(remaining_unknown) = 0 THEN coalesce(sum(remaining), 0) END AS remaining_bytes",
    "CASE WHEN sum(copied_unknown) = 0 AND count_if(limited + free > 0 AND write_bytes_per_s IS NULL) = 0 "
    "THEN sum(copied) - sum((limited + free) * write_bytes_per_s) END AS catch_up_bytes_per_s",
    "CAST(sum(stalled) AS INT) AS stalled_replicas",
    "CAST(sum(waiting) AS INT) AS waiting_replicas",
    "CAST(sum(CASE WHEN role = 'leader' THEN down END) AS INT) AS down_replicas",
    "coalesce(sum(CASE WHEN role = 'leader' THEN write_bytes_per_s * listed_down END), 0D) "
    "AS down_required_bytes_per_s",
    "count_if(followers > 0 AND write_bytes_per_s IS NULL) AS unknown_partitions",
    "count_if(followers > 0 AND write_bytes_per_s IS NULL AND first_reading) AS unread_partitions",
    "count_if(NOT list_known) AS unknown_lists",
    "max(window_ms) AS rate_window_ms",
    "CAST(count_if(moving) AS INT) AS moving_partitions",
    "CAST(count_if(followers > 0 AND NOT moving) AS INT) AS resting_listed_partitions",
    "CAST(count_if(planned) AS INT) AS planned_partitions",
    "CAST(sum(CASE WHEN role = 'follower' THEN lost END) AS INT) AS lost_replicas",
    "CAST(sum(CASE WHEN role = 'follower' AND moving THEN lost END) AS INT) AS lost_moving_replicas",
    "CAST(sum(CASE WHEN role = 'follower' THEN lost_leaving END) AS INT) AS lost_leaving_replicas",
    "CAST(sum(CASE WHEN role = 'follower' AND leader IS NULL THEN lost END) AS INT) AS lost_leaderless_replicas",
    "CAST(sum(CASE WHEN role = 'follower' AND leader IS NULL AND moving THEN lost END) AS INT) "
    "AS lost_leaderless_moving_replicas",
    "array_sort(collect_set(CASE WHEN entered AND NOT moving THEN topic END)) AS resting_topics",
    "flatten(collect_list(limited_copies)) AS limited_copies",
    # Of a destination, whose throttle as leader its copies wait for.
    "collect_set(CASE WHEN role = 'follower' AND held_by_leader > 0 THEN leader END) AS limiting_leaders",
    f"array_sort(collect_list(CASE WHEN stall IS NOT NULL THEN {_STALLED_ENTRY} END)) AS stalls",
    f"array_sort(collect_list(CASE WHEN {_RECENT_SWITCH} THEN {_SWITCH_ENTRY} END)) AS switches",
    f"slice(array_sort(collect_list(CASE WHEN moving THEN {_MOVE_ENTRY} END)), 1, 20) AS moves",
    f"{_LOST} AS lost",
    _WORST_STALL,
    _WORST_TAKEOVER,
    f"{_EVIDENCE} AS partitions",
)


def shares(replicas: DataFrame) -> DataFrame:
    """Return what each follower replica adds to its leader's and to its own side, one row per replica and side.

    Args:
        replicas: of ``streaming.transforms.moves.replicas.replicas``.
    """
    return with_columns(replicas, {**_OF_PARTITION, "side": f"explode({_SIDES})"}).selectExpr(
        "cluster",
        "tick_ms",
        *_PARTITION,
        *_RATES,
        "side.broker AS broker",
        "side.role AS role",
        "side.peer AS peer",
        "added",
        "gone",
        "leads_next",
        "side.list_known AS list_known",
        # Whether the list has an entry of the partition at all, of whichever broker.
        "coalesce(size(IF(side.role = 'leader', leader_listed, follower_listed)) > 0, false) AS entered",
        "coalesce(array_contains(leader_listed, leader), false) AS leader_lists",
        "stalled",
        "waiting",
        "alive",
        "coalesce(side.listed, false) AND alive AS listed",
        "coalesce(side.listed, false) AND NOT alive AS listed_down",
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


def sides(replicas: DataFrame) -> DataFrame:
    """Return the demand of every broker and role that takes part, one row per tick, broker and role.

    Args:
        replicas: of ``streaming.transforms.moves.replicas.replicas``.

    Returns:
        ``in_sync_bytes_per_s``, ``required_bytes_per_s`` (null: a list, or the rate of a listed partition, is unknown),
        ``limited_replicas``, ``free_replicas``, ``remaining_bytes``, ``catch_up_bytes_per_s``, ``stalled_replicas``,
        ``limiting_leaders``, ``unknown_partitions``, ``unread_partitions`` (those of them that want a second reading),
        ``unknown_lists``, ``rate_window_ms``, ``partitions`` (the evidence), and the columns of
        ``gold/throttle_headroom`` from ``moving_partitions`` to ``takeover``.
    """
    by_partition = grouped(shares(replicas), (*SIDE, *_PARTITION, "write_bytes_per_s"), _PER_PARTITION)
    return grouped(by_partition, SIDE, _PER_SIDE)

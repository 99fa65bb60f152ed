"""Load on the throttles: traffic, remaining bytes and stalled replicas per broker and role.

Lists of names are cut to a maximum length. Rules use the sums and counts, which cover all partitions.
"""

from __future__ import annotations

from collections.abc import Iterable

from pyspark.sql import DataFrame

from streaming.transforms.moves.replicas import MOVES_OR_LISTED
from streaming.transforms.steps import grouped, with_columns

# Most partitions that a row lists by name.
EVIDENCE_PARTITIONS = 20
BROKER_ROLE = ("cluster", "tick_ms", "broker", "role")

# Why an adding replica copies nothing, as far as the replica itself shows it, the most severe last. A stall is the
# 1-based number of one of these, because Spark cannot find the greatest text by hash aggregation.
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
# Bytes per second that the broker of an in-sync replica would have to send in addition as leader of the partition.
_LEADERSHIP_RISK = """CASE WHEN moving AND alive AND in_sync AND array_contains(leader_listed, follower)
    THEN write_bytes_per_s * greatest(size(replicas) - 1 - size(coalesce(offline, array())), 0) END"""

_HIGHEST_LEADERSHIP_RISK = """max(CASE WHEN takeover_bytes_per_s IS NOT NULL THEN
    struct(takeover_bytes_per_s AS bytes_per_s, topic, partition, leader) END) AS takeover"""
# Each replica counts twice: for its leader, which sends, and for its own broker, which receives.
_BROKER_ROLES = """filter(array(
    struct(leader AS broker, 'leader' AS role, follower AS peer,
        array_contains(leader_listed, leader) AS listed, leader_listed IS NOT NULL AS list_known),
    struct(follower AS broker, 'follower' AS role, leader AS peer,
        array_contains(follower_listed, follower) AS listed, follower_listed IS NOT NULL AS list_known)),
    s -> s.broker IS NOT NULL)"""
# In the order of computation, from the rows of ``replicas``.
_OF_PARTITION = {
    # Brokers after the move, the preferred leader first.
    "target": "array_except(replicas, removing)",
    # Whether a reassignment of the partition is running.
    "moving": "size(adding) + size(removing) > 0",
    # False: the partition is here only because it is under-replicated.
    "moves_or_listed": MOVES_OR_LISTED,
    # Number of adding replicas.
    "added": "size(adding)",
    # Number of followers that stop fetching from this leader after the move: all of them if the leader itself leaves.
    "stop_fetching": "IF(array_contains(removing, leader), size(replicas) - 1, size(removing))",
    # Whether this replica leads after the move: a leader that leaves hands over to the first broker of the target.
    "leads_next": "array_contains(removing, leader) AND get(array_except(replicas, removing), 0) <=> follower",
    # One row per replica, broker and role, from here on.
    "broker_role": f"explode({_BROKER_ROLES})",
}
_PARTITION = ("topic", "partition", "leader", "previous_leader", "switch_tick_ms", "moving", "replicas", "target")
_RATES = ("write_bytes_per_s", "first_reading", "window_ms", "remaining_bytes", "copied_bytes_per_s")

# Partitions of a broker and role. Moving ones are kept before resting ones, and the busiest of those kept come first.
_PARTITION_ENTRY = """struct(NOT moving AS resting,
    -coalesce(write_bytes_per_s, 0D) * greatest(followers, free) AS rank,
    topic, partition, write_bytes_per_s, followers, in_sync_followers, leader, previous_leader, switch_tick_ms,
    moving, replicas, target, stalled > 0 AS stalled,
    CASE WHEN remaining_unknown = 0 THEN coalesce(remaining, 0) END AS remaining_bytes)"""
_EVIDENCE_FIELDS = (
    *("topic", "partition", "write_bytes_per_s", "followers", "in_sync_followers", "leader", "previous_leader"),
    *("switch_tick_ms", "moving", "replicas", "target", "stalled", "remaining_bytes"),
)


def _fields(names: Iterable[str]) -> str:
    """Return fields of the struct ``e`` with their names, for a struct of these alone."""
    return ", ".join(f"e.{name} AS {name}" for name in names)


def _first(entries: str) -> str:
    """Return the first entries in their order, null ones left out, as an array; the rest is cut."""
    return f"slice(array_sort(collect_list({entries})), 1, {EVIDENCE_PARTITIONS})"


_KEPT_PARTITIONS = _first(f"CASE WHEN followers > 0 OR limited + free > 0 THEN {_PARTITION_ENTRY} END")
_RANKED = f"array_sort(transform({_KEPT_PARTITIONS}, e -> struct({_fields(('rank', *_EVIDENCE_FIELDS))})))"
_EVIDENCE = f"transform({_RANKED}, e -> struct({_fields(_EVIDENCE_FIELDS)}))"
# Partitions whose original replica on this broker is out of the ISR, moving ones first.
_OUT_OF_ISR_FIELDS = ("topic", "partition", "leader", "moving")
_OUT_OF_ISR_ENTRY = f"""CASE WHEN role = 'follower' AND out_of_isr > 0
    THEN struct(NOT moving AS rank, {", ".join(_OUT_OF_ISR_FIELDS)}) END"""
_OUT_OF_ISR = f"transform({_first(_OUT_OF_ISR_ENTRY)}, e -> struct({_fields(_OUT_OF_ISR_FIELDS)}))"
# One entry per copy that this throttle limits: the broker at the other end, the remaining bytes, and rates in bytes per
# second. ``leaving``: the copy's share of the traffic that ends with the move. ``leading``: the traffic of the new
# leader, if this replica becomes it.
_LIMITED_COPIES = """collect_list(CASE WHEN out_of_sync = 1 AND listed AND peer IS NOT NULL THEN
    struct(peer AS broker, remaining_bytes AS remaining, write_bytes_per_s AS written,
        write_bytes_per_s * stop_fetching / greatest(added, 1) AS leaving,
        IF(leads_next, write_bytes_per_s, 0D) AS leading) END) AS limited_copies"""
# Bytes per second that leaders of moving partitions send to all their followers, or that a destination receives.
_MOVING_BYTES = """CASE
    WHEN count_if(moving AND (role = 'leader' OR limited + free > 0) AND write_bytes_per_s IS NULL) = 0
    THEN coalesce(sum(CASE WHEN moving AND role = 'leader' THEN write_bytes_per_s * fetching
        WHEN moving THEN write_bytes_per_s * (limited + free) END), 0D) END AS moving_bytes_per_s"""
_STALLED_ENTRY = "struct(topic, partition, leader, stall)"
_SWITCH_ENTRY = """struct(topic, partition, previous_leader, switch_tick_ms,
    write_bytes_per_s * followers AS brought)"""
_MOVE_ENTRY = "struct(topic, partition, target)"


def _known_sum(amount: str, counts: str, name: str) -> str:
    """Return a sum over partitions, null if a part that counts is unknown: half a sum would give a false verdict.

    Args:
        amount: bytes per second of a partition.
        counts: condition of the partitions that count.
        name: of the column.
    """
    return (
        f"CASE WHEN count_if(NOT list_known OR ({counts} AND write_bytes_per_s IS NULL)) = 0 "
        f"THEN coalesce(sum(CASE WHEN {counts} THEN {amount} END), 0D) END AS {name}"
    )


# One row per partition, broker and role: counts of its replicas there, and their sums.
_PER_PARTITION = (
    # Time between the two readings of the write rate, milliseconds.
    "max(window_ms) AS window_ms",
    # Followers that can fetch, in sync or not.
    "CAST(count_if(alive) AS INT) AS fetching",
    # Followers whose traffic the throttle counts, and those of them in sync.
    "CAST(sum(CAST(listed AS INT)) AS INT) AS followers",
    "CAST(sum(in_sync * CAST(listed AS INT)) AS INT) AS in_sync_followers",
    # Out-of-sync replicas that the throttle limits, and those that no list names.
    "sum(out_of_sync * CAST(listed AS INT)) AS limited",
    "sum(out_of_sync * CAST(NOT listed AS INT)) AS free",
    # Bytes that the out-of-sync replicas still have to copy, and bytes per second that they copy; known parts only.
    "sum(CASE WHEN out_of_sync = 1 THEN remaining_bytes END) AS remaining",
    "sum(CASE WHEN out_of_sync = 1 THEN copied_bytes_per_s END) AS copied",
    # Out-of-sync replicas for which that is unknown.
    "count_if(out_of_sync = 1 AND remaining_bytes IS NULL) AS remaining_unknown",
    "count_if(out_of_sync = 1 AND copied_bytes_per_s IS NULL) AS copied_unknown",
    # Out-of-sync replicas that the throttle of their leader limits.
    "count_if(out_of_sync = 1 AND alive AND on_leader_list) AS limited_by_leader",
    # Adding replicas that copy nothing: stalled, waiting for their turn, on brokers that are down.
    "count_if(stalled) AS stalled",
    "count_if(waiting) AS waiting",
    "count_if(adding_not_in_sync AND NOT alive) AS down",
    # Listed replicas on brokers that are down: their traffic comes back with the broker.
    "count_if(listed_down) AS listed_down",
    _LIMITED_COPIES,
    # Original replicas out of the ISR, and those of them that the move removes.
    "CAST(count_if(out_of_isr) AS INT) AS out_of_isr",
    "count_if(out_of_isr_leaving) AS out_of_isr_leaving",
    # Whether only adding replicas are out of sync, as planned.
    "count_if(out_of_isr) = 0 AND count_if(adding_not_in_sync) > 0 AS planned",
    # Most severe cause among the stalled replicas, a number of _STALLS; null if none is stalled.
    "max(stall) AS stall",
    # Bytes per second that a leadership change would add to this broker.
    "max(takeover_bytes_per_s) AS takeover_bytes_per_s",
    # Whether the throttled replica list of this role could be read.
    "bool_and(list_known) AS list_known",
    # Whether that list has an entry of the partition.
    "bool_or(has_list_entry) AS has_list_entry",
    # Whether the write rate is unknown because there is no second reading yet.
    "bool_or(first_reading) AS first_reading",
)
# One row per broker and role, from those of its partitions.
_PER_BROKER_ROLE = (
    # In-sync use and required rate of the throttle, bytes per second; null if a part is unknown.
    _known_sum("write_bytes_per_s * in_sync_followers", "in_sync_followers > 0", "in_sync_bytes_per_s"),
    _known_sum("write_bytes_per_s * followers", "followers > 0", "required_bytes_per_s"),
    # The same without the unknown parts: lower bounds.
    "coalesce(sum(write_bytes_per_s * in_sync_followers), 0D) AS known_in_sync_bytes_per_s",
    "coalesce(sum(write_bytes_per_s * followers), 0D) AS known_required_bytes_per_s",
    # Traffic of moving partitions, listed or not, bytes per second.
    _MOVING_BYTES,
    # Out-of-sync replicas that the throttle limits, and those that no list names.
    "CAST(sum(limited) AS INT) AS limited_replicas",
    "CAST(sum(free) AS INT) AS free_replicas",
    # Partitions with a part in this load; moving ones with limited replicas; moving ones with unlisted replicas.
    "CAST(count_if(followers > 0 OR limited + free > 0) AS INT) AS counting_partitions",
    "CAST(count_if(moving AND limited > 0) AS INT) AS limited_partitions",
    "CAST(count_if(moving AND free > 0) AS INT) AS free_partitions",
    # Bytes that all out-of-sync replicas still have to copy; null if that of one is unknown.
    "CASE WHEN sum(remaining_unknown) = 0 THEN coalesce(sum(remaining), 0) END AS remaining_bytes",
    # Bytes per second that they copy beyond what producers write meanwhile: how fast the backlog shrinks.
    "CASE WHEN sum(copied_unknown) = 0 AND count_if(limited + free > 0 AND write_bytes_per_s IS NULL) = 0 "
    "THEN sum(copied) - sum((limited + free) * write_bytes_per_s) END AS catch_up_bytes_per_s",
    # Adding replicas that copy nothing: stalled, waiting for their turn, on brokers that are down.
    "CAST(sum(stalled) AS INT) AS stalled_replicas",
    "CAST(sum(waiting) AS INT) AS waiting_replicas",
    "CAST(sum(CASE WHEN role = 'leader' THEN down END) AS INT) AS down_replicas",
    # Bytes per second that listed replicas on brokers that are down will fetch again.
    "coalesce(sum(CASE WHEN role = 'leader' THEN write_bytes_per_s * listed_down END), 0D) "
    "AS down_required_bytes_per_s",
    # Listed partitions with an unknown write rate, and those of them that only miss a second reading.
    "count_if(followers > 0 AND write_bytes_per_s IS NULL) AS unknown_partitions",
    "count_if(followers > 0 AND write_bytes_per_s IS NULL AND first_reading) AS unread_partitions",
    # Partitions whose throttled replica list could not be read.
    "count_if(NOT list_known) AS unknown_lists",
    # Longest time between two readings of a write rate, milliseconds.
    "max(window_ms) AS rate_window_ms",
    # Partitions: moving, listed without moving, only adding replicas out of sync.
    "CAST(count_if(moving) AS INT) AS moving_partitions",
    "CAST(count_if(followers > 0 AND NOT moving) AS INT) AS resting_listed_partitions",
    "CAST(count_if(planned) AS INT) AS planned_partitions",
    # Original replicas of this broker out of the ISR: all; of moving partitions; that the move removes; without a
    # leader; without a leader in moving partitions.
    "CAST(sum(CASE WHEN role = 'follower' THEN out_of_isr END) AS INT) AS lost_replicas",
    "CAST(sum(CASE WHEN role = 'follower' AND moving THEN out_of_isr END) AS INT) AS lost_moving_replicas",
    "CAST(sum(CASE WHEN role = 'follower' THEN out_of_isr_leaving END) AS INT) AS lost_leaving_replicas",
    "CAST(sum(CASE WHEN role = 'follower' AND leader IS NULL THEN out_of_isr END) AS INT) AS lost_leaderless_replicas",
    "CAST(sum(CASE WHEN role = 'follower' AND leader IS NULL AND moving THEN out_of_isr END) AS INT) "
    "AS lost_leaderless_moving_replicas",
    # Topics with list entries of partitions that do not move.
    "array_sort(collect_set(CASE WHEN has_list_entry AND NOT moving THEN topic END)) AS resting_topics",
    # All limited copies, to be grouped by the broker at their other end.
    "flatten(collect_list(limited_copies)) AS limited_copies",
    # Leaders whose throttles limit the copies of this destination.
    "collect_set(CASE WHEN role = 'follower' AND limited_by_leader > 0 THEN leader END) AS limiting_leaders",
    # Partitions with stalled replicas, with a recent leader switch, and those that move with their targets.
    f"array_sort(collect_list(CASE WHEN stall IS NOT NULL THEN {_STALLED_ENTRY} END)) AS stalls",
    f"array_sort(collect_list(CASE WHEN {_RECENT_SWITCH} THEN {_SWITCH_ENTRY} END)) AS switches",
    f"slice(array_sort(collect_list(CASE WHEN moving THEN {_MOVE_ENTRY} END)), 1, 20) AS moves",
    # Partitions whose original replica here is out of the ISR, by name.
    f"{_OUT_OF_ISR} AS lost",
    # Most severe cause of a stall, as text, and the highest leadership risk with its partition.
    _WORST_STALL,
    _HIGHEST_LEADERSHIP_RISK,
    # The partitions behind the load, by name.
    f"{_EVIDENCE} AS partitions",
)


def follower_traffic(replicas: DataFrame) -> DataFrame:
    """Return the traffic of each follower replica, one row per tick, replica, broker and role.

    A replica has two rows: one for its leader, which sends, and one for its own broker, which receives.

    Args:
        replicas: of ``streaming.transforms.moves.replicas.replicas``.
    """
    return with_columns(replicas, _OF_PARTITION).selectExpr(
        "cluster",
        "tick_ms",
        *_PARTITION,
        *_RATES,
        "broker_role.broker AS broker",
        "broker_role.role AS role",
        "broker_role.peer AS peer",
        "added",
        "stop_fetching",
        "leads_next",
        "broker_role.list_known AS list_known",
        # Whether the list has an entry of the partition, of any broker.
        "coalesce(size(IF(broker_role.role = 'leader', leader_listed, follower_listed)) > 0, false) AS has_list_entry",
        # Whether the throttle of the leader counts the partition.
        "coalesce(array_contains(leader_listed, leader), false) AS on_leader_list",
        "stalled",
        "waiting",
        "alive",
        # Whether this throttle counts the traffic of the replica; of one on a broker that is down: would count it.
        "coalesce(broker_role.listed, false) AND alive AS listed",
        "coalesce(broker_role.listed, false) AND NOT alive AS listed_down",
        # 0 or 1, to be summed. A replica on a broker that is down fetches nothing, so its leader has no traffic of it;
        # its own broker still has an out-of-sync replica.
        "CAST(alive AND in_sync AS INT) AS in_sync",
        # A partition that neither moves nor is listed is under-replicated only: throttles do not affect it.
        "CAST(NOT in_sync AND moves_or_listed AND (alive OR (broker_role.role = 'follower' AND is_adding)) AS INT) "
        "AS out_of_sync",
        # An original replica out of the ISR, and one that the move removes anyway.
        "NOT in_sync AND NOT is_adding AS out_of_isr",
        "NOT in_sync AND NOT is_adding AND array_contains(removing, follower) AS out_of_isr_leaving",
        # A new replica that is not in sync yet, as planned.
        "NOT in_sync AND is_adding AS adding_not_in_sync",
        # Counted once, at the destination: the cause of a stall, and bytes per second as leader of the partition.
        f"CASE WHEN broker_role.role = 'follower' THEN {_STALL} END AS stall",
        f"CASE WHEN broker_role.role = 'follower' THEN {_LEADERSHIP_RISK} END AS takeover_bytes_per_s",
    )


def throttle_loads(replicas: DataFrame) -> DataFrame:
    """Return the load on the throttles, one row per tick, broker and role that has followers or copies.

    Args:
        replicas: of ``streaming.transforms.moves.replicas.replicas``.

    Returns:
        The columns of ``_PER_BROKER_ROLE``. ``in_sync_bytes_per_s`` and ``required_bytes_per_s`` are null if a list, or
        the rate of a listed partition, is unknown.
    """
    by_partition = grouped(follower_traffic(replicas), (*BROKER_ROLE, *_PARTITION, "write_bytes_per_s"), _PER_PARTITION)
    return grouped(by_partition, BROKER_ROLE, _PER_BROKER_ROLE)

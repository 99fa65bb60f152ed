"""Load on the throttles: traffic, remaining bytes and stalled replicas per broker and role.

Lists of names are cut to a maximum length. Rules use the sums and counts, which cover all partitions.
"""

from __future__ import annotations

from collections.abc import Iterable

from pyspark.sql import DataFrame

from headroom.streaming.transforms.moves.replicas import MOVES_OR_LISTED
from headroom.streaming.transforms.steps import aggregate_by, named_expressions, with_columns

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
_WORST_STALL = f"element_at({STALL_NAMES}, max(stall))"
# A leader switch explains a throttle that is too low for about one rate window.
_RECENT_SWITCH = """role = 'leader' AND followers > 0 AND previous_leader IS NOT NULL
    AND tick_ms - switch_tick_ms <= greatest(coalesce(window_ms, 0), 10000)"""
# Bytes per second that the broker of an in-sync replica would have to send in addition as leader of the partition.
_LEADERSHIP_RISK = """CASE WHEN moving AND alive AND in_sync AND array_contains(leader_listed, follower)
    THEN write_bytes_per_s * greatest(size(replicas) - 1 - size(coalesce(offline, array())), 0) END"""

_HIGHEST_LEADERSHIP_RISK = """max(CASE WHEN takeover_bytes_per_s IS NOT NULL THEN
    struct(takeover_bytes_per_s AS bytes_per_s, topic, partition, leader) END)"""
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

# One row per replica, broker and role. 0 or 1 where the values are summed.
_FOLLOWER_TRAFFIC = {
    # Broker whose throttle the row is about.
    "broker": "broker_role.broker",
    # Its role: leader or follower.
    "role": "broker_role.role",
    # The broker at the other end of the copy; null if there is no leader.
    "peer": "broker_role.peer",
    # Number of adding replicas of the partition.
    "added": "added",
    # Number of followers that stop fetching from the leader after the move.
    "stop_fetching": "stop_fetching",
    # Whether this replica leads after the move.
    "leads_next": "leads_next",
    # Whether the throttled replica list of this role could be read.
    "list_known": "broker_role.list_known",
    # Whether the list has an entry of the partition, of any broker.
    "has_list_entry": "coalesce(size(IF(broker_role.role = 'leader', leader_listed, follower_listed)) > 0, false)",
    # Whether the throttle of the leader counts the partition.
    "on_leader_list": "coalesce(array_contains(leader_listed, leader), false)",
    # Whether an adding replica copies nothing and waits for no turn.
    "stalled": "stalled",
    # Whether an adding replica copies nothing because it waits for its turn.
    "waiting": "waiting",
    # Whether the replica can fetch.
    "alive": "alive",
    # Whether this throttle counts the traffic of the replica.
    "listed": "coalesce(broker_role.listed, false) AND alive",
    # Whether this throttle would count it, if its broker were not down.
    "listed_down": "coalesce(broker_role.listed, false) AND NOT alive",
    # 1 if it fetches and is in the ISR.
    "in_sync": "CAST(alive AND in_sync AS INT)",
    # 1 if it is out of sync. One on a broker that is down fetches nothing, so its leader has no traffic of it; its own
    # broker still has an out-of-sync replica. A partition that neither moves nor is listed is under-replicated only:
    # throttles do not affect it.
    "out_of_sync": "CAST(NOT in_sync AND moves_or_listed AND (alive OR (broker_role.role = 'follower' AND is_adding)) "
    "AS INT)",
    # Whether it is an original replica out of the ISR.
    "out_of_isr": "NOT in_sync AND NOT is_adding",
    # Whether it is one that the move removes anyway.
    "out_of_isr_leaving": "NOT in_sync AND NOT is_adding AND array_contains(removing, follower)",
    # Whether it is a new replica that is not in sync yet, as planned.
    "adding_not_in_sync": "NOT in_sync AND is_adding",
    # Cause of a stall, a number of _STALLS; counted once, at the destination.
    "stall": f"CASE WHEN broker_role.role = 'follower' THEN {_STALL} END",
    # Leadership risk, bytes per second; counted once, at the destination.
    "takeover_bytes_per_s": f"CASE WHEN broker_role.role = 'follower' THEN {_LEADERSHIP_RISK} END",
}

# Partition behind the load of a broker and role, with fields to sort by before those of the table: ``resting`` decides
# which partitions are kept, moving ones first; ``rank`` (bytes per second, negative) puts the busiest of these first.
_PARTITION_ENTRY = """struct(NOT moving AS resting,
    -coalesce(write_bytes_per_s, 0D) * greatest(followers, unlisted) AS rank,
    topic, partition, write_bytes_per_s, followers, in_sync_followers, leader, previous_leader, switch_tick_ms,
    moving, replicas, target, stalled > 0 AS stalled,
    CASE WHEN remaining_unknown = 0 THEN coalesce(remaining_bytes, 0) END AS remaining_bytes)"""
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


_KEPT_PARTITIONS = _first(f"CASE WHEN followers > 0 OR limited + unlisted > 0 THEN {_PARTITION_ENTRY} END")
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
        IF(leads_next, write_bytes_per_s, 0D) AS leading) END)"""
# Bytes per second that leaders of moving partitions send to all their followers, or that a destination receives.
_MOVING_BYTES = """CASE
    WHEN count_if(moving AND (role = 'leader' OR limited + unlisted > 0) AND write_bytes_per_s IS NULL) = 0
    THEN coalesce(sum(CASE WHEN moving AND role = 'leader' THEN write_bytes_per_s * fetching
        WHEN moving THEN write_bytes_per_s * (limited + unlisted) END), 0D) END"""
_STALLED_ENTRY = "struct(topic, partition, leader, stall)"
_SWITCH_ENTRY = """struct(topic, partition, previous_leader, switch_tick_ms,
    write_bytes_per_s * followers AS brought)"""
_MOVE_ENTRY = "struct(topic, partition, target)"


def _known_sum(amount: str, counts: str) -> str:
    """Return a sum over partitions, null if a part that counts is unknown: half a sum would give a false verdict.

    Args:
        amount: bytes per second of a partition.
        counts: condition of the partitions that count.
    """
    return (
        f"CASE WHEN count_if(NOT list_known OR ({counts} AND write_bytes_per_s IS NULL)) = 0 "
        f"THEN coalesce(sum(CASE WHEN {counts} THEN {amount} END), 0D) END"
    )


def _count(condition: str) -> str:
    return f"CAST(count_if({condition}) AS INT)"


def _follower_sum(count: str, condition: str = "") -> str:
    """Return the sum of a count over partitions as destination, where each replica counts once."""
    where = f"role = 'follower' AND {condition}" if condition else "role = 'follower'"
    return f"CAST(sum(CASE WHEN {where} THEN {count} END) AS INT)"


# One row per partition, broker and role: counts of its replicas there, and their sums.
_PER_PARTITION = {
    # Time between the two readings of the write rate, milliseconds.
    "window_ms": "max(window_ms)",
    # Followers that can fetch, in sync or not.
    "fetching": _count("alive"),
    # Followers whose traffic the throttle counts.
    "followers": "CAST(sum(CAST(listed AS INT)) AS INT)",
    # In-sync followers among these.
    "in_sync_followers": "CAST(sum(in_sync * CAST(listed AS INT)) AS INT)",
    # Out-of-sync replicas that the throttle limits.
    "limited": "sum(out_of_sync * CAST(listed AS INT))",
    # Out-of-sync replicas that no list names: they copy without a limit.
    "unlisted": "sum(out_of_sync * CAST(NOT listed AS INT))",
    # Bytes that the out-of-sync replicas still have to copy; known parts only.
    "remaining_bytes": "sum(CASE WHEN out_of_sync = 1 THEN remaining_bytes END)",
    # Bytes per second that they copy; known parts only.
    "copied_bytes_per_s": "sum(CASE WHEN out_of_sync = 1 THEN copied_bytes_per_s END)",
    # Out-of-sync replicas whose remaining bytes are unknown.
    "remaining_unknown": "count_if(out_of_sync = 1 AND remaining_bytes IS NULL)",
    # Out-of-sync replicas whose copy rate is unknown.
    "copied_unknown": "count_if(out_of_sync = 1 AND copied_bytes_per_s IS NULL)",
    # Out-of-sync replicas that the throttle of their leader limits.
    "limited_by_leader": "count_if(out_of_sync = 1 AND alive AND on_leader_list)",
    # Adding replicas that copy nothing and wait for no turn.
    "stalled": "count_if(stalled)",
    # Adding replicas that copy nothing because they wait for their turn.
    "waiting": "count_if(waiting)",
    # Adding replicas on brokers that are down.
    "adding_down": "count_if(adding_not_in_sync AND NOT alive)",
    # Listed replicas on brokers that are down: their traffic comes back with the broker.
    "listed_down": "count_if(listed_down)",
    # One struct per copy that this throttle limits.
    "limited_copies": _LIMITED_COPIES,
    # Original replicas out of the ISR.
    "out_of_isr": _count("out_of_isr"),
    # Original replicas out of the ISR that the move removes.
    "out_of_isr_leaving": "count_if(out_of_isr_leaving)",
    # Whether only adding replicas are out of sync, as planned.
    "planned": "count_if(out_of_isr) = 0 AND count_if(adding_not_in_sync) > 0",
    # Most severe cause among the stalled replicas, a number of _STALLS; null if none is stalled.
    "stall": "max(stall)",
    # Bytes per second that a leadership change would add to this broker.
    "takeover_bytes_per_s": "max(takeover_bytes_per_s)",
    # Whether the throttled replica list of this role could be read.
    "list_known": "bool_and(list_known)",
    # Whether that list has an entry of the partition.
    "has_list_entry": "bool_or(has_list_entry)",
    # Whether the write rate is unknown because there is no second reading yet.
    "first_reading": "bool_or(first_reading)",
}
# One row per broker and role, from those of its partitions. "Known" parts only: lower bounds.
_PER_BROKER_ROLE = {
    # In-sync use of the throttle, bytes per second; null if a part is unknown.
    "in_sync_bytes_per_s": _known_sum("write_bytes_per_s * in_sync_followers", "in_sync_followers > 0"),
    # Required rate of the throttle, bytes per second; null if a part is unknown.
    "required_bytes_per_s": _known_sum("write_bytes_per_s * followers", "followers > 0"),
    # In-sync use without the unknown parts, bytes per second.
    "known_in_sync_bytes_per_s": "coalesce(sum(write_bytes_per_s * in_sync_followers), 0D)",
    # Required rate without the unknown parts, bytes per second.
    "known_required_bytes_per_s": "coalesce(sum(write_bytes_per_s * followers), 0D)",
    # Traffic of moving partitions, listed or not, bytes per second; null if a part is unknown.
    "moving_bytes_per_s": _MOVING_BYTES,
    # Out-of-sync replicas that the throttle limits.
    "limited_replicas": "CAST(sum(limited) AS INT)",
    # Out-of-sync replicas that no list names.
    "free_replicas": "CAST(sum(unlisted) AS INT)",
    # Partitions with a part in this load.
    "counting_partitions": _count("followers > 0 OR limited + unlisted > 0"),
    # Moving partitions with limited replicas.
    "limited_partitions": _count("moving AND limited > 0"),
    # Moving partitions with out-of-sync replicas that no list names.
    "free_partitions": _count("moving AND unlisted > 0"),
    # Bytes that all out-of-sync replicas still have to copy; null if that of one is unknown.
    "remaining_bytes": "CASE WHEN sum(remaining_unknown) = 0 THEN coalesce(sum(remaining_bytes), 0) END",
    # Bytes per second that they copy beyond what producers write meanwhile: how fast the backlog shrinks.
    "catch_up_bytes_per_s": "CASE WHEN sum(copied_unknown) = 0 "
    "AND count_if(limited + unlisted > 0 AND write_bytes_per_s IS NULL) = 0 "
    "THEN sum(copied_bytes_per_s) - sum((limited + unlisted) * write_bytes_per_s) END",
    # Adding replicas that copy nothing and wait for no turn.
    "stalled_replicas": "CAST(sum(stalled) AS INT)",
    # Adding replicas that copy nothing because they wait for their turn.
    "waiting_replicas": "CAST(sum(waiting) AS INT)",
    # Adding replicas of this leader on brokers that are down.
    "down_replicas": "CAST(sum(CASE WHEN role = 'leader' THEN adding_down END) AS INT)",
    # Bytes per second that listed replicas on brokers that are down will fetch again.
    "down_required_bytes_per_s": "coalesce(sum(CASE WHEN role = 'leader' "
    "THEN write_bytes_per_s * listed_down END), 0D)",
    # Listed partitions with an unknown write rate.
    "unknown_partitions": "count_if(followers > 0 AND write_bytes_per_s IS NULL)",
    # Partitions among these that only miss a second reading.
    "unread_partitions": "count_if(followers > 0 AND write_bytes_per_s IS NULL AND first_reading)",
    # Partitions whose throttled replica list could not be read.
    "unknown_lists": "count_if(NOT list_known)",
    # Longest time between two readings of a write rate, milliseconds.
    "rate_window_ms": "max(window_ms)",
    # Partitions that move.
    "moving_partitions": _count("moving"),
    # Partitions that are listed but do not move.
    "resting_listed_partitions": _count("followers > 0 AND NOT moving"),
    # Partitions with only adding replicas out of sync.
    "planned_partitions": _count("planned"),
    # Original replicas of this broker that are out of the ISR.
    "lost_replicas": _follower_sum("out_of_isr"),
    # Replicas among these whose partition moves.
    "lost_moving_replicas": _follower_sum("out_of_isr", "moving"),
    # Replicas among these that the move removes.
    "lost_leaving_replicas": _follower_sum("out_of_isr_leaving"),
    # Replicas among these whose partition has no leader.
    "lost_leaderless_replicas": _follower_sum("out_of_isr", "leader IS NULL"),
    # Replicas among these whose partition moves and has no leader.
    "lost_leaderless_moving_replicas": _follower_sum("out_of_isr", "leader IS NULL AND moving"),
    # Topics with list entries of partitions that do not move.
    "resting_topics": "array_sort(collect_set(CASE WHEN has_list_entry AND NOT moving THEN topic END))",
    # All limited copies, to be grouped by the broker at their other end.
    "limited_copies": "flatten(collect_list(limited_copies))",
    # Leaders whose throttles limit the copies of this destination.
    "limiting_leaders": "collect_set(CASE WHEN role = 'follower' AND limited_by_leader > 0 THEN leader END)",
    # Partitions with stalled replicas.
    "stalls": f"array_sort(collect_list(CASE WHEN stall IS NOT NULL THEN {_STALLED_ENTRY} END))",
    # Partitions with a recent leader switch.
    "switches": f"array_sort(collect_list(CASE WHEN {_RECENT_SWITCH} THEN {_SWITCH_ENTRY} END))",
    # The first moving partitions with their targets.
    "moves": f"slice(array_sort(collect_list(CASE WHEN moving THEN {_MOVE_ENTRY} END)), 1, {EVIDENCE_PARTITIONS})",
    # Partitions whose original replica here is out of the ISR, by name.
    "lost": _OUT_OF_ISR,
    # Most severe cause of a stall, as text; null if none is stalled.
    "stall": _WORST_STALL,
    # Highest leadership risk: bytes per second, with its partition and leader; null if there is none.
    "takeover": _HIGHEST_LEADERSHIP_RISK,
    # The partitions behind the load, by name.
    "partitions": _EVIDENCE,
}


def follower_traffic(replicas: DataFrame) -> DataFrame:
    """Return the traffic of each follower replica, one row per tick, replica, broker and role.

    A replica has two rows: one for its leader, which sends, and one for its own broker, which receives.

    Args:
        replicas: of ``streaming.transforms.moves.replicas.replicas``.
    """
    by_role = with_columns(replicas, _OF_PARTITION)
    return by_role.selectExpr("cluster", "tick_ms", *_PARTITION, *_RATES, *named_expressions(_FOLLOWER_TRAFFIC))


def throttle_loads(replicas: DataFrame) -> DataFrame:
    """Return the load on the throttles, one row per tick, broker and role that has followers or copies.

    Args:
        replicas: of ``streaming.transforms.moves.replicas.replicas``.

    Returns:
        The columns of ``_PER_BROKER_ROLE``. ``in_sync_bytes_per_s`` and ``required_bytes_per_s`` are null if a list, or
        the rate of a listed partition, is unknown.
    """
    by_partition = aggregate_by(
        follower_traffic(replicas), (*BROKER_ROLE, *_PARTITION, "write_bytes_per_s"), _PER_PARTITION
    )
    return aggregate_by(by_partition, BROKER_ROLE, _PER_BROKER_ROLE)

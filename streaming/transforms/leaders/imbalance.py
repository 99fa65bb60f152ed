"""Leader balance per broker: Kafka's own count of partitions with a non-preferred leader, and their traffic.

Nearly all partitions are led by their preferred leader, and are only counted. Only partitions with another leader have
a rate of their own. A broker's preferred traffic is its own traffic, minus the partitions that it leads for others,
plus the partitions that others lead for it.
"""

from __future__ import annotations

from dataclasses import dataclass

from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as F

from headroom.streaming.transforms.leaders.broker_meters import BROKER_FIGURES, broker_meters
from headroom.streaming.transforms.moves.write_rate import end_offset_rate
from headroom.streaming.transforms.silver import BYTES_IN, MESSAGES_IN, of_meter
from headroom.streaming.transforms.steps import aggregate_by, named_expressions, with_columns
from headroom.streaming.transforms.tick_status import TICK

_REBALANCE_CONFIGS = ("auto_leader_rebalance", "leader_imbalance_check_s", "leader_imbalance_percentage")
# The two counters of a topic are read one after the other. Windows that differ by more belong to different ticks.
_SAME_WINDOW = "abs(bytes_window_ms - messages_window_ms) <= greatest(200, bytes_window_ms / 20)"

# Counters of a topic on a leading broker.
_COUNTERS = {
    # Bytes that were written to it, in all.
    "bytes_in": of_meter(BYTES_IN, "count_total"),
    # The same at the reading before.
    "prev_bytes_in": of_meter(BYTES_IN, "prev_count_total"),
    # Time between these two readings, milliseconds.
    "bytes_window_ms": of_meter(BYTES_IN, "read_ms - prev_read_ms"),
    # Messages that were written to it, in all.
    "messages_in": of_meter(MESSAGES_IN, "count_total"),
    # The same at the reading before.
    "prev_messages_in": of_meter(MESSAGES_IN, "prev_count_total"),
    # Time between these two readings, milliseconds.
    "messages_window_ms": of_meter(MESSAGES_IN, "read_ms - prev_read_ms"),
}
# A partition, before the pairs of preferred and leading broker are counted.
_PARTITION = {
    # First broker in the replica list; null if the row could not be read.
    "preferred": "get(replicas, 0)",
    # Leading broker; null if there is none.
    "leader": "leader",
    # Distinguishes a partition from a rate in the union of both.
    "is_partition": "true",
    # Whether the row could not be read.
    "unread": "replicas IS NULL",
    # Whether another broker than the preferred one leads.
    "non_preferred": "leader != get(replicas, 0)",
    # Whether a reassignment of the partition is running.
    "moving": "coalesce(size(adding), 0) + coalesce(size(removing), 0) > 0",
    # Whether the preferred broker is in the ISR.
    "in_sync": "array_contains(isr, get(replicas, 0))",
    # Age of the metadata at the tick, milliseconds.
    "metadata_age_ms": "metadata_age_ms",
}
# Counts of partitions of a pair of preferred and leading broker, and their rate.
_PAIR = {
    # All partitions.
    "partitions": "count_if(is_partition)",
    # Rows that could not be read.
    "unread": "count_if(unread)",
    # Partitions with another leader than the preferred broker: all or none of a pair.
    "non_preferred": "count_if(non_preferred)",
    # Partitions among these that move, and wait for the end of the move.
    "waiting": "count_if(non_preferred AND moving)",
    # Partitions among these that an election could change.
    "electable": "count_if(non_preferred AND NOT moving AND in_sync)",
    # Greatest age of the metadata, milliseconds.
    "metadata_age_ms": "max(metadata_age_ms)",
    # Write rate of the non-preferred partitions, bytes per second; null if that of one is unknown: a sum with an
    # unknown part would be false.
    "write_bytes_per_s": "CASE WHEN count_if(non_preferred) = count(write_bytes_per_s) "
    "THEN coalesce(sum(write_bytes_per_s), 0D) END",
}
# Read rate of a pair, bytes per second; null if unknown. Reads per partition are not measured: a leader's reads are
# divided in the same proportions as its writes.
_PAIR_READ = """CASE WHEN write_bytes_per_s = 0 OR leader_read_bytes_per_s = 0 THEN 0D
    WHEN leader_write_bytes_per_s > 0
        THEN write_bytes_per_s * leader_read_bytes_per_s / leader_write_bytes_per_s END"""
# What a pair adds to its preferred broker.
_FOR_PREFERRED = {
    # Broker that the share belongs to.
    "broker": "preferred",
    # Rows that could not be read.
    "unread": "unread",
    # Partitions that prefer this broker.
    "preferred_partitions": "partitions",
    # Partitions among these with another leader.
    "non_preferred": "non_preferred",
    # Partitions among those with another leader that move.
    "waiting": "waiting",
    # Partitions among those with another leader that an election could change.
    "electable": "electable",
    # Partitions that prefer this broker and have no leader.
    "leaderless": "CASE WHEN leader IS NULL THEN partitions END",
    # Age of the metadata, milliseconds.
    "metadata_age_ms": "metadata_age_ms",
    # Partitions that this broker leads: counted for the leading broker.
    "leader_partitions": "CAST(NULL AS BIGINT)",
    # Whether write_delta_bytes_per_s is unknown.
    "write_unknown": "non_preferred > 0 AND write_bytes_per_s IS NULL",
    # Whether read_delta_bytes_per_s is unknown.
    "read_unknown": "non_preferred > 0 AND pair_read_bytes_per_s IS NULL",
    # Writes that elections would bring to the broker, bytes per second; null if there are none, or if unknown.
    "write_delta_bytes_per_s": "CASE WHEN non_preferred > 0 THEN write_bytes_per_s END",
    # Reads that elections would bring to it, bytes per second; null if there are none, or if unknown.
    "read_delta_bytes_per_s": "CASE WHEN non_preferred > 0 THEN pair_read_bytes_per_s END",
}
# What a pair adds to its leading broker, in the same fields.
_FOR_LEADER = {
    # Broker that the share belongs to.
    "broker": "leader",
    # From here to metadata_age_ms: counted for the preferred broker.
    "unread": "CAST(NULL AS BIGINT)",
    "preferred_partitions": "CAST(NULL AS BIGINT)",
    "non_preferred": "CAST(NULL AS BIGINT)",
    "waiting": "CAST(NULL AS BIGINT)",
    "electable": "CAST(NULL AS BIGINT)",
    "leaderless": "CAST(NULL AS BIGINT)",
    "metadata_age_ms": "CAST(NULL AS BIGINT)",
    # Partitions that this broker leads.
    "leader_partitions": "partitions",
    # Whether write_delta_bytes_per_s is unknown.
    "write_unknown": "non_preferred > 0 AND write_bytes_per_s IS NULL",
    # Whether read_delta_bytes_per_s is unknown.
    "read_unknown": "non_preferred > 0 AND pair_read_bytes_per_s IS NULL",
    # Writes that elections would take from the broker, bytes per second, negative; null if there are none, or if
    # unknown.
    "write_delta_bytes_per_s": "CASE WHEN non_preferred > 0 THEN -write_bytes_per_s END",
    # Reads that elections would take from it, bytes per second, negative; null if there are none, or if unknown.
    "read_delta_bytes_per_s": "CASE WHEN non_preferred > 0 THEN -pair_read_bytes_per_s END",
}
# A broker, from the shares of its pairs, its traffic and its row of the kind ``brokers``.
_BROKER = {
    # Partitions that prefer it.
    "preferred_partitions": "coalesce(sum(preferred_partitions), 0)",
    # Partitions among these with another leader.
    "non_preferred": "coalesce(sum(non_preferred), 0)",
    # Partitions among those with another leader that move.
    "waiting": "coalesce(sum(waiting), 0)",
    # Partitions among those with another leader that an election could change if this broker is up.
    "electable": "coalesce(sum(electable), 0)",
    # Partitions that prefer it and have no leader.
    "leaderless": "coalesce(sum(leaderless), 0)",
    # Partitions that it leads.
    "leader_partitions": "coalesce(sum(leader_partitions), 0)",
    # Rows that could not be read.
    "unread": "coalesce(sum(unread), 0)",
    # Bytes per second that are written to it as leader; it has at most one value, as of the next four.
    "write_bytes_per_s": "max(write_bytes_per_s)",
    # Bytes per second that are read from it.
    "read_bytes_per_s": "max(read_bytes_per_s)",
    # Time between the two readings of the rates, milliseconds.
    "rate_window_ms": "max(rate_window_ms)",
    # Further figures of its meters; it has at most one value of each.
    **{name: f"max({name})" for name in BROKER_FIGURES},
    # Its setting of leader.imbalance.check.interval.seconds, seconds.
    "leader_imbalance_check_s": "max(leader_imbalance_check_s)",
    # Its setting of leader.imbalance.per.broker.percentage, per cent.
    "leader_imbalance_percentage": "max(leader_imbalance_percentage)",
    # Greatest age of the metadata, milliseconds.
    "metadata_age_ms": "max(metadata_age_ms)",
    # Whether it is up; false if only partitions name it.
    "alive": "coalesce(bool_or(alive), false)",
    # Whether its metrics were read.
    "answered": "coalesce(bool_or(answered), false)",
    # Its setting of auto.leader.rebalance.enable.
    "auto_leader_rebalance": "bool_or(auto_leader_rebalance)",
    # Change of its write rate if all preferred leaders led, bytes per second; null if a part is unknown.
    "write_delta_bytes_per_s": "CASE WHEN count_if(write_unknown) = 0 "
    "THEN coalesce(sum(write_delta_bytes_per_s), 0D) END",
    # Change of its read rate if all preferred leaders led, bytes per second; null if a part is unknown.
    "read_delta_bytes_per_s": "CASE WHEN count_if(read_unknown) = 0 THEN coalesce(sum(read_delta_bytes_per_s), 0D) END",
}


# Columns of a broker besides those of ``gold/leader_imbalance``.
EXTRA_COLUMNS = ("has_balance", "answered", "led_partitions", *BROKER_FIGURES)
_EXTRA = {
    # Whether the row belongs to gold/leader_imbalance. Partitions that could not be read count for the whole tick.
    "has_balance": "unread = 0 AND preferred_partitions > 0",
    "answered": "answered",
    # Partitions that it leads; null if some could not be read.
    "led_partitions": "CASE WHEN unread = 0 THEN leader_partitions END",
    **{name: name for name in BROKER_FIGURES},
}


def _balance(setting_ratio: float) -> dict[str, str]:
    """Return the columns of ``gold/leader_imbalance`` (see ``schemas.tables``) after the broker."""
    return {
        "alive": "alive",
        "preferred_partitions": "preferred_partitions",
        "non_preferred_partitions": "non_preferred",
        # Of the partitions with another leader: those that an election could change now, those that move, the others.
        "electable_now": "electable_now",
        "waiting_for_move": "waiting",
        "unavailable": "non_preferred - waiting - electable_now",
        "leaderless": "leaderless",
        "leader_partitions": "leader_partitions",
        # 0 to 1.
        "imbalance_ratio": "non_preferred / nullif(preferred_partitions, 0)",
        "threshold_ratio": f"coalesce(leader_imbalance_percentage / 100, {setting_ratio!r}D)",
        "threshold_source": "CASE WHEN leader_imbalance_percentage IS NULL THEN 'setting' ELSE 'broker' END",
        # Bytes per second, as are the next three.
        "write_bytes_per_s": "write_bytes_per_s",
        "read_bytes_per_s": "read_bytes_per_s",
        # Rates if all preferred leaders led. At least 0: brokers are not read at the same instant, so the sum may be
        # slightly negative.
        "preferred_write_bytes_per_s": "if(write_bytes_per_s < -write_delta_bytes_per_s, 0D, "
        "write_bytes_per_s + write_delta_bytes_per_s)",
        "preferred_read_bytes_per_s": "if(read_bytes_per_s < -read_delta_bytes_per_s, 0D, "
        "read_bytes_per_s + read_delta_bytes_per_s)",
        "auto_leader_rebalance": "auto_leader_rebalance",
        # Seconds.
        "check_interval_s": "leader_imbalance_check_s",
        # Milliseconds.
        "metadata_age_ms": "metadata_age_ms",
        "rate_window_ms": "rate_window_ms",
    }


@dataclass(frozen=True)
class ImbalanceInputs:
    """Rows of complete ticks by message kind, with ``cluster`` and ``tick_ms``.

    Attributes:
        leaders: every partition. A row of nulls replaces the partitions of a message that could not be read.
        logs: every log that was read.
        meters: every meter that was read.
        brokers: every broker.
    """

    leaders: DataFrame
    logs: DataFrame
    meters: DataFrame
    brokers: DataFrame


def leader_imbalance(inputs: ImbalanceInputs, setting_ratio: float) -> DataFrame:
    """Return the rows of ``gold/leader_imbalance`` without ``date``, one per tick and preferred broker.

    A tick with partitions that could not be read has no rows, because a count over the others would be false.

    Args:
        inputs: rows of complete ticks.
        setting_ratio: threshold of brokers without a threshold of their own, 0 to 1.
    """
    return broker_rows(inputs, setting_ratio).where("has_balance").drop(*EXTRA_COLUMNS)


def broker_rows(inputs: ImbalanceInputs, setting_ratio: float) -> DataFrame:
    """Return one row per tick and broker: the columns of ``gold/leader_imbalance`` except ``date``, and further ones.

    ``has_balance`` is true for the rows of that table. The others have the meters of brokers that no partition
    prefers, or of ticks with partitions that could not be read.

    Args:
        inputs: rows of complete ticks.
        setting_ratio: threshold of brokers without a threshold of their own, 0 to 1.
    """
    traffic = broker_meters(inputs.meters)
    shares = _shares(_pairs(inputs.leaders, non_preferred_traffic(inputs.logs, inputs.meters)), traffic)
    brokers = inputs.brokers.selectExpr(*TICK, "broker", "alive", "answered", *_REBALANCE_CONFIGS)
    united = shares.unionByName(traffic, allowMissingColumns=True).unionByName(brokers, allowMissingColumns=True)
    return _by_broker(united, setting_ratio)


def _counters(meters: DataFrame) -> DataFrame:
    """Return the byte and message counters of each topic on each leading broker, as a struct ``counters``."""
    of_topics = meters.where(F.expr(f"topic IS NOT NULL AND meter IN ('{BYTES_IN}', '{MESSAGES_IN}')"))
    return (
        aggregate_by(of_topics, (*TICK, "broker", "topic"), _COUNTERS)
        .where(_SAME_WINDOW)
        .selectExpr(
            *TICK, "broker", "topic", "struct(bytes_in, prev_bytes_in, messages_in, prev_messages_in) AS counters"
        )
    )


def non_preferred_traffic(logs: DataFrame, meters: DataFrame) -> DataFrame:
    """Return the write rates of partitions with a non-preferred leader, as far as their logs were read.

    Args:
        logs: every log that was read, of complete ticks.
        meters: every meter that was read.

    Returns:
        One row per tick and partition: ``cluster``, ``tick_ms``, ``topic``, ``partition``, ``preferred``, ``leader``
        and ``write_bytes_per_s`` (null if it is unknown).
    """
    ends = "struct(read_ms, prev_read_ms, log_end_offset, prev_log_end_offset) AS log"
    non_preferred = logs.where("preferred IS NOT NULL").selectExpr(
        *TICK, "broker", "topic", "partition", "preferred", ends
    )
    return non_preferred.join(_counters(meters), [*TICK, "broker", "topic"], "left").selectExpr(
        *TICK,
        "topic",
        "partition",
        "preferred",
        "broker AS leader",
        f"{end_offset_rate('log', 'counters')} AS write_bytes_per_s",
    )


def _pairs(leaders: DataFrame, non_preferred: DataFrame) -> DataFrame:
    """Return one row per tick, preferred and leading broker (null: no leader), with counts and a write rate.

    The write rate is that of the pair's partitions, bytes per second, if the two brokers differ; null if unknown.

    Args:
        leaders: every partition.
        non_preferred: rows of ``non_preferred_traffic``.
    """
    counted = leaders.selectExpr(*TICK, *named_expressions(_PARTITION))
    rates = non_preferred.drop("topic", "partition")
    united = counted.unionByName(rates, allowMissingColumns=True)
    return aggregate_by(united, (*TICK, "preferred", "leader"), _PAIR)


def _shares(pairs: DataFrame, traffic: DataFrame) -> DataFrame:
    """Return two rows per pair: one for its preferred broker, one for its leading broker."""
    of_leaders = traffic.selectExpr(
        *TICK,
        "broker AS leader",
        "write_bytes_per_s AS leader_write_bytes_per_s",
        "read_bytes_per_s AS leader_read_bytes_per_s",
    )
    rated = with_columns(
        pairs.join(F.broadcast(of_leaders), [*TICK, "leader"], "left"), {"pair_read_bytes_per_s": _PAIR_READ}
    )
    preferred, leader = (f"struct({', '.join(named_expressions(fields))})" for fields in (_FOR_PREFERRED, _FOR_LEADER))
    of_leader = f"CASE WHEN leader IS NOT NULL THEN {leader} END"
    # Not a union of both kinds of rows: Spark would count all partitions for each of the two.
    return rated.selectExpr(*TICK, f"inline(filter(array({preferred}, {of_leader}), x -> x IS NOT NULL))")


def _by_broker(rows: DataFrame, setting_ratio: float) -> DataFrame:
    """Return one row per tick and broker, from all rows about the broker."""
    # Partitions that could not be read have no preferred broker.
    summed = aggregate_by(rows, (*TICK, "broker"), _BROKER)
    # Unread partitions count for the whole tick, because their preferred brokers are unknown.
    whole = summed.withColumn("unread", F.sum("unread").over(Window.partitionBy(*TICK))).where("broker IS NOT NULL")
    # Partitions that an election could change now: none while the preferred broker is down.
    with_electable = with_columns(whole, {"electable_now": "CASE WHEN alive THEN electable ELSE 0 END"})
    return with_electable.selectExpr(
        *TICK, "broker", *named_expressions(_balance(setting_ratio)), *named_expressions(_EXTRA)
    )

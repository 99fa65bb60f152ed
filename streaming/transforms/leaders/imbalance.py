"""Leader balance per broker: Kafka's own count of partitions with a non-preferred leader, and their traffic.

Nearly all partitions are led by their preferred leader, and are only counted. Only partitions with another leader have
a rate of their own. A broker's preferred traffic is its own traffic, minus the partitions that it leads for others,
plus the partitions that others lead for it.
"""

from __future__ import annotations

from dataclasses import dataclass

from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as F

from streaming.transforms.moves.write_rate import end_offset_rate
from streaming.transforms.silver import with_meter_rate
from streaming.transforms.tick_status import TICK

_BYTES_IN, _MESSAGES_IN, _BYTES_OUT = (
    f"BrokerTopicMetrics.{name}" for name in ("BytesInPerSec", "MessagesInPerSec", "BytesOutPerSec")
)
_RW = ("write", "read")
_REBALANCE_CONFIGS = ("auto_leader_rebalance", "leader_imbalance_check_s", "leader_imbalance_percentage")
# A broker has at most one value of each; of metadata ages the greatest counts.
_MAXIMA = (
    *(f"{x}_bytes_per_s" for x in _RW),
    "rate_window_ms",
    "leader_imbalance_check_s",
    "leader_imbalance_percentage",
    "metadata_age_ms",
)
# At least 0: brokers are not read at the same instant, so a difference may be slightly negative.
_PREFERRED = "if({0}_bytes_per_s < -{0}_delta, 0D, {0}_bytes_per_s + {0}_delta) AS preferred_{0}_bytes_per_s"
# The two counters of a topic are read one after the other. Windows that differ by more belong to different ticks.
_SAME_WINDOW = "abs(bytes_window_ms - messages_window_ms) <= greatest(200, bytes_window_ms / 20)"
# What a pair adds to its preferred broker. Deltas are bytes per second that elections would bring to the broker,
# null if unknown.
_FOR_PREFERRED = """struct(
    preferred AS broker,
    unread,
    partitions AS preferred_partitions,
    non_preferred,
    waiting,
    electable,
    CASE WHEN leader IS NULL THEN partitions END AS leaderless,
    metadata_age_ms,
    CAST(NULL AS BIGINT) AS leader_partitions,
    non_preferred > 0 AND write_bytes_per_s IS NULL AS write_unknown,
    non_preferred > 0 AND pair_read_bytes_per_s IS NULL AS read_unknown,
    CASE WHEN non_preferred > 0 THEN write_bytes_per_s END AS write_delta,
    CASE WHEN non_preferred > 0 THEN pair_read_bytes_per_s END AS read_delta)"""
# What a pair adds to its leading broker, with deltas that elections would take from it.
_FOR_LEADER = """CASE WHEN leader IS NOT NULL THEN struct(
    leader AS broker,
    CAST(NULL AS BIGINT) AS unread,
    CAST(NULL AS BIGINT) AS preferred_partitions,
    CAST(NULL AS BIGINT) AS non_preferred,
    CAST(NULL AS BIGINT) AS waiting,
    CAST(NULL AS BIGINT) AS electable,
    CAST(NULL AS BIGINT) AS leaderless,
    CAST(NULL AS BIGINT) AS metadata_age_ms,
    partitions AS leader_partitions,
    non_preferred > 0 AND write_bytes_per_s IS NULL AS write_unknown,
    non_preferred > 0 AND pair_read_bytes_per_s IS NULL AS read_unknown,
    CASE WHEN non_preferred > 0 THEN -write_bytes_per_s END AS write_delta,
    CASE WHEN non_preferred > 0 THEN -pair_read_bytes_per_s END AS read_delta) END"""
# Reads per partition are not measured: a leader's reads are divided in the same proportions as its writes.
_READ = """CASE WHEN write_bytes_per_s = 0 OR leader_read_bytes_per_s = 0 THEN 0D
    WHEN leader_write_bytes_per_s > 0
        THEN write_bytes_per_s * leader_read_bytes_per_s / leader_write_bytes_per_s END"""


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
    traffic = _traffic(inputs.meters)
    shares = _shares(_pairs(inputs.leaders, non_preferred_traffic(inputs.logs, inputs.meters)), traffic)
    parts = (shares, traffic, inputs.brokers.selectExpr(*TICK, "broker", "alive", *_REBALANCE_CONFIGS))
    united = parts[0].unionByName(parts[1], allowMissingColumns=True).unionByName(parts[2], allowMissingColumns=True)
    return _by_broker(united, setting_ratio)


def _traffic(meters: DataFrame) -> DataFrame:
    """Return the traffic of each broker over all topics, bytes per second, one row per tick and broker."""
    own = meters.where(F.expr(f"topic IS NULL AND meter IN ('{_BYTES_IN}', '{_BYTES_OUT}')"))
    return (
        with_meter_rate(own)
        .groupBy(*TICK, "broker")
        .agg(
            F.expr(f"max(CASE WHEN meter = '{_BYTES_IN}' THEN bytes_per_s END) AS write_bytes_per_s"),
            F.expr(f"max(CASE WHEN meter = '{_BYTES_OUT}' THEN bytes_per_s END) AS read_bytes_per_s"),
            F.expr("max(window_ms) AS rate_window_ms"),
        )
    )


def _counters(meters: DataFrame) -> DataFrame:
    """Return the byte and message counters of each topic on each leading broker, as a struct ``counters``."""
    bytes_in, messages = (f"max(CASE WHEN meter = '{name}' THEN {{}} END)" for name in (_BYTES_IN, _MESSAGES_IN))
    counted = (
        meters.where(F.expr(f"topic IS NOT NULL AND meter IN ('{_BYTES_IN}', '{_MESSAGES_IN}')"))
        .groupBy(*TICK, "broker", "topic")
        .agg(
            F.expr(f"{bytes_in.format('count_total')} AS bytes_in"),
            F.expr(f"{bytes_in.format('prev_count_total')} AS prev_bytes_in"),
            F.expr(f"{bytes_in.format('read_ms - prev_read_ms')} AS bytes_window_ms"),
            F.expr(f"{messages.format('count_total')} AS messages_in"),
            F.expr(f"{messages.format('prev_count_total')} AS prev_messages_in"),
            F.expr(f"{messages.format('read_ms - prev_read_ms')} AS messages_window_ms"),
        )
    )
    return counted.where(_SAME_WINDOW).selectExpr(
        *TICK, "broker", "topic", "struct(bytes_in, prev_bytes_in, messages_in, prev_messages_in) AS counters"
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
    counted = leaders.selectExpr(
        *TICK,
        "get(replicas, 0) AS preferred",
        "leader",
        # Distinguishes a partition from a rate in the union below.
        "true AS is_partition",
        "replicas IS NULL AS unread",
        "leader != get(replicas, 0) AS non_preferred",
        "coalesce(size(adding), 0) + coalesce(size(removing), 0) > 0 AS moving",
        "array_contains(isr, get(replicas, 0)) AS in_sync",
        "metadata_age_ms",
    )
    pairs = counted.unionByName(non_preferred.drop("topic", "partition"), allowMissingColumns=True).groupBy(
        *TICK, "preferred", "leader"
    )
    return pairs.agg(
        F.expr("count_if(is_partition) AS partitions"),
        F.expr("count_if(unread) AS unread"),
        # Partitions with another leader: all; those that move; those that an election could change.
        F.expr("count_if(non_preferred) AS non_preferred"),
        F.expr("count_if(non_preferred AND moving) AS waiting"),
        F.expr("count_if(non_preferred AND NOT moving AND in_sync) AS electable"),
        F.expr("max(metadata_age_ms) AS metadata_age_ms"),
        # A sum with an unknown part would be false.
        F.expr(
            "CASE WHEN count_if(non_preferred) = count(write_bytes_per_s) "
            "THEN coalesce(sum(write_bytes_per_s), 0D) END AS write_bytes_per_s"
        ),
    )


def _shares(pairs: DataFrame, traffic: DataFrame) -> DataFrame:
    """Return two rows per pair: one for its preferred broker, one for its leading broker."""
    of_leaders = traffic.selectExpr(
        *TICK,
        "broker AS leader",
        "write_bytes_per_s AS leader_write_bytes_per_s",
        "read_bytes_per_s AS leader_read_bytes_per_s",
    )
    rated = pairs.join(F.broadcast(of_leaders), [*TICK, "leader"], "left").withColumn(
        "pair_read_bytes_per_s", F.expr(_READ)
    )
    # Not a union of both kinds of rows: Spark would count all partitions for each of the two.
    return rated.selectExpr(*TICK, f"inline(filter(array({_FOR_PREFERRED}, {_FOR_LEADER}), x -> x IS NOT NULL))")


def _by_broker(rows: DataFrame, setting_ratio: float) -> DataFrame:
    """Return one row per tick and preferred broker, from all rows about the broker."""
    counts = (
        "preferred_partitions",
        "non_preferred",
        "waiting",
        "electable",
        "leaderless",
        "leader_partitions",
        "unread",
    )
    summed = rows.groupBy(*TICK, "broker").agg(
        *[F.expr(f"coalesce(sum({name}), 0) AS {name}") for name in counts],
        *[F.expr(f"max({name}) AS {name}") for name in _MAXIMA],
        F.expr("coalesce(bool_or(alive), false) AS alive"),
        F.expr("bool_or(auto_leader_rebalance) AS auto_leader_rebalance"),
        *[
            F.expr(f"CASE WHEN count_if({x}_unknown) = 0 THEN coalesce(sum({x}_delta), 0D) END AS {x}_delta")
            for x in _RW
        ],
    )
    # Unread partitions count for the whole tick, because their preferred brokers are unknown.
    whole = summed.withColumn("unread", F.sum("unread").over(Window.partitionBy(*TICK)))
    return (
        whole.where("unread = 0 AND preferred_partitions > 0")
        .withColumn("electable_now", F.expr("CASE WHEN alive THEN electable ELSE 0 END"))
        .selectExpr(
            *TICK,
            "broker",
            "alive",
            "preferred_partitions",
            "non_preferred AS non_preferred_partitions",
            "electable_now",
            "waiting AS waiting_for_move",
            "non_preferred - waiting - electable_now AS unavailable",
            "leaderless",
            "leader_partitions",
            "non_preferred / preferred_partitions AS imbalance_ratio",
            f"coalesce(leader_imbalance_percentage / 100, {setting_ratio!r}D) AS threshold_ratio",
            "CASE WHEN leader_imbalance_percentage IS NULL THEN 'setting' ELSE 'broker' END AS threshold_source",
            *[f"{x}_bytes_per_s" for x in _RW],
            *[_PREFERRED.format(x) for x in _RW],
            "auto_leader_rebalance",
            "leader_imbalance_check_s AS check_interval_s",
            "metadata_age_ms",
            "rate_window_ms",
        )
    )

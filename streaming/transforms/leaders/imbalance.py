"""How leaders are shared out among brokers, against what is preferred; Kafka's own count, and what it weighs.

Nearly all partitions are led as preferred: they are counted and not looked at further. Only what one broker leads in
another's place has a rate of its own, so that a broker's preferred share is its own traffic, less what it took over,
plus what others took over from it.
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
_BALANCING = ("auto_leader_rebalance", "leader_imbalance_check_s", "leader_imbalance_percentage")
# Of a broker there is one of each at most, or, of ages, the greatest counts.
_ONE_EACH = (
    *(f"{x}_bytes_per_s" for x in _RW),
    "rate_window_ms",
    "leader_imbalance_check_s",
    "leader_imbalance_percentage",
    "metadata_age_ms",
)
# Brokers are not read in the same instant: a difference may come out below nothing.
_PREFERRED = "if({0}_bytes_per_s < -more_{0}, 0D, {0}_bytes_per_s + more_{0}) AS preferred_{0}_bytes_per_s"
# Two counters of a topic are read one after the other; windows that differ by more are of two different ticks.
_ONE_WINDOW = "abs(bytes_window_ms - messages_window_ms) <= greatest(200, bytes_window_ms / 20)"
_OF_PREFERRED = """struct(
    preferred AS broker,
    unread,
    partitions AS preferred_partitions,
    away,
    waiting,
    in_sync_away,
    CASE WHEN leader IS NULL THEN partitions END AS leaderless,
    metadata_age_ms,
    CAST(NULL AS BIGINT) AS leader_partitions,
    away > 0 AND write_bytes_per_s IS NULL AS write_unknown,
    away > 0 AND taken_read IS NULL AS read_unknown,
    CASE WHEN away > 0 THEN write_bytes_per_s END AS more_write,
    CASE WHEN away > 0 THEN taken_read END AS more_read)"""
_OF_LEADER = """CASE WHEN leader IS NOT NULL THEN struct(
    leader AS broker,
    CAST(NULL AS BIGINT) AS unread,
    CAST(NULL AS BIGINT) AS preferred_partitions,
    CAST(NULL AS BIGINT) AS away,
    CAST(NULL AS BIGINT) AS waiting,
    CAST(NULL AS BIGINT) AS in_sync_away,
    CAST(NULL AS BIGINT) AS leaderless,
    CAST(NULL AS BIGINT) AS metadata_age_ms,
    partitions AS leader_partitions,
    away > 0 AND write_bytes_per_s IS NULL AS write_unknown,
    away > 0 AND taken_read IS NULL AS read_unknown,
    CASE WHEN away > 0 THEN -write_bytes_per_s END AS more_write,
    CASE WHEN away > 0 THEN -taken_read END AS more_read) END"""
# A leader's reads are divided like its writes.
_READ = """CASE WHEN write_bytes_per_s = 0 OR leader_read_bytes_per_s = 0 THEN 0D
    WHEN leader_write_bytes_per_s > 0
        THEN write_bytes_per_s * leader_read_bytes_per_s / leader_write_bytes_per_s END"""


@dataclass(frozen=True)
class ImbalanceInputs:
    """What ticks tell of leaders: rows of these kinds of message, with ``cluster`` and ``tick_ms``.

    Attributes:
        leaders: every partition; a row of nulls stands for some that could not be read.
        logs: every log that was read.
        meters: every meter that was read.
        brokers: every broker.
    """

    leaders: DataFrame
    logs: DataFrame
    meters: DataFrame
    brokers: DataFrame


def leader_imbalance(seen: ImbalanceInputs, setting_ratio: float) -> DataFrame:
    """Return the rows of ``gold/leader_imbalance`` but for ``date``, one per tick and broker that is preferred.

    A tick of which partitions could not be read gives no row: a count over the others would be a false one.

    Args:
        seen: of whole ticks.
        setting_ratio: the threshold of brokers that have none of their own, 0 to 1.
    """
    traffic = _traffic(seen.meters)
    shares = _shares(_pairs(seen.leaders, non_preferred_traffic(seen.logs, seen.meters)), traffic)
    parts = (shares, traffic, seen.brokers.selectExpr(*TICK, "broker", "alive", *_BALANCING))
    united = parts[0].unionByName(parts[1], allowMissingColumns=True).unionByName(parts[2], allowMissingColumns=True)
    return _by_broker(united, setting_ratio)


def _traffic(meters: DataFrame) -> DataFrame:
    """Return what is written to and read of each broker, over all its topics."""
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
    """Return what each topic counted on each broker that leads of it, as ``counters``."""
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
    return counted.where(_ONE_WINDOW).selectExpr(
        *TICK, "broker", "topic", "struct(bytes_in, prev_bytes_in, messages_in, prev_messages_in) AS counters"
    )


def non_preferred_traffic(logs: DataFrame, meters: DataFrame) -> DataFrame:
    """Return a row per partition that another than its preferred broker leads, as far as its log was read.

    Args:
        logs: every log that was read, of whole ticks.
        meters: every meter that was read.

    Returns:
        ``cluster``, ``tick_ms``, ``topic``, ``partition``, ``preferred``, ``leader`` and ``write_bytes_per_s``, null
        where it is unknown.
    """
    ends = "struct(read_ms, prev_read_ms, log_end_offset, prev_log_end_offset) AS log"
    away = logs.where("preferred IS NOT NULL").selectExpr(*TICK, "broker", "topic", "partition", "preferred", ends)
    return away.join(_counters(meters), [*TICK, "broker", "topic"], "left").selectExpr(
        *TICK,
        "topic",
        "partition",
        "preferred",
        "broker AS leader",
        f"{end_offset_rate('log', 'counters')} AS write_bytes_per_s",
    )


def _pairs(leaders: DataFrame, taken: DataFrame) -> DataFrame:
    """Return one row per preferred and leading broker (null: none), with counts and the write rate of what differs."""
    counted = leaders.selectExpr(
        *TICK,
        "get(replicas, 0) AS preferred",
        "leader",
        "true AS told",
        "replicas IS NULL AS unread",
        "leader != get(replicas, 0) AS away",
        "coalesce(size(adding), 0) + coalesce(size(removing), 0) > 0 AS moving",
        "array_contains(isr, get(replicas, 0)) AS in_sync",
        "metadata_age_ms",
    )
    pairs = counted.unionByName(taken.drop("topic", "partition"), allowMissingColumns=True).groupBy(
        *TICK, "preferred", "leader"
    )
    return pairs.agg(
        F.expr("count_if(told) AS partitions"),
        F.expr("count_if(unread) AS unread"),
        F.expr("count_if(away) AS away"),
        F.expr("count_if(away AND moving) AS waiting"),
        F.expr("count_if(away AND NOT moving AND in_sync) AS in_sync_away"),
        F.expr("max(metadata_age_ms) AS metadata_age_ms"),
        # Half a sum would be a false one.
        F.expr(
            "CASE WHEN count_if(away) = count(write_bytes_per_s) THEN coalesce(sum(write_bytes_per_s), 0D) END "
            "AS write_bytes_per_s"
        ),
    )


def _shares(pairs: DataFrame, traffic: DataFrame) -> DataFrame:
    """Return of each pair a row for the broker that is preferred, and one for that which leads."""
    of_leaders = traffic.selectExpr(
        *TICK,
        "broker AS leader",
        "write_bytes_per_s AS leader_write_bytes_per_s",
        "read_bytes_per_s AS leader_read_bytes_per_s",
    )
    rated = pairs.join(F.broadcast(of_leaders), [*TICK, "leader"], "left").withColumn("taken_read", F.expr(_READ))
    # Not the rows of one united with those of the other: all partitions would be counted for each.
    return rated.selectExpr(*TICK, f"inline(filter(array({_OF_PREFERRED}, {_OF_LEADER}), x -> x IS NOT NULL))")


def _by_broker(rows: DataFrame, setting_ratio: float) -> DataFrame:
    """Return the rows of each broker as one."""
    counts = ("preferred_partitions", "away", "waiting", "in_sync_away", "leaderless", "leader_partitions", "unread")
    summed = rows.groupBy(*TICK, "broker").agg(
        *[F.expr(f"coalesce(sum({name}), 0) AS {name}") for name in counts],
        *[F.expr(f"max({name}) AS {name}") for name in _ONE_EACH],
        F.expr("coalesce(bool_or(alive), false) AS alive"),
        F.expr("bool_or(auto_leader_rebalance) AS auto_leader_rebalance"),
        *[F.expr(f"CASE WHEN count_if({x}_unknown) = 0 THEN coalesce(sum(more_{x}), 0D) END AS more_{x}") for x in _RW],
    )
    whole = summed.withColumn("unread", F.sum("unread").over(Window.partitionBy(*TICK)))
    return (
        whole.where("unread = 0 AND preferred_partitions > 0")
        .withColumn("electable_now", F.expr("CASE WHEN alive THEN in_sync_away ELSE 0 END"))
        .selectExpr(
            *TICK,
            "broker",
            "alive",
            "preferred_partitions",
            "away AS non_preferred_partitions",
            "electable_now",
            "waiting AS waiting_for_move",
            "away - waiting - electable_now AS unavailable",
            "leaderless",
            "leader_partitions",
            "away / preferred_partitions AS imbalance_ratio",
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

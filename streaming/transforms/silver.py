"""Rows of the silver tables, from the rows of decoded messages."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from headroom.schemas.tables import (
    BROKER_PERFORMANCE,
    BYTES_PER_SEC,
    FETCHER_LAG,
    LEADER_DISTRIBUTION,
    LOG_DIRS,
    LOG_END_OFFSETS,
    MIGRATION_OFFSETS,
    MIGRATION_SYNCS,
    REPLICA_SIZES,
    THROTTLES,
    Table,
)
from headroom.streaming.transforms.gold import as_table

BYTES_IN, MESSAGES_IN, BYTES_OUT = (
    f"BrokerTopicMetrics.{name}" for name in ("BytesInPerSec", "MessagesInPerSec", "BytesOutPerSec")
)
# Requests count once for each of their partitions.
PRODUCE_REQUESTS, FETCH_REQUESTS = (
    f"BrokerTopicMetrics.{name}" for name in ("TotalProduceRequestsPerSec", "TotalFetchRequestsPerSec")
)
# Time between the two readings, milliseconds.
_WINDOW_MS = "CASE WHEN read_ms > prev_read_ms THEN read_ms - prev_read_ms END"
# Bytes per second; a gauge reports the rate itself.
_METER_RATE = """CASE WHEN count_total IS NULL THEN gauge_value
    WHEN window_ms > 0 AND count_total >= prev_count_total
    THEN (count_total - prev_count_total) * 1000D / window_ms END"""


def fetcher_lag(lags: DataFrame) -> DataFrame:
    """Return the rows of ``silver/fetcher_lag`` from those of the kind ``lags``."""
    return as_table(lags, FETCHER_LAG)


def bytes_per_sec(meters: DataFrame) -> DataFrame:
    """Return the rows of ``silver/bytes_per_sec`` from those of the kind ``meters``."""
    return as_table(with_meter_rate(meters), BYTES_PER_SEC)


def with_meter_rate(meters: DataFrame) -> DataFrame:
    """Return the rows of the kind ``meters`` with ``window_ms`` and ``bytes_per_s``.

    A counter that fell (the broker has restarted) has no rate: null.
    """
    return meters.withColumn("window_ms", F.expr(_WINDOW_MS)).withColumn("bytes_per_s", F.expr(_METER_RATE))


def of_meter(meter: str, value: str) -> str:
    """Return the aggregate of a value of one meter among the rows of a broker, or of a topic on a broker."""
    return f"max(CASE WHEN meter = '{meter}' THEN {value} END)"


def log_end_offsets(logs: DataFrame) -> DataFrame:
    """Return the rows of ``silver/log_end_offsets`` from those of the kind ``logs``.

    A log that was truncated has no rate: null.
    """
    rate = """CASE WHEN window_ms > 0 AND log_end_offset >= prev_log_end_offset
        THEN (log_end_offset - prev_log_end_offset) * 1000D / window_ms END"""
    rows = logs.withColumn("window_ms", F.expr(_WINDOW_MS)).withColumn("offsets_per_s", F.expr(rate))
    return as_table(rows, LOG_END_OFFSETS)


def leader_distribution(leaders: DataFrame) -> DataFrame:
    """Return the rows of ``silver/leader_distribution`` from the rows of the kind ``leaders``."""
    return as_table(leaders.withColumn("preferred_leader", F.expr("get(replicas, 0)")), LEADER_DISTRIBUTION)


def broker_throttles(brokers: DataFrame) -> DataFrame:
    """Return the broker rows of ``silver/throttles`` from the rows of the kind ``brokers``."""
    rows = brokers.selectExpr(
        "*",
        "'broker' AS entity",
        "CAST(NULL AS STRING) AS topic",
        "throttles_known AS known",
        "CAST(NULL AS STRING) AS leader_throttled_replicas",
        "CAST(NULL AS STRING) AS follower_throttled_replicas",
    )
    return as_table(rows, THROTTLES)


def topic_throttles(lists: DataFrame) -> DataFrame:
    """Return the topic rows of ``silver/throttles`` from the rows of the kind ``topic_throttles``."""
    rows = lists.selectExpr(
        "*",
        "'topic' AS entity",
        "CAST(NULL AS INT) AS broker",
        "true AS known",
        "CAST(NULL AS BIGINT) AS leader_throttle_bytes_per_s",
        "CAST(NULL AS BIGINT) AS follower_throttle_bytes_per_s",
        "CAST(NULL AS STRING) AS leader_throttle_source",
        "CAST(NULL AS STRING) AS follower_throttle_source",
    )
    return as_table(rows, THROTTLES)


def broker_performance(readings: DataFrame) -> DataFrame:
    """Return the rows of ``silver/broker_performance`` from those of the kind ``broker_performance``.

    A counter that fell (the broker has restarted) has no rate: null.
    """
    rows = readings.withColumn("window_ms", F.expr(_WINDOW_MS))
    for column, counter in (
        ("bytes_in_per_s", "bytes_in"),
        ("produce_requests_per_s", "produce_requests"),
        ("fetch_requests_per_s", "fetch_requests"),
        ("idle_ns_per_s", "handler_idle_ns"),
    ):
        rows = rows.withColumn(column, F.expr(_rate_of(counter)))
    # A little more than the whole time is possible, because the counter and the time are not read at once. Not least(),
    # which ignores a null.
    ratio = F.expr("if(idle_ns_per_s > 1e9D, 1D, idle_ns_per_s / 1e9D)")
    return as_table(rows.withColumn("handler_idle_ratio", ratio), BROKER_PERFORMANCE)


def _rate_of(counter: str) -> str:
    """Return the expression of the rate of a counter over ``window_ms``, per second; null if it fell."""
    return f"""CASE WHEN window_ms > 0 AND {counter} >= prev_{counter}
        THEN ({counter} - prev_{counter}) * 1000D / window_ms END"""


def log_dirs(directories: DataFrame) -> DataFrame:
    """Return the rows of ``silver/log_dirs`` from those of the kind ``log_dirs``."""
    return as_table(directories, LOG_DIRS)


def replica_sizes(sizes: DataFrame) -> DataFrame:
    """Return the rows of ``silver/replica_sizes`` from those of the kind ``replica_sizes``."""
    return as_table(sizes, REPLICA_SIZES)


def migration_offsets(partitions: DataFrame) -> DataFrame:
    """Return the rows of ``silver/migration_offsets`` from those of the kind ``migrations``: one for each side.

    A side that was not read has a row of nulls with the reason. A log that was truncated has no rate: null.
    """
    sides = partitions.selectExpr(
        *("cluster", "tick_ms", "topic", "partition", "migration"),
        """stack(2, 'origin', origin, origin_error, origin_size.size_bytes,
            'target', target, target_error, CAST(NULL AS BIGINT)) AS (side, log, error, size_bytes)""",
    )
    rows = sides.selectExpr("* EXCEPT (log)", "log.*").withColumn("window_ms", F.expr(_WINDOW_MS))
    rate = """CASE WHEN window_ms > 0 AND log_end_offset >= prev_log_end_offset
        THEN (log_end_offset - prev_log_end_offset) * 1000D / window_ms END"""
    return as_table(rows.withColumn("offsets_per_s", F.expr(rate)), MIGRATION_OFFSETS)


def migration_syncs(syncs: DataFrame) -> DataFrame:
    """Return the rows of ``silver/migration_syncs`` from those of the kind ``migration_syncs``."""
    return as_table(syncs, MIGRATION_SYNCS, time="written_ms")


# Table to message kind to the function that makes rows of the table from rows of the kind.
SILVER: Mapping[Table, Mapping[str, Callable[[DataFrame], DataFrame]]] = {
    FETCHER_LAG: {"lags": fetcher_lag},
    BYTES_PER_SEC: {"meters": bytes_per_sec},
    LOG_END_OFFSETS: {"logs": log_end_offsets},
    LEADER_DISTRIBUTION: {"leaders": leader_distribution},
    THROTTLES: {"brokers": broker_throttles, "topic_throttles": topic_throttles},
    BROKER_PERFORMANCE: {"broker_performance": broker_performance},
    LOG_DIRS: {"log_dirs": log_dirs},
    REPLICA_SIZES: {"replica_sizes": replica_sizes},
    MIGRATION_OFFSETS: {"migrations": migration_offsets},
    MIGRATION_SYNCS: {"migration_syncs": migration_syncs},
}
# Rows of the table for each row of a message, where it is not one: both sides of a migration.
ROWS_EACH: Mapping[Table, int] = {MIGRATION_OFFSETS: 2}

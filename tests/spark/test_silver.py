"""From decoded messages to silver rows."""

from __future__ import annotations

from dataclasses import fields
from typing import Any

from pyspark.sql import Row, SparkSession
from pyspark.sql.types import StructType

from headroom.planning.elections.planner import BatchLimits
from headroom.schemas.alerts import AlertEvent
from headroom.schemas.tables import (
    ALERT_DELIVERIES,
    ALERT_EVENTS,
    BROKER_LOAD,
    BROKER_PERFORMANCE,
    BRONZE_TICKS,
    BYTES_PER_SEC,
    ELECTION_PLAN,
    LEADER_IMBALANCE,
    LOG_END_OFFSETS,
    MESSAGES,
    PARTITION_LOAD,
    PARTITION_WRITE_RATE,
    QUARANTINE,
    REASSIGNMENT_PROGRESS,
    REPLICA_SIZES,
    REPLICATION_LAG,
    TABLES,
    THROTTLE_HEADROOM,
)
from headroom.schemas.tick_messages import row_columns
from headroom.streaming.jobs.silver import header_rejected, ledger, quarantine, silver_rows, value_rejected
from headroom.streaming.queries.bronze_query import bronze
from headroom.streaming.store.low_latency_table import dict_rows
from headroom.streaming.transforms.decode import alert_messages, message_rows, with_headers
from headroom.streaming.transforms.gold import GoldQueries, as_table
from headroom.streaming.transforms.leaders.election_plan import election_plans
from headroom.streaming.transforms.leaders.imbalance import ImbalanceInputs, leader_imbalance
from headroom.streaming.transforms.migrations import MIGRATION_TABLES
from headroom.streaming.transforms.partition_load import LoadHour, LoadInputs, partition_load
from headroom.streaming.transforms.silver import (
    SILVER,
    broker_performance,
    broker_throttles,
    bytes_per_sec,
    fetcher_lag,
    leader_distribution,
    log_dirs,
    log_end_offsets,
    replica_sizes,
    topic_throttles,
)
from headroom.streaming.transforms.tick_status import rows_of
from tests.spark.support import frame
from tests.spark.ticks import TICK_MS, broker, log, records


def meter(name: str, count: int | None, previous: int | None, **more: Any) -> dict[str, Any]:
    """A meter of broker 1, read twice within 10 s."""
    row: dict[str, Any] = {
        "broker": 1,
        "meter": name,
        "topic": None,
        "fetcher": None,
        "source_broker": None,
        "read_ms": TICK_MS,
        "count_total": count,
        "prev_read_ms": None if previous is None else TICK_MS - 10_000,
        "prev_count_total": previous,
        "gauge_value": None,
    }
    return row | more


def by(rows: list[Row], *names: str) -> dict[Any, Row]:
    return {tuple(row[name] for name in names) if len(names) > 1 else row[names[0]]: row for row in rows}


def test_rates_of_meters(spark: SparkSession) -> None:
    meters = [
        # 5,000 in 10 s.
        meter("grows", 6000, 1000),
        meter("stands", 1000, 1000),
        meter("reset", 7, 1000),
        meter("first", 1000, None),
        meter("twice", 1000, 1000, prev_read_ms=TICK_MS),
        meter("gauge", None, None, gauge_value=1.5),
        meter("missed", 6000, 1000, prev_read_ms=TICK_MS - 50_000),
    ]
    rows = by(bytes_per_sec(frame(spark, "meters", meters)).collect(), "meter")
    rates = {name: (row["bytes_per_s"], row["window_ms"]) for name, row in rows.items()}
    assert rates == {
        "grows": (500, 10_000),
        "stands": (0, 10_000),
        "reset": (None, 10_000),
        "first": (None, None),
        "twice": (None, None),
        "gauge": (1.5, None),
        "missed": (100, 50_000),
    }
    # 1,800,000,000 s after the epoch.
    assert {str(row["date"]) for row in rows.values()} == {"2027-01-15"}


def test_rates_of_a_brokers_requests_and_what_is_unknown(spark: SparkSession) -> None:
    names = ("bytes_in", "produce_requests", "fetch_requests", "handler_idle_ns")
    row: dict[str, Any] = {
        **dict.fromkeys(row_columns("broker_performance")),
        "broker": 1,
        "rack": "a",
        "read_ms": TICK_MS,
        "prev_read_ms": TICK_MS - 30_000,
        # In 30 s: 3,000 bytes, 90 and 900 requests, and 24 s idle.
        **dict(zip(names, (4000, 100, 1000, 25 * 10**9), strict=True)),
        **dict(zip((f"prev_{name}" for name in names), (1000, 10, 100, 10**9), strict=True)),
        "produce_p99_ms": 12.5,
        "follower_fetch_p99_ms": 501.0,
        "log_flush_p999_ms": 80.5,
    }
    unknown = dict.fromkeys(name for name in row if name.startswith(("prev_", "bytes", "produce", "fetch", "handler")))
    rows = [
        row,
        row | unknown | {"broker": 2, "log_flush_p999_ms": None},
        # Restarted, and idle a little longer than the time between the readings.
        row | {"broker": 3, "produce_requests": 5, "handler_idle_ns": 32 * 10**9},
    ]
    found = by(broker_performance(frame(spark, "broker_performance", rows)).collect(), "broker")
    assert [c for c in BROKER_PERFORMANCE.names() if c not in found[1].asDict()] == []
    kept = BROKER_PERFORMANCE.names()[BROKER_PERFORMANCE.names().index("rack") :]
    assert {name: found[1][name] for name in kept} == {
        "rack": "a",
        "read_ms": TICK_MS,
        "window_ms": 30_000,
        "bytes_in_per_s": 100,
        "produce_requests_per_s": 3,
        "fetch_requests_per_s": 30,
        "handler_idle_ratio": 0.8,
        "produce_p99_ms": 12.5,
        "follower_fetch_p99_ms": 501.0,
        "log_flush_p999_ms": 80.5,
    }
    assert {name for name in kept if found[2][name] is not None} == {"rack", "read_ms", "follower_fetch_p99_ms"}
    assert (found[3]["produce_requests_per_s"], found[3]["handler_idle_ratio"]) == (None, 1.0)


def test_log_directories_and_sizes_of_replicas_keep_what_is_unknown(spark: SparkSession) -> None:
    directory = {"broker": 1, "read_ms": TICK_MS, "log_dir": "/a", "total_bytes": 9, "usable_bytes": None} | {
        "offline": False,
        "cordoned": True,
    }
    (kept,) = log_dirs(frame(spark, "log_dirs", [directory])).collect()
    assert {name: kept[name] for name in directory} == directory
    size = {"broker": 1, "topic": "t", "partition": 0, "read_ms": TICK_MS, "log_dir": "/a", "size_bytes": None} | {
        "lag_offsets": 3,
        "is_future": True,
    }
    (kept,) = replica_sizes(frame(spark, "replica_sizes", [size])).collect()
    assert {name: kept[name] for name in size} == size


def test_growth_of_logs(spark: SparkSession) -> None:
    def sample(partition: int, **more: Any) -> dict[str, Any]:
        row = log(1, 5000, 200_000, **more)
        kept = {name: value for name, value in row.items() if "lag" not in name and name != "unchanged_since_ms"}
        return {"topic": "t", "partition": partition, "is_leader": True, "preferred": None} | kept

    logs = [sample(0), sample(1, prev_log_end_offset=5001), sample(2, prev_read_ms=None, prev_log_end_offset=None)]
    rows = by(log_end_offsets(frame(spark, "logs", logs)).collect(), "partition")
    # 2,000 records in 10 s; a log that was cut and a first sample have no rate.
    assert [rows[n]["offsets_per_s"] for n in range(3)] == [200, None, None]
    assert (rows[0]["log_end_offset"], rows[0]["size_bytes"], rows[0]["is_leader"]) == (5000, 5_000_000, True)


def test_a_lag_of_minus_one_stays_unknown(spark: SparkSession) -> None:
    lag = {"broker": 3, "topic": "t", "partition": 0, "source_broker": 1, "fetcher": "f", "lag_offsets": None}
    rows = by(fetcher_lag(frame(spark, "lags", [lag, lag | {"partition": 1, "lag_offsets": 0}])).collect(), "partition")
    assert [rows[n]["lag_offsets"] for n in (0, 1)] == [None, 0]


def test_the_preferred_leader_is_the_first_replica(spark: SparkSession) -> None:
    row = {"topic": "t", "partition": 0, "leader": 1, "leader_epoch": 4, "replicas": [3, 1], "isr": [1]} | {
        "min_insync_replicas": 1
    }
    leaders = [
        row | {"adding": [3], "removing": [], "metadata_age_ms": 20_000},
        row | {"partition": 1, "replicas": [], "adding": [], "removing": [], "metadata_age_ms": None},
    ]
    rows = by(leader_distribution(frame(spark, "leaders", leaders)).collect(), "partition")
    assert [rows[n]["preferred_leader"] for n in (0, 1)] == [3, None]
    assert (rows[0]["leader"], rows[0]["leader_epoch"], rows[0]["adding"]) == (1, 4, [3])
    assert [rows[n]["metadata_age_ms"] for n in (0, 1)] == [20_000, None]


def test_throttles_of_brokers_and_topics_stand_in_one_table(spark: SparkSession) -> None:
    brokers = [broker(1, 5, None), broker(2, None, None, throttles_known=False)]
    topic = {"topic": "t", "leader_throttled_replicas": "0:1", "follower_throttled_replicas": "*"}
    parts = (
        broker_throttles(frame(spark, "brokers", brokers)),
        topic_throttles(frame(spark, "topic_throttles", [topic])),
    )
    rows = by(parts[0].unionByName(parts[1]).collect(), "entity", "broker", "topic")
    first, unread, lists = rows[("broker", 1, None)], rows[("broker", 2, None)], rows[("topic", None, "t")]
    assert (first["leader_throttle_bytes_per_s"], first["follower_throttle_bytes_per_s"], first["known"]) == (
        5,
        None,
        True,
    )
    assert (unread["known"], unread["leader_throttle_bytes_per_s"]) == (False, None)
    assert (lists["leader_throttled_replicas"], lists["follower_throttled_replicas"]) == ("0:1", "*")


def test_every_table_is_written_in_the_columns_that_its_contract_names(spark: SparkSession) -> None:
    raw = records(spark, [])
    stored = bronze(raw)
    headers = with_headers(stored)
    rows = GoldQueries().rows(alert_messages(raw))
    kinds = [message_rows(headers, kind) for kind in ("leaders", "logs", "meters")]
    inputs = ImbalanceInputs(*kinds, rows_of(alert_messages(raw), "brokers"))
    imbalance = as_table(leader_imbalance(inputs, 0.1), LEADER_IMBALANCE)
    plans = election_plans(inputs, rows_of(alert_messages(raw), "moves"), imbalance, BatchLimits())
    load_inputs = LoadInputs(
        *(
            spark.createDataFrame([], t.ddl())
            for t in (LOG_END_OFFSETS, BYTES_PER_SEC, PARTITION_WRITE_RATE, REPLICA_SIZES)
        )
    )
    written = [
        *[(table, silver_rows(headers, table, list(kinds))) for table, kinds in SILVER.items()],
        (BRONZE_TICKS, stored),
        (QUARANTINE, quarantine(header_rejected(headers).unionByName(value_rejected(headers, "lags")))),
        (MESSAGES, ledger(headers)),
        (THROTTLE_HEADROOM, rows.headroom),
        (REASSIGNMENT_PROGRESS, rows.progress),
        (PARTITION_WRITE_RATE, rows.write_rate),
        (LEADER_IMBALANCE, imbalance),
        (ELECTION_PLAN, as_table(plans, ELECTION_PLAN)),
        *[(table, dict_rows(spark, [], table)) for table in MIGRATION_TABLES],
        (PARTITION_LOAD, partition_load(load_inputs, LoadHour("c1", 0, (0, 1), 0, closed=True))),
    ]
    assert {table.path for table, _ in written} == {table.path for table in TABLES} - {
        ALERT_EVENTS.path,
        ALERT_DELIVERIES.path,
        BROKER_LOAD.path,
        REPLICATION_LAG.path,
    }
    for table, made in written:
        assert columns(made.schema) == columns(StructType.fromDDL(table.ddl())), table.path
    assert [field.name for field in fields(AlertEvent)] == ALERT_EVENTS.names()


def columns(schema: StructType) -> list[tuple[str, str]]:
    return [(field.name, field.dataType.simpleString()) for field in schema]

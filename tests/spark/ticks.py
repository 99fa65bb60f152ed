"""Small ticks made by hand: the messages a collector would send, as Kafka records."""

from __future__ import annotations

import json
from collections.abc import Sequence
from datetime import datetime, timezone
from typing import Any

from pyspark.sql import DataFrame, SparkSession

from headroom.schemas.tick_messages import COLUMNAR, ENVELOPE, VERSION, row_columns

TICK_MS = 1_800_000_000_000
WINDOW_MS = 10_000
ENVELOPE_NAMES = {column.split(" ")[0] for column in ENVELOPE.split(", ")}
Record = tuple[bytes, bytes, str, int, int, datetime]
RECORDS_DDL = "key BINARY, value BINARY, topic STRING, partition INT, offset BIGINT, timestamp TIMESTAMP"


def log(broker: int, end: int, rate: float = 0.0, *, size: int | None = None, **more: Any) -> dict[str, Any]:
    """A log of 1,000-byte records that grew by ``rate`` bytes per second over the window of 10 s."""
    grown = round(rate * WINDOW_MS / 1000)
    size = end * 1000 if size is None else size
    sample = {
        "broker": broker,
        "read_ms": TICK_MS,
        "log_end_offset": end,
        "log_start_offset": 0,
        "size_bytes": size,
        "prev_read_ms": TICK_MS - WINDOW_MS,
        "prev_log_end_offset": end - grown // 1000,
        "prev_log_start_offset": 0,
        "prev_size_bytes": size - grown,
        "lag_offsets": None,
        "prev_lag_offsets": None,
        "lag_source": None,
        "unchanged_since_ms": None,
    }
    return sample | more


def move(topic: str, partition: int, leader: int | None, replicas: Sequence[int], **more: Any) -> dict[str, Any]:
    """A watched partition; without more it is not moving, in sync and not listed."""
    row: dict[str, Any] = {
        "topic": topic,
        "partition": partition,
        "leader": leader,
        "leader_epoch": 1,
        "replicas": list(replicas),
        "isr": list(replicas),
        "adding": [],
        "removing": [],
        "offline": [],
        "compacted": False,
        "leader_listed": [],
        "follower_listed": [],
        "previous_leader": None,
        "switch_tick_ms": None,
        "logs": [],
        "topic_counters": None,
        "before_log": None,
        "before_topic_counters": None,
        "remote_storage": False,
        "recompressed": False,
        "without_log": None,
    }
    return row | more


def broker(broker_id: int, leader: int | None, follower: int | None, **more: Any) -> dict[str, Any]:
    """A broker with its two throttle rates in force."""
    row: dict[str, Any] = {
        "broker": broker_id,
        "host": "127.0.0.1",
        "port": 9090 + broker_id,
        "alive": True,
        "answered": True,
        "error": None,
        "throttles_known": True,
        "leader_throttle_bytes_per_s": leader,
        "follower_throttle_bytes_per_s": follower,
        "leader_throttle_source": "none" if leader is None else "broker",
        "follower_throttle_source": "none" if follower is None else "broker",
        "leader_quota_bytes_per_s": None,
        "follower_quota_bytes_per_s": None,
        "auto_leader_rebalance": None,
        "leader_imbalance_check_s": None,
        "leader_imbalance_percentage": None,
        "quota_window_num": None,
        "quota_window_size_s": None,
        "replica_fetch_max_bytes": None,
        "replica_fetch_response_max_bytes": None,
        "num_replica_fetchers": None,
        "replica_fetch_backoff_ms": None,
        "log_dirs_throttle_bytes_per_s": None,
        "log_dirs_throttle_source": None,
        "rack": None,
    }
    return row | more


def message(
    kind: str, seq: int, rows: list[dict[str, Any]] | None, tick_ms: int = TICK_MS, **more: Any
) -> dict[str, Any]:
    """One message with its envelope; rows of the columnar kinds as columns."""
    head: dict[str, Any] = {"version": VERSION, "cluster": "c1", "tick_ms": tick_ms, "kind": kind, "seq": seq}
    if rows is None:
        return head | more
    return head | {"row_count": len(rows)} | ({"columns": columns(rows)} if kind in COLUMNAR else {"rows": rows}) | more


def columns(rows: list[dict[str, Any]]) -> dict[str, list[Any]]:
    """Rows as columns."""
    return {name: [row.get(name) for row in rows] for name in dict.fromkeys(name for row in rows for name in row)}


def envelope(of: dict[str, Any]) -> bytes:
    """The key of a message."""
    return json.dumps({name: value for name, value in of.items() if name in ENVELOPE_NAMES}).encode()


def tick(
    brokers: list[dict[str, Any]], moves: list[dict[str, Any]], tick_ms: int = TICK_MS, first_offset: int = 0
) -> list[dict[str, Any]]:
    """The alert partition's messages of one tick, ``tick_end`` last."""
    return [
        message("brokers", 0, brokers, tick_ms),
        message("moves", 1, moves, tick_ms),
        message("tick_end", 2, None, tick_ms, first_offset=first_offset, lane_messages=2, rate_window_ms=WINDOW_MS),
    ]


def records(
    spark: SparkSession, messages: list[dict[str, Any]], first_offset: int = 0, partition: int = 0
) -> DataFrame:
    """Kafka records of messages, in order from an offset on."""
    return spark.createDataFrame(record_rows(messages, first_offset, partition), RECORDS_DDL)


def record_rows(messages: Sequence[dict[str, Any]], first_offset: int = 0, partition: int = 0) -> list[Record]:
    """The rows of ``records``."""
    return [
        (envelope(m), json.dumps(m).encode(), "headroom.ticks", partition, first_offset + i, sent_at(m))
        for i, m in enumerate(messages)
    ]


def sent_at(of: dict[str, Any]) -> datetime:
    """When a message is written: at its tick's time, if that is one."""
    tick_ms = of.get("tick_ms")
    known = isinstance(tick_ms, int) and 0 <= tick_ms < 2**42
    return datetime.fromtimestamp((tick_ms if known else TICK_MS) / 1000, timezone.utc)


def assert_covers(rows: Sequence[dict[str, Any]], kind: str) -> None:
    """Fail if a hand-made row does not have just the columns of its kind."""
    names = set(row_columns(kind))
    for row in rows:
        assert set(row) == names, f"{kind}: {set(row) ^ names}"

"""Valid ticks, and ticks with values replaced: by edges of the type, by other types, or by null."""

from __future__ import annotations

import copy
import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from hypothesis import strategies as st

from headroom.cluster.collector.rows.encoder import encode_end, encode_rows
from headroom.schemas.tick_messages import ENVELOPE

TICK_MS = 1_800_000_000_000
CLUSTERS = ("orders", "payments")
_WINDOW_MS = 10_000
_ENVELOPE = tuple(column.split(" ")[0] for column in ENVELOPE.split(", "))

EDGES: tuple[Any, ...] = (
    *(None, True, False, 0, 1, -1, 7, 0.5, -0.0, 1e-300, 1e308, 10**30),
    *(
        sign * 2**power + more
        for power in (15, 31, 32, 42, 50, 53, 60, 62, 63)
        for sign in (1, -1)
        for more in (-1, 0, 1)
    ),
    *(TICK_MS, TICK_MS - 1, TICK_MS + 1, TICK_MS - 3_600_000, TICK_MS + 3_600_000, 253_402_300_800_000),
    *(
        "",
        "0",
        "*",
        "1:1",
        "NaN",
        "Infinity",
        "-9223372036854775808",
        "none",
        "broker",
        "a" * 3000,
        "\u0000",
        "\u001b[2J",
    ),
    *("o'brien", 'say "no"', "back\\slash", "a\nb", "\U0001f600", "\u202e", "${jndi:x}", "{}", "[]"),
    *(
        [],
        [None],
        [1, 1],
        [2**31],
        ["x"],
        [[]],
        list(range(300)),
        {},
        {"a": 1},
        {"broker": 1},
        [{}],
        [{"broker": None}],
    ),
)


@dataclass(frozen=True)
class FuzzedRecord:
    """A Kafka record of a collector or of a foreign producer.

    Attributes:
        key: key of the record.
        value: value of the record.
        tick_ms: timestamp of the record, epoch milliseconds.
    """

    key: bytes
    value: bytes
    tick_ms: int


def records() -> st.SearchStrategy[list[FuzzedRecord]]:
    """Return a strategy for the records of one tick in the order of the alert partition, some of them malformed."""
    return st.builds(
        _records,
        st.integers(0, 10**9),
        st.sampled_from(CLUSTERS),
        st.lists(st.tuples(st.integers(0, 10**9), st.sampled_from(EDGES)), max_size=3),
        st.lists(st.tuples(st.integers(0, 7), st.binary(max_size=12), st.integers(0, 4000)), max_size=1),
    )


def _records(
    after: int, cluster: str, replaced: list[tuple[int, Any]], garbled: list[tuple[int, bytes, int]]
) -> list[FuzzedRecord]:
    tick_ms = TICK_MS + after
    messages = tick(cluster, tick_ms)
    for location, value in replaced:
        where, number = divmod(location, len(messages))
        replace_value(messages[number], where, value)
    made = [record(message, tick_ms) for message in messages]
    for number, garbage, at in garbled:
        one = made[number % len(made)]
        cut = at % (len(one.value) + 1)
        value = one.value[:cut] + garbage + one.value[cut + len(garbage) :]
        made[number % len(made)] = FuzzedRecord(one.key, value, tick_ms)
    return made


def record(message: dict[str, Any], tick_ms: int) -> FuzzedRecord:
    """Return the record of a message, with the message's envelope as key."""
    key = {name: message.get(name) for name in _ENVELOPE}
    return FuzzedRecord(json.dumps(key).encode(), json.dumps(message).encode(), tick_ms)


def replace_value(message: Any, location: int, value: Any) -> None:
    """Replace one value at any depth.

    Args:
        message: objects and arrays; changed in place.
        location: number of the location, modulo the number of locations.
        value: new value.
    """
    locations = list(_locations(message))
    holder, key = locations[location % len(locations)]
    # A copy, because a later replacement may change a container in place.
    holder[key] = copy.deepcopy(value)


def _locations(holder: Any) -> Iterator[tuple[Any, Any]]:
    """Yield container and key of every value in objects and arrays, including the containers."""
    keys = holder.keys() if isinstance(holder, dict) else range(len(holder)) if isinstance(holder, list) else ()
    for key in keys:
        yield holder, key
        yield from _locations(holder[key])


def tick(cluster: str, tick_ms: int) -> list[dict[str, Any]]:
    """Return the encoded messages of a tick with three brokers, a move and a listed partition."""
    meters = ("BrokerTopicMetrics.BytesInPerSec", "FetcherStats.BytesPerSec")
    rows: dict[str, list[dict[str, Any]]] = {
        "brokers": [_broker(broker) for broker in (1, 2, 3)],
        "moves": [_move(tick_ms, 0, adding=[3], removing=[2]), _move(tick_ms, 1, adding=[], removing=[])],
        "migrations": [_migration(tick_ms)],
        "migration_syncs": [_sync(tick_ms)],
        "leaders": [_leader(number) for number in (0, 1)],
        "topic_throttles": [{"topic": "t", "leader_throttled_replicas": "0:1,1:1", "follower_throttled_replicas": "*"}],
        "meters": [_meter(tick_ms, name) for name in meters],
        "lags": [{"broker": 2, "topic": "t", "partition": 0, "source_broker": 1, "fetcher": "f", "lag_offsets": 5}],
        "logs": [_log(tick_ms, broker) | {"topic": "t", "partition": 0, "is_leader": broker == 1} for broker in (1, 2)],
        "broker_performance": [_performance(tick_ms)],
        "log_dirs": [
            {
                **{"broker": 1, "read_ms": tick_ms, "log_dir": "/a", "total_bytes": 10**12, "usable_bytes": 10**11},
                **{"offline": False, "cordoned": False},
            }
        ],
        "replica_sizes": [
            {
                **{"broker": 1, "topic": "t", "partition": 0, "read_ms": tick_ms, "log_dir": "/a"},
                **{"size_bytes": 9_000_000, "lag_offsets": 0, "is_future": False},
            }
        ],
    }
    messages = encode_rows(cluster, tick_ms, rows)
    end = encode_end(cluster, tick_ms, len(messages), _end(tick_ms))
    return [json.loads(message.value) for message in (*messages, end)]


def _migration(tick_ms: int) -> dict[str, Any]:
    side = {
        **{"read_ms": tick_ms, "topic_id": "i", "leader_epoch": 3, "log_start_offset": 0, "log_end_offset": 1_000},
        **{"stable_offset": 1_000, "leader_end_offset": 1_000, "newest_ms": tick_ms},
        **{"prev_read_ms": tick_ms - _WINDOW_MS, "prev_log_end_offset": 500, "newest_offset": 999},
    }
    group = {"group": "g", "active": True, "read_ms": tick_ms, "origin_offset": 400, "target_offset": None}
    earlier = {"prev_read_ms": tick_ms - _WINDOW_MS, "prev_origin_offset": 300, "prev_target_offset": None}
    there = {"target_active": None}
    return {
        **{"topic": "t", "partition": 0, "migration": "m", "number": 1, "status": "migrating", "method": "routed"},
        **{"end_offset": 2_000, "target_base_offset": 0, "ignore_origin": False, "origin_end": None},
        **{"shielded": False, "origin_cluster_id": "o", "target_cluster_id": "c", "origin_topic_id": "i"},
        **{"target_topic_id": "i", "origin_position": 0, "origin_offsets_per_s": 100.0, "origin_read_ms": tick_ms},
        **{"routers": ["a"], "missing_routers": [], "acks": ["all"], "origin": side, "target": dict(side)},
        **{"origin_error": None, "target_error": None, "earlier_target_end": 0, "cleanup_policy": "delete"},
        **{"retention_ms": 10**9, "retention_bytes": -1, "min_insync_replicas": 2, "unclean_elections": False},
        **{"remote_storage": False, "origin_size": _log(tick_ms, 1)},
        "epochs": [{"leader_epoch": 3, "acknowledged_end": 900, "epoch_end": 1_000, "unreported_end": None}],
        **{"sync_origin_offset": None, "sync_target_offset": None, "sync_error": None},
        **{"groups": [group | earlier | there], "slip_ratio": 0.5, "target_topic": "t", "sealed_ms": None},
        "end_newest_ms": None,
        "incomplete_reports": False,
        "target_leader": 1,
        "throttled_followers": 2,
        "reopened_end": None,
    }


def _sync(tick_ms: int) -> dict[str, Any]:
    return {
        **{"topic": "t", "partition": 0, "migration": "m", "sync_topic_id": "s", "sync_leader_epoch": 2},
        **{"sync_offset": 40, "after_offset": 30, "origin_offset": 500, "target_offset": 510, "written_ms": tick_ms},
        **{"origin_cluster_id": "o", "target_cluster_id": "c", "origin_topic_id": "i", "target_topic_id": "i"},
    }


def _end(tick_ms: int) -> dict[str, Any]:
    return {
        **{"interval_ms": 1000, "started_ms": tick_ms, "ended_ms": tick_ms + 300, "lateness_ms": 0, "skipped_ticks": 0},
        **{"rate_window_ms": _WINDOW_MS, "metadata_age_ms": 0},
        "messages": {"brokers": 1, "moves": 1, "migrations": 1, "leaders": 1},
        **{"unanswered": [{"broker": 3, "reason": "hangs"}], "first_offset": 0, "lane_messages": 2},
        **{"ranges": [{"partition": 1, "first_offset": 0, "end_offset": 5}], "collector_host": "h"},
        **{"collector_pid": 1, "collector_started_ms": tick_ms},
    }


def _broker(broker: int) -> dict[str, Any]:
    return {
        **{"broker": broker, "host": "h", "port": 9092, "alive": True, "answered": True, "error": None},
        **{
            "throttles_known": True,
            "leader_throttle_bytes_per_s": 2_000_000,
            "follower_throttle_bytes_per_s": 9_000_000,
        },
        **{
            "leader_throttle_source": "broker",
            "follower_throttle_source": "default",
            "leader_quota_bytes_per_s": 1.5e6,
        },
        **{"follower_quota_bytes_per_s": 0.0, "auto_leader_rebalance": True, "leader_imbalance_check_s": 300},
        **{"leader_imbalance_percentage": 10, "quota_window_num": 11, "quota_window_size_s": 1},
        **{"replica_fetch_max_bytes": 2**20, "replica_fetch_response_max_bytes": 10 * 2**20, "num_replica_fetchers": 1},
        **{"replica_fetch_backoff_ms": 1000, "log_dirs_throttle_bytes_per_s": None, "log_dirs_throttle_source": "none"},
        "rack": "a",
    }


def _performance(tick_ms: int) -> dict[str, Any]:
    return {
        **{"broker": 1, "rack": "a", "read_ms": tick_ms, "prev_read_ms": tick_ms - 30_000},
        **{"bytes_in": 9_000_000, "prev_bytes_in": 1000, "produce_requests": 90, "prev_produce_requests": 0},
        **{"fetch_requests": 900, "prev_fetch_requests": 0, "handler_idle_ns": 27 * 10**9, "prev_handler_idle_ns": 0},
        **{"produce_p99_ms": 12.5, "follower_fetch_p99_ms": 501.0, "log_flush_p999_ms": 80.5},
    }


def _leader(number: int) -> dict[str, Any]:
    return {
        **{"topic": "t", "partition": number, "leader": 1, "leader_epoch": 3, "replicas": [2, 1, 3], "isr": [1, 2]},
        **{"adding": [3], "removing": [], "metadata_age_ms": 0, "min_insync_replicas": 2},
    }


def _meter(tick_ms: int, name: str) -> dict[str, Any]:
    return {
        **{"broker": 1, "meter": name, "topic": "t", "fetcher": "f", "source_broker": 2, "read_ms": tick_ms},
        **{
            "count_total": 9_000_000,
            "prev_read_ms": tick_ms - _WINDOW_MS,
            "prev_count_total": 1000,
            "gauge_value": 1.5,
        },
    }


def _move(tick_ms: int, number: int, adding: list[int], removing: list[int]) -> dict[str, Any]:
    follower = {"lag_offsets": 900, "prev_lag_offsets": 800, "lag_source": 1, "unchanged_since_ms": tick_ms - 500}
    return {
        **{"topic": "t", "partition": number, "leader": 1, "leader_epoch": 3, "replicas": [1, 2, 3], "isr": [1, 2]},
        **{"adding": adding, "removing": removing, "offline": [], "compacted": False, "leader_listed": [1, 2]},
        **{"follower_listed": [3], "previous_leader": 2, "switch_tick_ms": tick_ms - 2000},
        "logs": [_log(tick_ms, broker) | follower for broker in (1, 2, 3)],
        **{"topic_counters": _counters(tick_ms), "before_log": _log(tick_ms - 3000, 2)},
        **{"before_topic_counters": _counters(tick_ms - 3000), "remote_storage": False, "recompressed": False},
        "without_log": None,
    }


def _log(tick_ms: int, broker: int) -> dict[str, Any]:
    end = {1: 9000, 2: 9000, 3: 4000}[broker]
    return {
        **{
            "broker": broker,
            "read_ms": tick_ms,
            "log_end_offset": end,
            "log_start_offset": 0,
            "size_bytes": end * 1000,
        },
        **{"prev_read_ms": tick_ms - _WINDOW_MS, "prev_log_end_offset": end - 500, "prev_log_start_offset": 0},
        "prev_size_bytes": (end - 500) * 1000,
    }


def _counters(tick_ms: int) -> dict[str, Any]:
    return {
        **{"read_ms": tick_ms, "bytes_in": 9_000_000, "messages_in": 9000},
        **{"prev_read_ms": tick_ms - _WINDOW_MS, "prev_bytes_in": 8_000_000, "prev_messages_in": 8000},
    }

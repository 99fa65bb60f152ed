"""Messages that are wrong in one place: every field of every kind, at every edge of what a number or a text can be."""

from __future__ import annotations

import json
import random
from collections.abc import Iterator
from typing import Any

from benchmarks.groups.fuzz.made import tick as fuzzed_tick
from headroom.schemas.tick_messages import COLUMNAR, KINDS
from tests.spark.ticks import ENVELOPE_NAMES, TICK_MS, broker, envelope, log, message, move

EDGES: tuple[Any, ...] = (
    *(0, -1, 1, 2**31 - 1, -(2**31), 2**31, 2**42, 2**42 + 1, 2**50, 2**50 + 1, 2**53 + 1, 2**60, 2**60 + 1),
    *(2**63 - 1, -(2**63), -(2**63) + 1, 2**63, 10**30, -0.5, 1e308, -1e308, 1e-320, float("nan"), float("inf")),
    *(None, True, False, "", "1", "\x1b[2J'; -- \\", "\u0000", "é🙂" * 50, [], [None], [-1, -1], [2**31], {}, {"a": 1}),
    list(range(1000)),
)
# In place of a list, which a job takes apart; elsewhere a long list is but a value of another type.
_LONG_LIST = list(range(20_000))
_SAMPLE = {name: value for name, value in log(1, 5).items() if "lag" not in name and name != "unchanged_since_ms"}
_COUNTERS = {
    "read_ms": TICK_MS,
    "bytes_in": 9000,
    "messages_in": 9,
    "prev_read_ms": TICK_MS - 10_000,
    "prev_bytes_in": 0,
    "prev_messages_in": 0,
}
_MOVE = move(
    "t",
    0,
    1,
    [1, 2],
    isr=[1],
    adding=[2],
    removing=[1],
    leader_listed=[1],
    follower_listed=[2],
    previous_leader=2,
    switch_tick_ms=TICK_MS - 1000,
    logs=[log(1, 90, 1000), log(2, 10, lag_offsets=80, prev_lag_offsets=90, lag_source=1, unchanged_since_ms=TICK_MS)],
    topic_counters=_COUNTERS,
    before_log=_SAMPLE | {"broker": 2},
    before_topic_counters=_COUNTERS,
)
_BROKER = broker(1, 1000, 1000) | {
    "leader_quota_bytes_per_s": 900.0,
    "follower_quota_bytes_per_s": 900.0,
    "leader_imbalance_check_s": 300,
    "leader_imbalance_percentage": 10,
    "quota_window_num": 11,
    "quota_window_size_s": 1,
    "replica_fetch_max_bytes": 2**20,
    "replica_fetch_response_max_bytes": 10 * 2**20,
    "num_replica_fetchers": 1,
    "replica_fetch_backoff_ms": 1000,
    "rack": "a",
}
_ROWS: dict[str, dict[str, Any]] = {
    "brokers": _BROKER,
    "moves": _MOVE,
    "migrations": next(m["rows"][0] for m in fuzzed_tick("c1", TICK_MS) if m["kind"] == "migrations"),
    "leaders": {
        "topic": "t",
        "partition": 0,
        "leader": 1,
        "leader_epoch": 3,
        "replicas": [2, 1],
        "isr": [1],
        "adding": [],
        "removing": [],
        "metadata_age_ms": 0,
        "min_insync_replicas": 1,
    },
    "topic_throttles": {"topic": "t", "leader_throttled_replicas": "*", "follower_throttled_replicas": "0:1"},
    "meters": {
        "broker": 1,
        "meter": "m",
        "topic": "t",
        "fetcher": "f",
        "source_broker": 2,
        "read_ms": TICK_MS,
        "count_total": 30,
        "prev_read_ms": TICK_MS - 10_000,
        "prev_count_total": 0,
        "gauge_value": 1.5,
    },
    "lags": {"broker": 2, "topic": "t", "partition": 0, "source_broker": 1, "fetcher": "f", "lag_offsets": 9},
    "logs": {"topic": "t", "partition": 0, "is_leader": True, "preferred": 2} | _SAMPLE,
    "broker_performance": {
        "broker": 1,
        "rack": "a",
        "read_ms": TICK_MS,
        "prev_read_ms": TICK_MS - 30_000,
        "bytes_in": 9000,
        "prev_bytes_in": 0,
        "produce_requests": 90,
        "prev_produce_requests": 0,
        "fetch_requests": 900,
        "prev_fetch_requests": 0,
        "handler_idle_ns": 27_000_000_000,
        "prev_handler_idle_ns": 0,
        "produce_p99_ms": 12.5,
        "follower_fetch_p99_ms": 501.0,
        "log_flush_p999_ms": 80.5,
    },
    "log_dirs": {
        "broker": 1,
        "read_ms": TICK_MS,
        "log_dir": "/data",
        "total_bytes": 10**12,
        "usable_bytes": 10**11,
        "offline": False,
        "cordoned": False,
    },
    "replica_sizes": {
        "broker": 1,
        "topic": "t",
        "partition": 0,
        "read_ms": TICK_MS,
        "log_dir": "/data",
        "size_bytes": 9000,
        "lag_offsets": 0,
        "is_future": False,
    },
    "migration_syncs": {
        name: values[0]
        for name, values in next(
            m["columns"] for m in fuzzed_tick("c1", TICK_MS) if m["kind"] == "migration_syncs"
        ).items()
    },
}
_END = {
    "interval_ms": 1000,
    "started_ms": TICK_MS,
    "ended_ms": TICK_MS + 100,
    "lateness_ms": 0,
    "skipped_ticks": 0,
    "rate_window_ms": 10_000,
    "messages": {"brokers": 1, "moves": 1, "migrations": 1},
    "unanswered": [{"broker": 1, "reason": "r"}],
    "first_offset": 0,
    "lane_messages": 2,
    "metadata_age_ms": 0,
    "ranges": [{"partition": 1, "first_offset": 0, "end_offset": 1}],
}


def good(kind: str) -> dict[str, Any]:
    """A message of a kind with all its fields."""
    if kind == "tick_end":
        return message(kind, 2, None) | _copy(_END)
    return message(kind, KINDS.index(kind), [_copy(_ROWS[kind]) for _ in range(2)])


def _copy(row: dict[str, Any]) -> dict[str, Any]:
    """The row by way of JSON, which takes a fraction of the time of ``copy.deepcopy``."""
    copied: dict[str, Any] = json.loads(json.dumps(row))
    return copied


def spoilt(kind: str) -> Iterator[dict[str, Any]]:
    """A message of a kind with each of its fields at every edge, one after the other."""
    for path in _paths(good(kind)):
        for edge in EDGES:
            yield _with(good(kind), path, edge)
        if isinstance(_at(good(kind), path), list):
            yield _with(good(kind), path, _LONG_LIST)


def garbled(count: int, seed: int) -> Iterator[tuple[bytes, bytes]]:
    """So many messages with bytes that are left out, doubled or others, and the keys that they had before."""
    draw = random.Random(seed)
    for number in range(count):
        whole = good(draw.choice(KINDS)) | {"seq": 100_000 + number}
        text = bytearray(json.dumps(whole).encode())
        for _ in range(draw.choice((1, 1, 3, 30))):
            at = draw.randrange(len(text))
            text[at : at + draw.choice((0, 1, 1, 9))] = draw.randbytes(draw.choice((0, 1, 1, 4)))
        yield bytes(text[: draw.randrange(len(text))] if draw.random() < 0.2 else text), envelope(whole)


def _paths(of: dict[str, Any]) -> Iterator[tuple[Any, ...]]:
    """Where the fields of a message are; of columns, in the second row."""
    if of["kind"] in COLUMNAR:
        yield from ((name,) for name in (*sorted(ENVELOPE_NAMES), "columns"))
        yield from (("columns", name, 1) for name in of["columns"])
    else:
        yield from _within(of, ())


def _within(value: Any, path: tuple[Any, ...]) -> Iterator[tuple[Any, ...]]:
    if path:
        yield path
    if isinstance(value, dict):
        for name, inner in value.items():
            yield from _within(inner, (*path, name))
    elif isinstance(value, list) and value:
        # Of equal rows the last one will do.
        yield from _within(value[-1], (*path, len(value) - 1))


def _at(of: dict[str, Any], path: tuple[Any, ...]) -> Any:
    inner: Any = of
    for step in path:
        inner = inner[step]
    return inner


def _with(of: dict[str, Any], path: tuple[Any, ...], value: Any) -> dict[str, Any]:
    _at(of, path[:-1])[path[-1]] = value
    return of

"""Which records are rejected and why, and which messages of the alert lane count."""

from __future__ import annotations

import json
from datetime import datetime, timezone
from functools import reduce
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession

from schemas.messages import KINDS, REQUIRED
from streaming.transforms.decode import lane_messages, with_head, with_message
from tests.spark.ticks import RECORDS_DDL, TICK_MS, broker, envelope, log, message, move, records, tick

BROKERS = message("brokers", 0, [broker(1, 5, None)])
END = tick([], [])[-1]
LAG = {"broker": 1, "topic": "t", "partition": 0, "lag_offsets": 3}
LACKS_LAG = "a row lacks broker, topic, partition, or has it in another type"
Raw = tuple[str | bytes | None, str | bytes | None]


def raw(value: dict[str, Any], key: str | None = None) -> Raw:
    return json.dumps(value), value.get("kind") if key is None else key


def whole(value: dict[str, Any]) -> Raw:
    return json.dumps(value), envelope(value)


def without(value: dict[str, Any], name: str) -> Raw:
    return json.dumps({k: v for k, v in value.items() if k != name}), "brokers"


REASONS: list[tuple[Raw, str]] = [
    ((None, "brokers"), "the record has no value"),
    (("", "brokers"), "the value is not a JSON object of a tick message"),
    (("{", "brokers"), "the value is not a JSON object of a tick message"),
    (('{"version": 2, "clus', "brokers"), "the value is not a JSON object of a tick message"),
    ((b"\xff\xfe\x00", "brokers"), "the value is not a JSON object of a tick message"),
    (raw(BROKERS | {"tick_ms": "soon"}), "the value is not a JSON object of a tick message"),
    (without(BROKERS, "version"), "version is missing"),
    (raw(BROKERS | {"version": 99}), "version 99 is unknown; this Headroom reads 2"),
    (without(BROKERS, "kind"), "kind is missing"),
    (raw(BROKERS | {"kind": "weather"}), "kind weather is unknown"),
    (raw(BROKERS, key="moves"), "the key does not name the kind of the message"),
    ((json.dumps(BROKERS), None), "the key does not name the kind of the message"),
    (without(BROKERS, "cluster"), "cluster is missing"),
    (raw(BROKERS | {"cluster": ""}), "cluster is missing"),
    (without(BROKERS, "tick_ms"), "tick_ms is missing or not positive"),
    (raw(BROKERS | {"tick_ms": 0}), "tick_ms is missing or not positive"),
    (without(BROKERS, "seq"), "seq is missing"),
    (raw(END | {"first_offset": None}), "tick_end does not say where its tick begins"),
    (raw(END | {"lane_messages": None}), "tick_end does not say where its tick begins"),
    (without(BROKERS, "rows"), "rows are missing or cut short"),
    (
        raw(BROKERS | {"rows": [broker(1, 5, None), broker(2, 5, None) | {"alive": None}]}),
        "a row lacks broker, alive, throttles_known, or has it in another type",
    ),
    (
        raw(BROKERS | {"rows": [broker(1, 5, None) | {"broker": "one"}]}),
        "a row lacks broker, alive, throttles_known, or has it in another type",
    ),
    (
        raw(message("moves", 1, [{"topic": "t"}])),
        f"a row lacks {', '.join(REQUIRED['moves'])}, or has it in another type",
    ),
    (raw(message("leaders", 1, [{}])), "a row lacks topic, partition, replicas, isr, or has it in another type"),
    (raw(message("topic_throttles", 1, [{}])), "a row lacks topic, or has it in another type"),
    (raw(message("meters", 1, [{"broker": 1}])), "a row lacks broker, meter, read_ms, or has it in another type"),
    (raw(message("lags", 1, [{"broker": 1}])), "a row lacks broker, topic, partition, or has it in another type"),
    (raw(message("logs", 1, [log(1, 5)])), "a row lacks topic, partition, broker, read_ms, or has it in another type"),
    (raw(message("lags", 1, [LAG, LAG | {"topic": None}])), LACKS_LAG),
    (raw(message("lags", 1, [LAG]) | {"columns": None}), "rows are missing or cut short"),
    (raw(message("lags", 1, [LAG]) | {"columns": {"broker": [1], "topic": ["t"], "partition": ["two"]}}), LACKS_LAG),
    (
        raw(message("lags", 2, [LAG]) | {"columns": {"broker": [1, 1], "topic": ["t", "t"], "partition": [0, "two"]}}),
        LACKS_LAG,
    ),
    (
        raw(message("lags", 1, [LAG]) | {"columns": {"broker": [1, 2], "topic": ["t"], "partition": [0]}}),
        "the columns differ in length",
    ),
    (raw(BROKERS | {"row_count": 7}), "row_count is not the number of rows"),
    ((json.dumps(BROKERS)[:-9], envelope(BROKERS)), "rows are missing or cut short"),
    ((json.dumps(BROKERS), envelope(BROKERS | {"seq": 5})), "the key and the value name different messages"),
    ((json.dumps(BROKERS), envelope(BROKERS | {"version": 1})), "version 1 is unknown; this Headroom reads 2"),
    ((json.dumps(BROKERS), '{"version": 2, '), "version is missing"),
]

_LEADER = {"topic": "t", "partition": 0, "leader": 1, "replicas": [1], "isr": [1]}
VALID: list[dict[str, Any]] = [
    BROKERS,
    END,
    message("brokers", 0, []),
    message("moves", 1, [move("t", 0, None, [1, 2])]),
    message("leaders", 2, [_LEADER]),
    message("topic_throttles", 3, [{"topic": "t"}]),
    message("meters", 4, [{"broker": 1, "meter": "m", "read_ms": 1}]),
    message("lags", 5, [{"broker": 1, "topic": "t", "partition": 0, "lag_offsets": None}]),
    message("logs", 6, [log(1, 5) | {"topic": "t", "partition": 0}]),
    # A later version may add fields; those of this one are what counts.
    BROKERS | {"mood": "good", "rows": [broker(1, 5, None, mood="good")]},
]


@pytest.fixture(scope="module")
def judged(spark: SparkSession) -> list[Any]:
    at = datetime(2027, 1, 15, tzinfo=timezone.utc)
    raws = [*(case for case, _ in REASONS), *map(raw, VALID), *map(whole, VALID)]
    rows = [(as_bytes(key), as_bytes(value), "ticks", 0, i, at) for i, (value, key) in enumerate(raws)]
    heads = with_head(spark.createDataFrame(rows, RECORDS_DDL)).persist()
    parts = [heads.where("reason IS NOT NULL").select("offset", "reason")]
    parts += [with_message(heads.where("reason IS NULL"), kind).select("offset", "reason") for kind in KINDS]
    found = reduce(DataFrame.unionByName, parts).orderBy("offset").collect()
    assert [row["offset"] for row in found] == list(range(len(raws))), "each record is judged once"
    return found


def as_bytes(text: str | bytes | None) -> bytes | None:
    return text.encode() if isinstance(text, str) else text


@pytest.mark.parametrize("number", range(len(REASONS)))
def test_a_bad_record_is_told_with_its_reason(judged: list[Any], number: int) -> None:
    assert judged[number]["reason"] == REASONS[number][1]


def test_a_good_record_of_every_kind_passes(judged: list[Any]) -> None:
    assert {m["kind"] for m in VALID} == set(KINDS)
    # Each once with its envelope in the key, and once with just its kind.
    assert [row["reason"] for row in judged[len(REASONS) :]] == [None] * 2 * len(VALID)


def test_rows_are_the_same_whether_they_came_as_rows_or_as_columns(spark: SparkSession) -> None:
    lags = [LAG, LAG | {"partition": 1, "lag_offsets": None}]
    heads = with_head(records(spark, [BROKERS, END, message("lags", 3, lags)]))
    (row,) = with_message(heads, "brokers").collect()
    assert (row["message"]["cluster"], row["message"]["tick_ms"], row["message"]["seq"]) == ("c1", TICK_MS, 0)
    assert [(b["broker"], b["leader_throttle_bytes_per_s"]) for b in row["rows"]] == [(1, 5)]
    (row,) = with_message(heads, "lags").collect()
    left_out = {"source_broker": None, "fetcher": None}
    assert [r.asDict() for r in row["rows"]] == [lag | left_out for lag in lags]
    assert [r["message"]["lane_messages"] for r in with_message(heads, "tick_end").collect()] == [2]


def test_the_alert_lane_takes_each_message_once_and_passes_over_what_is_not_its_own(spark: SparkSession) -> None:
    whole = tick([broker(1, 5, None)], [move("t", 0, 1, [1])])
    bad = [m | {"tick_ms": None} for m in whole] + [m | {"version": 1} for m in whole]
    others = [message("logs", 7, []), message("brokers", 8, None)]
    # What lacks the ISR, or the broker, has no place in a verdict.
    others += [message("moves", 9, [move("t", 0, 1, [1], isr=None)]), message("brokers", 10, [{"alive": True}])]
    rows = lane_messages(records(spark, [*whole, *whole, *bad, *others])).collect()
    assert sorted((row["kind"], row["seq"]) for row in rows) == [("brokers", 0), ("moves", 1), ("tick_end", 2)]

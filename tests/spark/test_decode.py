"""Which records are rejected and why, and which messages of the alert partition count."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from datetime import datetime, timezone
from functools import reduce
from typing import Any

import pytest
from pyspark.sql import DataFrame, Row, SparkSession

from headroom.schemas.bounds import BOUNDS, MOST_IN_ARRAY
from headroom.schemas.tick_messages import (
    KINDS,
    REQUIRED,
    array_columns,
    broker_lists,
    row_columns,
    samples,
    scalar_columns,
)
from headroom.streaming.transforms.decode import alert_messages, with_headers, with_message
from headroom.streaming.transforms.gold import headroom_rows
from tests.spark.cases import Cases, Given, Results, by_case, records_of
from tests.spark.ticks import RECORDS_DDL, TICK_MS, broker, envelope, log, message, move, records, tick

BROKERS = message("brokers", 0, [broker(1, 5, None)])
END = tick([], [])[-1]
LAG = {"broker": 1, "topic": "t", "partition": 0, "lag_offsets": 3}
OFF = "tick_ms is more than 600 s off the time of its record"
LACKS_LAG = "a row lacks broker, topic, partition, or has it in another type"
_LEADER: dict[str, Any] = {"topic": "t", "partition": 0, "leader": 1, "replicas": [1], "isr": [1]}
_MIGRATION = {"topic": "t", "partition": 0, "migration": "m", "status": "planned", "method": "routed"}
_SYNC = {
    **{"topic": "t", "partition": 0, "sync_topic_id": "s", "sync_leader_epoch": 0, "sync_offset": 0},
    **{"origin_offset": 0, "target_offset": 0, "written_ms": 1, "origin_cluster_id": "o", "target_cluster_id": "c"},
    **{"origin_topic_id": "i", "target_topic_id": "j"},
}
Raw = tuple[str | bytes | None, str | bytes | None]


def raw(value: dict[str, Any], key: str | None = None) -> Raw:
    return json.dumps(value), value.get("kind") if key is None else key


def whole(value: dict[str, Any]) -> Raw:
    return json.dumps(value), envelope(value)


def without(value: dict[str, Any], name: str) -> Raw:
    return json.dumps({k: v for k, v in value.items() if k != name}), "brokers"


def as_bytes(text: str | bytes | None) -> bytes | None:
    return text.encode() if isinstance(text, str) else text


def reasons_of(spark: SparkSession, cases: Mapping[str, tuple[list[Raw]]]) -> dict[str, list[str | None]]:
    """Why each record of a case is rejected; None if it is not. The records are of the time of the tick."""
    at = datetime.fromtimestamp(TICK_MS / 1000, timezone.utc)
    # A case is a topic. Its offsets leave room for the two records before a tick_end.
    rows = [
        (as_bytes(key), as_bytes(value), name, 0, 10 + number, at)
        for name, (raws,) in cases.items()
        for number, (value, key) in enumerate(raws)
    ]
    headers = with_headers(spark.createDataFrame(rows, RECORDS_DDL)).persist()
    parts = [headers.where("reason IS NOT NULL").select("topic", "offset", "reason")]
    parts += [with_message(headers.where("reason IS NULL"), kind).select("topic", "offset", "reason") for kind in KINDS]
    found = sorted(reduce(DataFrame.unionByName, parts).collect(), key=lambda row: row["offset"])
    headers.unpersist()
    reasons = {name: [row["reason"] for row in found if row["topic"] == name] for name in cases}
    assert [name for name in cases if len(reasons[name]) != len(cases[name][0])] == [], "each record is checked once"
    return reasons


def alert_rows_of(spark: SparkSession, cases: Mapping[str, Given]) -> dict[str, list[Row]]:
    """The messages of a case that the alert path takes, in the order of their records."""
    found = by_case(alert_messages(records_of(spark, cases)).collect(), cases)
    return {name: sorted(rows, key=lambda row: row["record_offset"]) for name, rows in found.items()}


# Records, and messages of the alert partition.
RECORDS = Cases(reasons_of)
MESSAGES = Cases(alert_rows_of)


@pytest.fixture(scope="module")
def reasons(spark: SparkSession) -> Results[list[str | None]]:
    return RECORDS.results(spark)


@pytest.fixture(scope="module")
def alert_rows(spark: SparkSession) -> Results[list[Row]]:
    return MESSAGES.results(spark)


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
RECORDS.add("bad", [case for case, _ in REASONS])


@pytest.mark.parametrize("number", range(len(REASONS)))
def test_a_bad_record_is_reported_with_its_reason(reasons: Results[list[str | None]], number: int) -> None:
    assert reasons["bad"][number] == REASONS[number][1]


VALID: list[dict[str, Any]] = [
    BROKERS,
    END,
    message("brokers", 0, []),
    message("moves", 1, [move("t", 0, None, [1, 2])]),
    message("migrations", 2, [_MIGRATION]),
    message("leaders", 2, [_LEADER]),
    message("topic_throttles", 3, [{"topic": "t"}]),
    message("meters", 4, [{"broker": 1, "meter": "m", "read_ms": 1}]),
    message("lags", 5, [{"broker": 1, "topic": "t", "partition": 0, "lag_offsets": None}]),
    message("logs", 6, [log(1, 5) | {"topic": "t", "partition": 0}]),
    message("broker_performance", 7, [{"broker": 1, "read_ms": 1}]),
    message("log_dirs", 8, [{"broker": 1, "read_ms": 1, "log_dir": "/a"}]),
    message("replica_sizes", 9, [{"broker": 1, "topic": "t", "partition": 0, "log_dir": "/a"}]),
    message("migration_syncs", 10, [_SYNC]),
    # A later version may add fields; those of this one are what counts.
    BROKERS | {"mood": "good", "rows": [broker(1, 5, None, mood="good")]},
]
# Each once with its envelope in the key, and once with just its kind.
RECORDS.add("good", [*map(raw, VALID), *map(whole, VALID)])


def test_a_good_record_of_every_kind_passes(reasons: Results[list[str | None]]) -> None:
    assert {m["kind"] for m in VALID} == set(KINDS)
    assert reasons["good"] == [None] * 2 * len(VALID)


def _outside() -> list[dict[str, Any]]:
    """Messages of every kind, each with one number that is just out of its bounds."""
    rows: dict[str, dict[str, Any]] = {
        "brokers": broker(1, 5, None),
        "moves": move("t", 0, 1, [1], logs=[log(1, 5)]),
        "leaders": _LEADER,
        "meters": {"broker": 1, "meter": "m", "read_ms": 1},
        "lags": LAG,
        "logs": log(1, 5) | {"topic": "t", "partition": 0},
        "broker_performance": {"broker": 1, "read_ms": 1},
        "log_dirs": {"broker": 1, "read_ms": 1, "log_dir": "/a"},
        "replica_sizes": {"broker": 1, "topic": "t", "partition": 0, "log_dir": "/a"},
        "migration_syncs": _SYNC,
    }
    found = [
        message(kind, 0, [row, row | {name: number}])
        for kind, row in rows.items()
        for name in scalar_columns(kind)
        for number in _beyond(name)
    ]
    for name, (is_array, columns) in samples("moves").items():
        for column in columns:
            for number in _beyond(column):
                sample = {column: number}
                row = rows["moves"] | {name: [log(1, 5), log(2, 5) | sample] if is_array else sample}
                found.append(message("moves", 0, [row]))
    ends = [END | {name: number} for name in scalar_columns("tick_end") for number in _beyond(name)]
    ranges = [{"partition": 1, "first_offset": 0, "end_offset": number} for number in _beyond("end_offset")]
    ranges.append({"partition": -1, "first_offset": 0, "end_offset": 1})
    ranges.append({"partition": 1, "first_offset": 7, "end_offset": 6})
    ranges.append({"partition": 1, "first_offset": 7, "end_offset": 1_000_008})
    return [*found, *ends, *(END | {"ranges": [one]} for one in ranges)]


def _beyond(column: str) -> list[int]:
    if column not in BOUNDS:
        return []
    least, most = BOUNDS[column]
    # Beyond 64 bits, or 32, is not a number of the column's type, and null.
    return [least - 1, *([most + 1] if most + 1 not in (2**63, 2**31) else [])]


OUTSIDE = _outside()
RECORDS.add("out of bounds", [whole(m) for m in OUTSIDE])
MESSAGES.add("out of bounds", OUTSIDE, 10)


def test_a_number_that_no_broker_can_mean_is_a_reason_in_every_column_of_every_kind(
    reasons: Results[list[str | None]],
) -> None:
    assert len(OUTSIDE) > 100
    found = zip(OUTSIDE, reasons["out of bounds"], strict=True)
    assert [m for m, reason in found if reason != "a number is none that a broker can mean"] == []


def test_no_number_that_no_broker_can_mean_reaches_the_alert_path(alert_rows: Results[list[Row]]) -> None:
    assert [OUTSIDE[row["record_offset"] - 10] for row in alert_rows["out of bounds"]] == []


def with_arrays(length: int) -> list[dict[str, Any]]:
    """Messages of partitions that move, that only miss a replica, and that are led, each with one array so long."""
    lacks = move("t", 1, 1, [1, 2], isr=[1], leader_listed=None, follower_listed=None, compacted=None)
    rows = {"moves": [move("t", 0, 1, [1, 2], adding=[2]), lacks], "leaders": [_LEADER]}
    return [
        message(kind, n, [good, good | {name: [log(1, 5)] * length if name == "logs" else list(range(length))}])
        for kind, good_rows in rows.items()
        for n, name in enumerate(array_columns(kind))
        for good in good_rows
    ]


LONGEST, TOO_LONG = with_arrays(MOST_IN_ARRAY), with_arrays(MOST_IN_ARRAY + 1)
RECORDS.add("the longest arrays", [whole(m) for m in LONGEST])
RECORDS.add("arrays that are too long", [whole(m) for m in TOO_LONG])


def test_an_array_that_no_partition_can_mean_is_a_reason_in_every_column(reasons: Results[list[str | None]]) -> None:
    # Nine columns of moves, for two partitions, and four of leaders.
    assert reasons["the longest arrays"] == [None] * (9 * 2 + 4)
    assert reasons["arrays that are too long"] == ["an array has more than 256 values"] * (9 * 2 + 4)


def with_lists(brokers: list[int | None]) -> list[dict[str, Any]]:
    """Messages of a partition that moves and of one that is led, each with one list of brokers as given."""
    good = {"moves": move("t", 0, 1, [1, 2], adding=[2]), "leaders": _LEADER}
    return [
        message(kind, n, [row, row | {name: brokers}])
        for kind, row in good.items()
        for n, name in enumerate(broker_lists(kind))
    ]


WRONG_LISTS: list[list[int | None]] = [[1, None], [None], [-1, None], [2, -1]]
for _wrong in WRONG_LISTS:
    RECORDS.add(f"lists of brokers {_wrong}", [whole(m) for m in with_lists(_wrong)])
    MESSAGES.add(f"lists of brokers {_wrong}", [m for m in with_lists(_wrong) if m["kind"] == "moves"])


@pytest.mark.parametrize("wrong", WRONG_LISTS)
def test_a_list_of_brokers_without_one_is_a_reason_in_every_column(
    reasons: Results[list[str | None]], alert_rows: Results[list[Row]], wrong: list[int | None]
) -> None:
    text = "a list of brokers has one that is missing or negative"
    assert reasons[f"lists of brokers {wrong}"] == [text] * (8 + 4)
    assert alert_rows[f"lists of brokers {wrong}"] == []


MESSAGES.add("20,000 replicas", tick([broker(1, 5, None)], [move("t", 0, 1, [1, 2]), move("t", 1, 0, range(20_000))]))
MESSAGES.add("the longest arrays", [m for m in LONGEST if m["kind"] == "moves"])
MESSAGES.add("arrays that are too long", [m for m in TOO_LONG if m["kind"] == "moves"])


# With each of 20,000 replicas all 20,000 would stand once more, 80 kB: 1.6 GB in all.
def test_no_row_of_20000_replicas_reaches_the_alert_path(alert_rows: Results[list[Row]]) -> None:
    assert [row["kind"] for row in alert_rows["20,000 replicas"]] == ["brokers", "tick_end"]
    # One message of each column is there twice over: once of a partition that moves, and once of one that does not.
    assert len(alert_rows["the longest arrays"]) == 9
    assert alert_rows["arrays that are too long"] == []


def at_bound(names: Iterable[str], end: int) -> dict[str, int]:
    return {name: BOUNDS[name][end] for name in names if name in BOUNDS}


def tick_at_bound(end: int) -> list[dict[str, Any]]:
    """Messages of the alert partition whose numbers are at their lower or upper bound (end 0 or 1)."""
    logs = [log(1, 5) | at_bound(samples("moves")["logs"][1], end)]
    return [
        message("brokers", 0, [broker(1, 5, None) | at_bound(scalar_columns("brokers"), end)]),
        message("moves", 1, [move("t", 0, 1, [1, 2], logs=logs, adding=[2])]),
    ]


def history_at_bound(end: int) -> list[dict[str, Any]]:
    """A message of each other kind whose numbers are at their lower or upper bound (end 0 or 1)."""
    row = {"broker": 1, "topic": "t", "partition": 0, "meter": "m", "replicas": [1], "isr": [1], "log_dir": "/"}
    return [
        message(kind, 2, [{name: row.get(name) for name in row_columns(kind)} | at_bound(scalar_columns(kind), end)])
        for kind in ("meters", "logs", "lags", "leaders", "broker_performance", "log_dirs", "replica_sizes")
    ]


BOUND_NAMES = ("lower bounds", "upper bounds")
for _end, _name in enumerate(BOUND_NAMES):
    MESSAGES.add(_name, tick_at_bound(_end), 10)
    RECORDS.add(_name, [whole(m) for m in history_at_bound(_end)])


def test_numbers_at_their_bounds_pass(
    spark: SparkSession, reasons: Results[list[str | None]], alert_rows: Results[list[Row]]
) -> None:
    for name in BOUND_NAMES:
        assert len(alert_rows[name]) == 2
        assert reasons[name] == [None] * 7
    at_bounds = {name: (tick_at_bound(end), 10) for end, name in enumerate(BOUND_NAMES)}
    rows = headroom_rows(alert_messages(records_of(spark, at_bounds))).collect()
    assert {row["cluster"] for row in rows} == set(BOUND_NAMES)


OFF_TIMES = [(600, None), (601, OFF), (-600, None), (-601, OFF), (10**12, OFF)]
RECORDS.add("off the time of their records", [whole(BROKERS | {"tick_ms": TICK_MS + s * 1000}) for s, _ in OFF_TIMES])


@pytest.mark.parametrize(("off_s", "reason"), OFF_TIMES)
def test_a_tick_is_believed_around_the_time_of_its_record(
    reasons: Results[list[str | None]], off_s: int, reason: str | None
) -> None:
    assert reasons["off the time of their records"][OFF_TIMES.index((off_s, reason))] == reason


def test_ticks_are_believed_of_the_clusters_that_are_configured(spark: SparkSession) -> None:
    names = ["c1", "o'brien", "back\\slash", "nobody's", ""]
    sent = records(spark, [BROKERS | {"cluster": name} for name in names])
    rows = with_headers(sent, ["c1", "o'brien", "back\\slash"]).orderBy("offset").collect()
    assert [row["reason"] for row in rows] == [
        *[None] * 3,
        "no configuration names this cluster",
        "cluster is missing",
    ]


def test_rows_are_the_same_whether_they_came_as_rows_or_as_columns(spark: SparkSession) -> None:
    lags = [LAG, LAG | {"partition": 1, "lag_offsets": None}]
    headers = with_headers(records(spark, [BROKERS, END, message("lags", 3, lags)]))
    (row,) = with_message(headers, "brokers").collect()
    assert (row["message"]["cluster"], row["message"]["tick_ms"], row["message"]["seq"]) == ("c1", TICK_MS, 0)
    assert [(b["broker"], b["leader_throttle_bytes_per_s"]) for b in row["rows"]] == [(1, 5)]
    (row,) = with_message(headers, "lags").collect()
    left_out = {"source_broker": None, "fetcher": None}
    assert [r.asDict() for r in row["rows"]] == [lag | left_out for lag in lags]
    assert [r["message"]["lane_messages"] for r in with_message(headers, "tick_end").collect()] == [2]


def with_others() -> list[dict[str, Any]]:
    """A tick twice, and messages that belong to no verdict."""
    good = tick([broker(1, 5, None)], [move("t", 0, 1, [1])])
    bad = [m | {"tick_ms": None} for m in good] + [m | {"version": 1} for m in good]
    others = [message("logs", 7, []), message("brokers", 8, None)]
    # Without the ISR, or the broker, there is no verdict.
    others += [message("moves", 9, [move("t", 0, 1, [1], isr=None)]), message("brokers", 10, [{"alive": True}])]
    return [*good, *good, *bad, *others]


MESSAGES.add("a tick twice, and others", with_others())


def test_alert_messages_are_taken_once_and_other_messages_are_skipped(
    alert_rows: Results[list[Row]],
) -> None:
    rows = alert_rows["a tick twice, and others"]
    assert sorted((row["kind"], row["seq"]) for row in rows) == [("brokers", 0), ("moves", 1), ("tick_end", 2)]

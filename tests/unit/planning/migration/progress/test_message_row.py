"""Rows of migrations in tick messages, as a judgement takes them."""

from __future__ import annotations

import json
from typing import Any

import pytest

from benchmarks.groups.fuzz.made import tick
from headroom.planning.migration.progress.judgement import migration_progress
from headroom.planning.migration.progress.message_row import rate_of, readings_of_rows
from headroom.planning.migration.readings import LogOffsets
from headroom.schemas.tick_messages import row_columns
from tests.unit.builders.migration_progress import reading_of_row

TICK_MS = 1_000_000_000
(ROW,) = next(message["rows"] for message in tick("c", TICK_MS) if message["kind"] == "migrations")


def test_a_row_has_the_columns_of_its_kind_and_gives_a_reading() -> None:
    assert sorted(ROW) == sorted(row_columns("migrations"))
    reading = reading_of_row(json.loads(json.dumps(ROW)), TICK_MS)
    assert reading is not None
    assert reading.origin == LogOffsets(0, 1_000, 1_000, TICK_MS, 999)
    # 500 offsets in the window of the fuzzed ticks.
    assert reading.write_offsets_per_s == 500 / ((TICK_MS - ROW["origin"]["prev_read_ms"]) / 1000)
    assert (reading.acknowledged, reading.epoch_ends) == ({3: 900}, {3: 1_000})
    assert (reading.is_origin_up, reading.missing_routers, reading.acks) == (True, (), ("all",))
    found = migration_progress(reading)
    assert (found.left_offsets, found.lost_offsets, found.verdict.value) == (1_000, 0, "on_plan")
    assert [(group.group, group.left_offsets) for group in found.groups or ()] == [("g", 1_600)]


def test_a_cluster_that_was_not_read_is_unknown_and_names_the_reason() -> None:
    reading = reading_of_row({**ROW, "origin": None, "origin_error": "timed out", "groups": None}, TICK_MS)
    assert reading is not None
    found = migration_progress(reading)
    assert (found.left_offsets, found.lost_offsets, found.groups) == (None, None, None)
    assert found.reason == "The origin does not answer (timed out)."
    # The target's columns are still there.
    assert reading.target.end == 1_000


def test_columns_that_are_missing_are_unknown_and_a_status_of_a_newer_headroom_is_left_out() -> None:
    least = {name: ROW[name] for name in ("topic", "partition", "migration", "status", "method")}
    reading = reading_of_row(least, TICK_MS)
    assert reading is not None
    assert migration_progress(reading).verdict.value == "no_data"
    assert reading_of_row({**ROW, "status": "resting"}, TICK_MS) is None


def test_a_row_has_when_the_origin_was_sealed_and_one_of_an_earlier_collector_does_not() -> None:
    sealed = reading_of_row({**ROW, "sealed_ms": 5}, TICK_MS)
    earlier = reading_of_row({name: value for name, value in ROW.items() if name != "sealed_ms"}, TICK_MS)
    assert sealed is not None
    assert earlier is not None
    assert (sealed.agreement.sealed_ms, earlier.agreement.sealed_ms) == (5, None)


def test_a_row_says_that_reports_are_incomplete_and_one_of_an_earlier_collector_does_not() -> None:
    incomplete = reading_of_row({**ROW, "incomplete_reports": True}, TICK_MS)
    earlier = reading_of_row({name: value for name, value in ROW.items() if name != "incomplete_reports"}, TICK_MS)
    assert incomplete is not None
    assert earlier is not None
    assert (incomplete.has_incomplete_reports, earlier.has_incomplete_reports) == (True, False)
    assert incomplete.leader_epoch == ROW["origin"]["leader_epoch"]


def test_a_row_has_an_end_that_is_open_again_and_one_of_an_earlier_collector_does_not() -> None:
    opened = reading_of_row({**ROW, "status": "planned", "end_offset": 1_500, "reopened_end": 2_000}, TICK_MS)
    earlier = reading_of_row({name: value for name, value in ROW.items() if name != "reopened_end"}, TICK_MS)
    assert opened is not None
    assert earlier is not None
    assert (migration_progress(opened).reopened_end, migration_progress(earlier).reopened_end) == (2_000, None)


def test_a_missing_router_has_not_agreed() -> None:
    reading = reading_of_row({**ROW, "status": "planned", "routers": ["a", "b"], "missing_routers": ["b"]}, TICK_MS)
    assert reading is not None
    assert reading.missing_routers == ("b",)


def test_an_offset_that_fell_or_is_unknown_has_no_rate() -> None:
    assert rate_of(100, 300, 0, 2_000) == 100.0
    assert rate_of(300, 100, 0, 2_000) is None
    assert rate_of(None, 100, 0, 2_000) is None
    assert rate_of(-1, 100, 0, 2_000) is None
    assert rate_of(100, 300, 2_000, 2_000) is None


@pytest.mark.parametrize(
    ("column", "value", "why"),
    [
        ("topic", 5, "topic is not of type STRING"),
        ("topic", None, "lacks a required column"),
        ("partition", 2**31, "partition is not of type INT"),
        ("end_offset", "700000", "end_offset is not of type BIGINT"),
        ("end_offset", 10**30, "end_offset is not of type BIGINT"),
        ("end_offset", True, "end_offset is not of type BIGINT"),
        ("origin_offsets_per_s", float("nan"), "origin_offsets_per_s is not of type DOUBLE"),
        ("shielded", 1, "shielded is not of type BOOLEAN"),
        ("origin", "x", "origin is not an object"),
        ("origin", {"log_end_offset": "x"}, "log_end_offset is not of type BIGINT"),
        ("groups", [{"group": 5}], "group is not of type STRING"),
        ("routers", [5], "routers has something else than names"),
    ],
)
def test_a_value_that_is_none_of_its_column_is_refused(column: str, value: Any, why: str) -> None:
    with pytest.raises(ValueError, match=why):
        reading_of_row({**ROW, column: value}, TICK_MS)


def test_one_bad_value_refuses_all_rows_of_a_message() -> None:
    known, unknown = {**ROW, "partition": 1}, {**ROW, "partition": 2, "end_offset": None, "groups": None}
    assert len(readings_of_rows([known, unknown], TICK_MS)) == 2
    for bad in ({"end_offset": True}, {"end_offset": 2**60 + 1}, {"routers": [5]}, {"groups": [{"group": 5}]}):
        with pytest.raises(ValueError, match=r"is no|something else"):
            readings_of_rows([known, unknown, {**ROW, **bad}], TICK_MS)
    with pytest.raises(ValueError, match="lacks a required column"):
        readings_of_rows([known, {**ROW, "method": None}], TICK_MS)


def test_rows_of_a_message_give_what_each_gives_alone_though_they_share_what_is_the_same() -> None:
    rows = [
        ROW,
        {**ROW, "partition": 1, "number": 2},
        {**ROW, "partition": 2, "routers": ["b"], "missing_routers": ["b"]},
        {**ROW, "partition": 3, "retention_ms": None, "acks": ["1"]},
        {**ROW, "partition": 4, "status": "resting"},
    ]
    together = readings_of_rows(rows, TICK_MS)
    assert together == [reading_of_row(row, TICK_MS) for row in rows]
    first, second, third, fourth, newer = together
    assert first is not None
    assert second is not None
    assert third is not None
    assert fourth is not None
    assert (first.agreed, second.agreed, third.agreed) == ({"a": 1}, {"a": 2}, {})
    assert (first.rules is second.rules, fourth.acks, newer) == (True, ("1",), None)

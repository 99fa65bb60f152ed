"""Forecasts of switches, alerts on readers, and made readings of the group ``migration_watch``."""

from __future__ import annotations

import json

import pytest

from benchmarks.groups.migration_watch.alert_path import _renumbered
from benchmarks.groups.migration_watch.forecast import expected_offsets
from benchmarks.groups.migration_watch.made_migration import MadeMigration
from benchmarks.groups.migration_watch.overtaken import speeds
from benchmarks.groups.migration_watch.scoring import (
    ReaderScore,
    SwitchForecast,
    forecast_at,
    overtaken_at,
    reader_score,
)
from benchmarks.groups.migration_watch.tick_cost import cost_figures
from headroom.cluster.collector.migration.rows import migration_rows
from headroom.cluster.collector.rows.encoder import encode_rows


def test_the_error_of_a_forecast_is_a_share_of_the_time_that_was_left() -> None:
    # 40 s were left, and 50 s or 38 s were forecast.
    assert SwitchForecast(60.0, 50.0).error_ratio(100.0) == pytest.approx(0.25)
    assert SwitchForecast(60.0, 38.0).error_ratio(100.0) == pytest.approx(0.05)
    with pytest.raises(ValueError, match="before the switch"):
        SwitchForecast(100.0, 1.0).error_ratio(100.0)


def test_the_forecast_of_a_time_is_the_nearest_one() -> None:
    forecasts = [SwitchForecast(9.0, 3.0), SwitchForecast(10.4, 2.0), SwitchForecast(11.0, 1.0)]
    assert forecast_at(forecasts, 10.0) == forecasts[1]
    assert forecast_at([], 10.0) is None


def test_offsets_of_a_changing_rate_are_the_sum_of_its_steps() -> None:
    # 100 a second for 5 s, and 200 a second for 5 s.
    assert expected_offsets(lambda share, at_s: 1.0 if share < 0.5 else 2.0, 100.0, 10.0) == 1500


def test_a_reader_is_overtaken_once_the_log_start_is_beyond_its_last_commit() -> None:
    readings = [(1.0, 0, 100), (2.0, 50, 200), (3.0, 60, 300)]
    # At 2.0 it has committed 50, and has lost nothing; at 3.0 it lacks 50 to 59.
    assert overtaken_at(readings, [(0.5, 10), (1.9, 50)]) == 3.0
    assert overtaken_at(readings, [(0.5, 10), (1.9, 50), (2.9, 60)]) is None
    # A commit that comes later does not count before.
    assert overtaken_at(readings, [(0.5, 10), (2.1, 50)]) == 2.0
    assert overtaken_at(readings, []) is None


def test_a_group_that_is_named_without_a_loss_costs_precision_and_one_that_is_named_late_recall() -> None:
    lost_s = {"a": 100.0, "b": 90.0}
    assert reader_score({"a": 40.0, "b": 50.0}, lost_s) == ReaderScore(1.0, 1.0, 40.0)
    assert reader_score({"a": 40.0, "b": 50.0, "c": 60.0, "d": 60.0}, lost_s) == ReaderScore(0.5, 1.0, 40.0)
    assert reader_score({"a": 40.0, "b": 95.0}, lost_s) == ReaderScore(1.0, 0.5, 60.0)
    assert reader_score({}, lost_s) == ReaderScore(1.0, 0.0, None)
    assert reader_score({}, {}) == ReaderScore(1.0, 1.0, None)


def test_half_of_the_groups_are_too_slow() -> None:
    # Retention R, end offset after 3 R: a reader needs 3 / (3 + 1) of the writes.
    too_slow = [group for group, speed in speeds().items() if speed < 0.75]
    assert (len(speeds()), len(too_slow)) == (20, 10)
    assert all(group.startswith("doomed") for group in too_slow)


def test_a_made_migration_is_on_plan_with_two_readers_of_each_partition() -> None:
    rows = migration_rows(MadeMigration(40, 1_800_000_000_000).facts(30.0))
    assert len(rows) == 40
    assert {len(row["groups"]) for row in rows} == {2}
    names = {figure.name for figure in cost_figures(40, 1, lambda text: None)}
    assert names >= {"migration_tick_s_0k", "migration_tick_judge_s_0k", "migration_judge_us_0k"}


def test_messages_that_are_added_to_a_tick_have_numbers_of_their_own() -> None:
    messages = encode_rows("c", 1_000, {"migrations": migration_rows(MadeMigration(20, 0).facts(30.0))})
    numbered = _renumbered(messages, 17)
    assert [json.loads(m.key)["seq"] for m in numbered] == [17 + n for n in range(len(messages))]
    assert [json.loads(m.value)["seq"] for m in numbered] == [17 + n for n in range(len(messages))]
    assert [json.loads(m.value)["rows"] for m in numbered if m.kind == "migrations"] == [
        json.loads(m.value)["rows"] for m in messages if m.kind == "migrations"
    ]

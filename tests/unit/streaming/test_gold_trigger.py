"""Trigger intervals: no tick waits for gold if each is a commit of its own anyway; idle intervals follow the others."""

from __future__ import annotations

import pytest

from headroom.schemas.config import CollectSettings, Settings, SparkSettings
from headroom.streaming.pipeline import gold_trigger_s


@pytest.mark.parametrize(
    ("interval_s", "least_s", "trigger_s"),
    [(1.0, 5.0, 5.0), (4.9, 5.0, 5.0), (5.0, 5.0, 0.25), (60.0, 5.0, 0.25), (5.0, 0.1, 0.1), (10.0, 30.0, 30.0)],
)
def test_ticks_no_nearer_to_each_other_than_commits_may_be_wait_for_none(
    interval_s: float, least_s: float, trigger_s: float
) -> None:
    settings = Settings(collect=CollectSettings(interval_s=interval_s), spark=SparkSettings(gold_trigger_s=least_s))
    assert gold_trigger_s(settings) == trigger_s


@pytest.mark.parametrize(
    ("spark", "gold_s", "record_s"),
    [
        (SparkSettings(), 20.0, 60.0),
        (SparkSettings(gold_trigger_s=1.0, record_trigger_s=5.0), 4.0, 10.0),
        (SparkSettings(gold_idle_trigger_s=40.0, record_idle_trigger_s=300.0), 40.0, 300.0),
    ],
)
def test_idle_intervals_are_multiples_of_the_usual_ones_unless_they_are_set(
    spark: SparkSettings, gold_s: float, record_s: float
) -> None:
    assert (spark.gold_idle_s(), spark.record_idle_s()) == (gold_s, record_s)

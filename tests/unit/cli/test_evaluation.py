"""How old a tick of the gold tables may be that a running watch has written."""

from __future__ import annotations

import re

import pytest

from headroom.operations.evaluation import fresh_ms, is_recent
from headroom.schemas.config import CollectSettings, Settings, SparkSettings

# 2027-01-15 08:00 UTC.
AT_MS = 1_800_000_000_000


@pytest.mark.parametrize(
    ("spark", "fresh_s"),
    [(SparkSettings(), 60), (SparkSettings(gold_idle_trigger_s=60.0), 180), (SparkSettings(gold_trigger_s=10.0), 120)],
)
def test_while_nothing_moves_three_commits_may_be_missing(spark: SparkSettings, fresh_s: int) -> None:
    found = re.search(r"BETWEEN (\d+) AND (\d+)", is_recent(Settings(spark=spark), AT_MS))
    assert found is not None
    assert (AT_MS - int(found[1]), int(found[2]) - AT_MS) == (fresh_s * 1000, 60_000)


# Three of its ticks, however often gold is committed.
@pytest.mark.parametrize(
    ("interval_s", "idle_s", "fresh_s"), [(20.0, 0.0, 60), (21.0, 0.0, 63), (60.0, 0.0, 180), (120.0, 100.0, 360)]
)
def test_three_ticks_of_a_slow_cluster_may_be_missing(interval_s: float, idle_s: float, fresh_s: int) -> None:
    collect, spark = CollectSettings(interval_s=interval_s), SparkSettings(gold_idle_trigger_s=idle_s)
    assert fresh_ms(Settings(collect=collect, spark=spark)) == fresh_s * 1000

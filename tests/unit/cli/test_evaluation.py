"""How old a tick of the gold tables may be that a running watch has written."""

from __future__ import annotations

import re

import pytest

from headroom.operations.evaluation import is_recent
from headroom.schemas.config import Settings, SparkSettings

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

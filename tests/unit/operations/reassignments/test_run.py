"""A run of a plan by the settings: what it measures."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from headroom.operations.reassignments import run
from headroom.operations.reassignments.run import PlanRunner, RunRequest
from headroom.operations.reassignments.run_plan import RunRates
from headroom.schemas.config import ClusterSettings, ReassignSettings, Settings, StoreSettings
from tests.unit.builders.cluster_states import plan_of


@pytest.mark.parametrize(
    ("quiet_below", "rates", "measured"),
    [
        (None, RunRates(None), False),
        (None, RunRates(5_000_000), True),
        (None, RunRates(None, 5_000_000), True),
        # An unknown write rate is never low enough, so the first batch never began.
        (20e6, RunRates(None), True),
    ],
)
def test_write_rates_are_measured_where_a_throttle_or_a_quiet_cluster_asks_for_them(
    quiet_below: float | None, rates: RunRates, measured: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[bool] = []

    def connection(settings: Settings, topics: Any, measures: bool, placed: Any) -> None:
        asked.append(measures)

    monkeypatch.setattr(run, "LiveClusterControl", connection)
    (tmp_path / "store").mkdir()
    settings = Settings(
        ClusterSettings(name="c", bootstrap_servers=("h:1",)),
        store=StoreSettings(path=str(tmp_path / "store")),
        reassign=ReassignSettings(quiet_below=quiet_below),
    )
    PlanRunner(settings, "reassign run", [plan_of({0: (1, 2)})], RunRequest(rates))
    assert asked == [measured]

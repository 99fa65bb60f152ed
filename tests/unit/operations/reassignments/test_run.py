"""A run of a plan: what it measures by the settings, and what it leaves out."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from headroom.cli.config.load import load_settings
from headroom.operations.reassignments import run
from headroom.operations.reassignments.run import PlanRunner, RunRequest
from headroom.operations.reassignments.run_plan import RunRates
from headroom.planning.reassignments.cluster_state import PartitionPlacement
from headroom.schemas.config import ClusterSettings, ReassignSettings, Settings, StoreSettings
from tests.unit.builders.cluster_states import placed, plan_of
from tests.unit.builders.live_commands import let_commands_open
from tests.unit.fakes.reassigned_cluster import FakeReassignedCluster


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


@pytest.mark.parametrize(
    ("now", "left"),
    [
        # Where it was before, where the batch takes it, and where a later one has taken it or takes it now.
        (placed(1, (1, 2)), [0, 1]),
        (placed(1, (2, 1)), [0, 1]),
        (placed(1, (2, 3)), [0]),
        (placed(1, (2, 3, 1), adding=(3,), removing=(1,)), [0]),
    ],
)
def test_partitions_that_a_later_batch_takes_further_are_left_out_of_the_run(
    now: PartitionPlacement, left: list[int], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    partitions = {p.name: p for p in (placed(0, (1, 2)), now)}
    fake = FakeReassignedCluster(partitions, {1, 2, 3}, left={now.name: 9} if now.moving else {})
    let_commands_open(fake, monkeypatch, tmp_path)
    batch, later = plan_of({0: (2, 1), 1: (2, 1)}), plan_of({1: (2, 3)})
    # It counts as the run of the whole batch, by the fingerprint of which it goes on after a crash.
    fingerprint = batch.fingerprint({"t": "id-t"})
    settings = load_settings(None)
    with PlanRunner(settings, "balance run", [batch], RunRequest(RunRates(None), later=later.targets)) as runner:
        planned = runner.plan_run(fingerprint, to_execute=False)
    assert [name.partition for plan in planned.batches for name in plan.by_name] == left
    assert planned.fingerprint.startswith(fingerprint)
